"""The classes of tool calls that `stagnation` tells apart, and what each says for a loop.

A weight is a log-likelihood ratio: the natural logarithm of how much more often a class of calls
comes up in loops than in healthy runs. `recordings` are ratios over 17 loops that were read step by
step and 886 successful runs; `counted` are smoothed ratios of failed against successful runs among
8,237 recorded ones; `design` marks what was set by reasoning, because it hardly comes up there.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Origin: TypeAlias = Literal["recordings", "counted", "design"]


class StepClass(NamedTuple):
    """A class of tool calls."""

    meaning: str
    weight: float
    origin: Origin
    failed: float = 0.0
    """The weight where the call failed."""
    failed_origin: Origin = "design"


STEP_CLASSES: dict[str, StepClass] = {
    "again": StepClass("the outcome of the call before", 2.8, "recordings", 2.4, "recordings"),
    "nothing_since": StepClass(
        "an outcome seen before, and none that was new since", 4.2, "recordings", 4.1, "recordings"
    ),
    "idle_since": StepClass(
        "new outcomes since, but no new call that succeeded, and nothing that moved",
        2.8,
        "recordings",
        3.3,
        "recordings",
    ),
    "watched_since": StepClass(
        "no new call since, but known ones were answered anew", 0.0, "design", 3.3, "recordings"
    ),
    "acted_since": StepClass(
        "an act since: what was seen may be looked at again", 0.0, "counted", 0.0, "counted"
    ),
    "routine_since": StepClass(
        "a new call since, and a short answer that other calls of this tool get as well",
        0.9,
        "design",
    ),
    "returned_since": StepClass(
        "one or two new ones since, and this tool was used otherwise between: a way back",
        1.4,
        "counted",
        1.3,
        "counted",
    ),
    "tried_one_since": StepClass(
        "one new outcome since, of a new call", 1.7, "counted", 1.3, "counted"
    ),
    "tried_two_since": StepClass(
        "two since, of which a new call", 2.8, "recordings", 1.3, "counted"
    ),
    "tried_more_since": StepClass(
        "three or more since, of which a new call", 0.9, "recordings", 0.9, "counted"
    ),
    "same_error": StepClass(
        "a new call, and its error for the fourth time or more since something new succeeded",
        0.0,
        "design",
        2.1,
        "recordings",
    ),
    "error": StepClass("any other new failure", 0.0, "design", 0.5, "recordings"),
    "poll": StepClass(
        "the call before once more, with a new result: takes one `again` back", -2.8, "design"
    ),
    "watch": StepClass("a recent call, with a new result", 0.0, "design"),
    "nothing": StepClass("a new call that finds nothing, as others did", 0.0, "design"),
    "act_near": StepClass("an act with nearly the arguments of the last one", 0.0, "design"),
    "act": StepClass(
        "a new call with a short answer that others got as well: it acts, and that is progress",
        -0.38,
        "recordings",
    ),
    "novel": StepClass("anything else that is new", -0.38, "recordings"),
}

FAILED = "_failed"

WEIGHTS: dict[str, float] = {
    name: weight
    for step_class, (_, weight, _, failed, _) in STEP_CLASSES.items()
    for name, weight in ((step_class, weight), (f"{step_class}{FAILED}", failed))
}
"""The weights by class; `_failed` behind a class is the weight where the call failed."""
