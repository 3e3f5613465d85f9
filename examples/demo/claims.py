"""What the demo claims, each with what was found; the demo fails if one does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scenes import HEALTHY, RUNAWAY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arrivals import Arrivals
    from scenes import Scene

STOPPED_AFTER = 5  # the default policy aborts at the fifth equal call with an equal result
VIOLATIONS = [
    # It warns at the third of each: equal results, equal turns of the model, steps without news.
    ("repeated_result", "warn", 3, "search"),
    ("repeated_output", "warn", 3, None),
    ("no_novelty", "warn", 3, "search"),
    ("repeated_result", "abort", STOPPED_AFTER, "search"),
]
"""Rule, action, count and tool of each, in order."""
FINISH3 = (3, 2)  # model calls and tool executions of the script `finish3`
ANSWER = "The final answer is 42."


class Claim(NamedTuple):
    """One thing that must be so."""

    text: str
    expected: object
    found: object

    @property
    def holds(self) -> bool:
        return self.expected == self.found


def claims_of(scene: Scene, arrived: Arrivals) -> Iterator[Claim]:
    """Everything claimed about a scene."""
    yield from (guarded_claims if scene.guarded else unguarded_claims)(scene, arrived)
    for run in scene.runs:
        yield Claim(
            f"{run.agent}: the tokens on the spans that arrived are those the model server gave",
            (run.input_tokens, run.output_tokens),
            arrived.trace_of(run.agent).tokens,
        )
        yield Claim(
            f"{run.agent}: every request was answered at the first attempt",
            {(200, 0)},
            {(request.status, request.retry_count) for request in run.requests},
        )


def unguarded_claims(scene: Scene, arrived: Arrivals) -> Iterator[Claim]:
    run = scene.run_of(RUNAWAY)
    limit = scene.framework.limit_calls
    yield Claim(
        "runaway: only the framework's own limit ends it",
        scene.framework.limit_error,
        type(run.error).__name__,
    )
    yield Claim(
        f"runaway: {limit} model calls and {limit} tool executions until then",
        (limit, limit),
        (run.model_calls, run.tool_executions),
    )
    yield Claim("no violation arrived", [], arrived.trace_of(RUNAWAY).violations)


def guarded_claims(scene: Scene, arrived: Arrivals) -> Iterator[Claim]:
    yield from runaway_claims(scene, arrived)
    yield from healthy_claims(scene, arrived)
    yield Claim(
        "loopguard.violations counts each of these once, and no more",
        ([1] * len(VIOLATIONS), len(VIOLATIONS)),
        (
            [
                arrived.value_of("loopguard.violations", rule=rule, action=action)
                for rule, action, _, _ in VIOLATIONS
            ],
            arrived.value_of("loopguard.violations"),
        ),
    )
    yield Claim(
        "loopguard.runs counts 1 aborted and 1 complete run",
        (1, 1, 2),
        (
            arrived.value_of("loopguard.runs", **{"run.status": "aborted", "tripped": True}),
            arrived.value_of("loopguard.runs", **{"run.status": "complete", "tripped": False}),
            arrived.value_of("loopguard.runs"),
        ),
    )


def runaway_claims(scene: Scene, arrived: Arrivals) -> Iterator[Claim]:
    run = scene.run_of(RUNAWAY)
    trace = arrived.trace_of(RUNAWAY)
    yield Claim(
        f"runaway: stopped after exactly {STOPPED_AFTER} model calls and {STOPPED_AFTER} tool "
        "executions",
        (STOPPED_AFTER, STOPPED_AFTER),
        (run.model_calls, run.tool_executions),
    )
    yield Claim(
        "runaway: its caller got RunAborted with a report that names the rule",
        ("aborted", "repeated_result", STOPPED_AFTER, STOPPED_AFTER),
        run.report
        and (run.report.status, run.report.rule, run.report.model_calls, run.report.tool_calls),
    )
    yield Claim(
        f"runaway: the warnings of three rules, and the abort at {STOPPED_AFTER} equal results, "
        "arrived in its trace, each once",
        VIOLATIONS,
        [
            tuple(
                event.attributes.get(name)
                for name in (
                    "loopguard.rule",
                    "loopguard.action",
                    "loopguard.count",
                    "gen_ai.tool.name",
                )
            )
            for event in trace.violations
        ],
    )
    yield Claim(
        "runaway: the root span says so as well",
        (True, "repeated_result"),
        tuple(trace.root.attributes.get(f"loopguard.{name}") for name in ("tripped", "rule")),
    )


def healthy_claims(scene: Scene, arrived: Arrivals) -> Iterator[Claim]:
    run = scene.run_of(HEALTHY)
    trace = arrived.trace_of(HEALTHY)
    yield Claim("healthy: it answered", (ANSWER, None), (run.answer, run.error))
    yield Claim(
        "healthy: {} model calls and {} tool executions".format(*FINISH3),
        FINISH3,
        (run.model_calls, run.tool_executions),
    )
    yield Claim(
        "healthy: no violation arrived in its trace, and its root span is not tripped",
        ([], False),
        (trace.violations, trace.root.attributes.get("loopguard.tripped")),
    )
