"""Each detector by itself, against what it means over the whole list of what it was told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile
from typing import TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.detectors import (
    DETECTORS,
    RULES,
    Detector,
    Facts,
    Finding,
    Limits,
    Settings,
    Thresholds,
    _base,
)
from otel_loopguard.settings import ToolOptions
from tests._examples import examples
from tests.properties.facts import Drawn, calm_runs, distinct, facts_of, runs

Definition: TypeAlias = Callable[[Sequence[Facts], Facts, Limits], float | None]
"""What a limit counts if it says stop, of all before a step, the step, and the limits."""


def in_a_row(keys: Sequence[object]) -> int:
    """Say how many of the last keys are equal, and known."""
    equal = next((n for n, key in enumerate(reversed(keys)) if key != keys[-1]), len(keys))
    return 0 if keys[-1] is None else equal


def is_pattern(known: Sequence[object], window: int) -> bool:
    """Say whether the last calls are two full periods of something, or more."""
    last = known[-window:]
    filled = len(last) == window and None not in last
    return filled and any(last[p:] == last[:-p] for p in range(1, window // 2 + 1))


def over(count: float, limit: float | None) -> float | None:
    return count if limit is not None and count > limit else None


def late(passed_s: float, limit_s: float | None) -> float | None:
    return passed_s if limit_s is not None and passed_s >= limit_s else None


def steps(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    return over(len(before) + 1 + step.ahead, limits.max_steps)


def turns(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    return over(len(before) + 1 + step.ahead, limits.max_llm_calls)


def calls(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    of_it = sum(past.name == step.name for past in (*before, step))
    in_all = over(len(before) + 1, limits.max_tool_calls)
    return in_all or over(of_it, limits.max_calls_per_tool.get(step.name))


def tokens(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    read = sum(past.input_tokens for past in (*before, step))
    written = sum(past.output_tokens for past in (*before, step))
    return (
        over(read, limits.max_input_tokens)
        or over(written, limits.max_output_tokens)
        or over(read + written, limits.max_total_tokens)
    )


def cost(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    cents = sum(round(past.cost_usd * 100) for past in (*before, step))
    limit = limits.max_cost_usd
    return None if limit is None or cents <= round(limit * 100) else cents / 100


def rate(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    limit = limits.max_steps_per_minute
    within = sum(step.elapsed_s - past.elapsed_s < 60 for past in before) + step.ahead + 1
    return None if limit is None or within <= limit else limit + 1


def errors(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    came_back = [past.failed for past in (*before, step) if not past.pending]
    speaks = step.failed and not step.pending
    return over(in_a_row(came_back), limits.max_consecutive_errors) if speaks else None


def talk(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    heard = [
        past.kind == "llm" and past.turn is not None and not past.turn.asks
        for past in (*before, step)
        if past.kind == "tool" or past.turn is not None
    ]
    speaks = step.turn is not None and not step.turn.asks
    return over(in_a_row(heard), limits.max_turns_without_tool) if speaks else None


def row(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    known = [past.call if limits.compare_arguments else past.name for past in (*before, step)]
    return over(in_a_row(known), limits.max_repeated_calls)


def same(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    return over(in_a_row([past.name for past in (*before, step)]), limits.max_same_tool_calls)


def pattern(before: Sequence[Facts], step: Facts, limits: Limits) -> float | None:
    window = limits.loop_pattern_window
    known = [past.call for past in (*before, step)]
    return window if window is not None and is_pattern(known, window) else None


DEFINITIONS: dict[str, Definition] = {
    "step_budget": steps,
    "llm_call_budget": turns,
    "tool_call_budget": calls,
    "time_budget": lambda _, step, limits: late(step.elapsed_s, limits.max_duration_s),
    "idle_run": lambda _, step, limits: late(step.silent_s, limits.max_idle_s),
    "token_budget": tokens,
    "context_budget": lambda _, step, limits: over(step.input_tokens, limits.max_context_tokens),
    "cost_budget": cost,
    "agent_depth": lambda _, step, limits: over(step.depth, limits.max_agent_depth),
    "step_rate": rate,
    "consecutive_errors": errors,
    "idle_turns": talk,
    "repeated_call_limit": row,
    "same_tool": same,
    "loop_pattern": pattern,
}

few = st.integers(1, 6)
maybe = st.none() | st.integers(1, 30)
limits_drawn = st.builds(
    Limits,
    max_steps=few,
    max_llm_calls=few,
    max_tool_calls=st.none() | few,
    max_calls_per_tool=st.dictionaries(st.sampled_from("ab"), few, min_size=1),
    max_duration_s=st.sampled_from([1, 30, 60, 90, 120]),
    max_idle_s=few,
    max_input_tokens=maybe,
    max_output_tokens=maybe,
    max_total_tokens=st.integers(1, 40),
    max_context_tokens=few,
    max_cost_usd=st.sampled_from([0.1, 0.3, 0.6, 0.75, 1.0]),
    max_agent_depth=few,
    max_steps_per_minute=few,
    max_consecutive_errors=few,
    max_turns_without_tool=few,
    max_repeated_calls=few,
    compare_arguments=st.booleans(),
    max_same_tool_calls=few,
    loop_pattern_window=st.integers(2, 9),
)
LIMITS = {kind.rule: kind for kind in DETECTORS if kind.rule not in RULES}


def made(kind: type[Detector], told: Settings) -> Detector:
    detector = kind.of(told)
    assert detector is not None
    return detector


def told(detector: Detector, run: Iterable[Drawn], *, horizon: bool = True) -> list[Facts]:
    return [facts for facts in facts_of(run, horizon=horizon) if facts.kind in detector.kinds]


def test_every_limit_has_a_definition():
    assert DEFINITIONS.keys() == LIMITS.keys()


@pytest.mark.parametrize("rule", DEFINITIONS)
@given(run=runs, limits=limits_drawn)
def test_a_limit_says_what_its_definition_says(rule: str, run: list[Drawn], limits: Limits):
    detector = made(LIMITS[rule], Settings(limits, {}))
    before: list[Facts] = []
    for step in told(detector, run):
        finding = detector.check(step) if step.kind in detector.judges else None
        detector.commit(step)
        expected = DEFINITIONS[rule](before, step, limits)
        before.append(step)

        assert (None if finding is None else finding.count) == (
            None if expected is None else pytest.approx(expected)
        )
        assert finding is None or finding.action == "abort"


# The rules about calls, over all that was told before.


def repeated_result(before: Sequence[Facts], step: Facts) -> int:
    """Count equal outcomes since the last other success that was new."""
    return repeated(before, step.outcome, lambda past: past.outcome, lambda past: past.outcome)


def repeated_call(before: Sequence[Facts], step: Facts) -> int:
    """Count equal calls with unknown results since the last other success that was new."""
    return repeated(
        before,
        step.call if step.outcome is None else None,
        lambda past: past.call,
        lambda past: past.call if past.outcome is None else None,
    )


def repeated(
    before: Sequence[Facts],
    key: int | None,
    known_as: Callable[[Facts], int | None],
    counted_as: Callable[[Facts], int | None],
) -> int:
    if key is None:
        return 0
    count, others = 1, set[int | None]()
    for past in reversed(before):
        resets = past.novel and not past.failed
        if (resets and known_as(past) != key) or len(others) == _base.REMEMBERED:
            break
        if resets or counted_as(past) == key:
            others.clear()
        elif counted_as(past) is not None:
            others.add(counted_as(past))
        count += counted_as(past) == key
    return count


def rounds(before: Sequence[Facts], step: Facts) -> int:
    """Count rounds of 2 to 8 calls, two of them different, with no news after the first."""
    in_sight = not before or before[-1].outcome is not None
    if step.pending and in_sight:
        return 0
    run = list(takewhile(lambda past: past.call is not None, reversed((*before, step))))
    return max(rounds_of(run, period) for period in range(2, 9))


def rounds_of(newest_first: Sequence[Facts], period: int) -> int:
    pairs = zip(newest_first, newest_first[period:], strict=False)
    matched = sum(
        1
        for _ in takewhile(
            lambda pair: (
                pair[0].call == pair[1].call and not (pair[0].novel and pair[0].outcome is not None)
            ),
            pairs,
        )
    )
    one_call = len({past.call for past in newest_first[:period]}) == 1
    return 0 if matched < period or one_call else matched // period + 1


CALL_RULES: dict[str, Callable[[Sequence[Facts], Facts], int]] = {
    "repeated_result": repeated_result,
    "repeated_call": repeated_call,
    "cyclic_calls": rounds,
}

lines = st.builds(Thresholds, warn=st.none() | few, abort=st.none() | few)


def said(line: Thresholds, count: int) -> tuple[str, float, float] | None:
    if line.abort is not None and count >= line.abort:
        return "abort", count, line.abort
    return None if line.warn is None or count < line.warn else ("warn", count, line.warn)


@pytest.mark.parametrize("remembered", [_base.REMEMBERED, 2])
@pytest.mark.parametrize("rule", CALL_RULES)
@given(run=runs, line=lines, of_b=lines)
def test_a_rule_says_what_its_definition_says(
    rule: str, remembered: int, run: list[Drawn], line: Thresholds, of_b: Thresholds
):
    kind = next(kind for kind in DETECTORS if kind.rule == rule)
    tools = {"b": ToolOptions(rules={rule: of_b})}
    detector = kind.of(Settings(Limits(), {rule: line}, tools=tools))
    if detector is None:
        assert (line, of_b) == (Thresholds(), Thresholds())
        return
    before: list[Facts] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_base, "REMEMBERED", remembered)
        for facts in told(detector, run):
            is_b = facts.name == "b"
            step = msgspec.structs.replace(facts, own={rule: of_b} if is_b else None)
            found = detector.check(step)
            detector.commit(step)
            count = CALL_RULES[rule](before, step)
            before.append(step)

            assert (None if found is None else (found.action, found.count, found.threshold)) == (
                said(of_b if is_b else line, count)
            )


# What holds for every detector.

EVERYTHING = Settings(
    Limits(
        max_steps=9,
        max_llm_calls=9,
        max_tool_calls=9,
        max_calls_per_tool={"a": 9},
        max_duration_s=99,
        max_idle_s=9,
        max_total_tokens=99,
        max_context_tokens=9,
        max_cost_usd=1,
        max_agent_depth=9,
        max_steps_per_minute=9,
        max_consecutive_errors=3,
        max_turns_without_tool=3,
        max_repeated_calls=3,
        max_same_tool_calls=3,
        loop_pattern_window=7,
    ),
    {rule: Thresholds(warn=2, abort=3) for rule in RULES},
)


def rule_of(kind: type[Detector]) -> str:
    return kind.rule


every_detector = pytest.mark.parametrize("kind", DETECTORS, ids=rule_of)


def parts_of(thing: object) -> list[object] | None:
    """Return what a part of a detector is made of; `None` for a plain value."""
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, Collection) and not isinstance(thing, (str, bytes)):
        return [*thing]
    slots: tuple[str, ...] = getattr(type(thing), "__slots__", ())
    return [getattr(thing, slot) for slot in slots] or None


def state_of(thing: object) -> object:
    """Return all that a detector keeps, as plain data."""
    parts = parts_of(thing)
    return repr(thing) if parts is None else [state_of(part) for part in parts]


def weight_of(thing: object) -> int:
    """Count the values that a detector keeps."""
    parts = parts_of(thing)
    return 1 if parts is None else sum(map(weight_of, parts))


@every_detector
@examples(25)
@given(run=runs)
def test_asking_changes_nothing(kind: type[Detector], run: list[Drawn]):
    detector = made(kind, EVERYTHING)
    for step in told(detector, run):
        before = state_of(detector)
        first, again = detector.check(step), detector.check(step)

        assert state_of(detector) == before
        assert first == again
        detector.commit(step)


@every_detector
@examples(25)
@given(run=runs)
def test_who_says_so_is_silent_about_news(kind: type[Detector], run: list[Drawn]):
    detector = made(kind, EVERYTHING)
    for step in told(detector, run, horizon=False):
        finding = detector.check(step) if step.kind in detector.judges else None
        detector.commit(step)
        is_news = step.kind == "tool" and step.novel and not step.failed and not step.pending
        is_news = is_news and step.outcome is not None and not (step.nothing or step.near)

        assert detector.on_news or not is_news or finding is None


@every_detector
@examples(25)
@given(run=runs)
def test_who_does_not_foresee_says_nothing_before_its_moment(
    kind: type[Detector], run: list[Drawn]
):
    detector = made(kind, EVERYTHING)
    for step in told(detector, run):
        if step.pending and detector.moment == "result" and not detector.foresees:
            assert detector.check(step) is None
        detector.commit(step)


@pytest.mark.parametrize("kind", [kind for kind in DETECTORS if "tool" in kind.kinds], ids=rule_of)
@examples(200)
@given(run=calm_runs)
def test_who_rests_misses_nothing(kind: type[Detector], run: list[Drawn]):
    detector, told_of_all = made(kind, EVERYTHING), made(kind, EVERYTHING)
    awake = True
    for step in facts_of(run, horizon=False):
        awake = awake or not step.plain
        if step.kind not in kind.kinds:
            continue
        if step.kind in kind.judges:
            assert detector.check(step) == told_of_all.check(step)
        told_of_all.commit(step)
        if awake or detector.moment != "result":
            detector.commit(step)
        awake = awake and not (step.plain and detector.rests)


def test_a_call_that_is_still_out_is_no_end_of_a_row_of_errors():
    failed = Facts("tool", "a", "", 0, None, pending=False, failed=True)
    detector = made(LIMITS["consecutive_errors"], Settings(Limits(max_consecutive_errors=1), {}))
    for step in (failed, Facts("tool", "a", "", 0, None)):
        assert detector.check(step) is None
        detector.commit(step)

    assert detector.check(failed) == Finding("abort", 2, 1)


@pytest.mark.parametrize("kind", [kind for kind in DETECTORS if kind.rule in RULES], ids=rule_of)
@examples(25)
@given(run=runs)
def test_a_rule_for_one_tool_says_nothing_of_another(kind: type[Detector], run: list[Drawn]):
    always = ToolOptions(rules={kind.rule: Thresholds(warn=1)})
    detector = made(kind, Settings(Limits(), {}, tools={"no tool of the run": always}))
    for step in told(detector, run):
        assert step.kind not in kind.judges or detector.check(step) is None
        detector.commit(step)


@every_detector
def test_memory_does_not_grow_with_the_run(kind: type[Detector]):
    detector = made(kind, EVERYTHING)
    weights: list[int] = []
    for group in zip(*(distinct(1_000, one) for one in sorted(kind.kinds)), strict=True):
        for step in group:
            detector.commit(step)
        weights.append(weight_of(detector))

    assert max(weights[-300:]) <= max(weights[:300])


@every_detector
def test_what_is_judged_is_counted(kind: type[Detector]):
    assert kind.judges
    assert kind.judges <= kind.kinds


@every_detector
def test_what_nobody_asked_for_is_not_made(kind: type[Detector]):
    assert kind.of(Settings(Limits(), {})) is None
