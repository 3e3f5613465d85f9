"""What each rule means, said once more, slowly: over the whole history of a run.

A definition here may look at every step there ever was. It shares nothing with the engine but the
steps, the thresholds and the horizons. `said_of` plays a run through the definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from otel_loopguard import rule_sets, run_state
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.detectors import DETECTORS, Limits, Thresholds, _base
from otel_loopguard.endings import finished
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step

LONGEST_CYCLE = 8
ORDER = [detector.rule for detector in DETECTORS]

Recording: TypeAlias = Literal["all", "turns", "nothing"]
"""What an application tells the guard afterwards: all steps, its model turns, or nothing."""


class Timed(NamedTuple):
    """A step and its time."""

    step: Step
    pause_s: int = 0
    took_s: int = 0
    late: bool = False
    """Its arguments show up at its end."""


class Done(NamedTuple):
    """A step, as far as it is known."""

    kind: str
    name: str
    agent: str
    life: int | None
    """Which life of the agent's counters it belongs to; `None` if the call cannot repeat."""
    elapsed_s: float
    call: Hashable = None
    """Name and arguments; `None` where the arguments are unknown."""
    outcome: Hashable = None
    """Call and result; `None` where either is unknown."""
    failed: bool = False
    refused: bool = False
    novel: bool = False


Found: TypeAlias = tuple[str, str, float]
"""Rule, action and count."""


class Said(NamedTuple):
    """What the rules say about a step, at its start or at its end."""

    refused_by: str | None
    """The first rule that says stop, also where it has said so before."""
    news: tuple[Found, ...]
    """What had not been reported in this run."""


# How often it has happened, this step included.


def steps(before: Sequence[Done], step: Done) -> int:
    return sum(past.kind != "agent" for past in (*before, step))


def of_kind(before: Sequence[Done], step: Done) -> int:
    return sum(past.kind == step.kind for past in (*before, step))


def of_tool(before: Sequence[Done], step: Done) -> int:
    return sum((past.kind, past.name) == (step.kind, step.name) for past in (*before, step))


def in_a_row(keys: Sequence[Hashable]) -> int:
    """Say how many of the last keys are equal, and known."""
    equal = next((n for n, key in enumerate(reversed(keys)) if key != keys[-1]), len(keys))
    return 0 if keys[-1] is None else equal


def is_pattern(calls: Sequence[Hashable], window: int) -> bool:
    """Say whether the last calls are two full periods of something, or more."""
    last = calls[-window:]
    periods = range(1, window // 2 + 1)
    filled = len(last) == window and None not in last
    return filled and any(last[period:] == last[:-period] for period in periods)


def repeated_result(before: Sequence[Done], step: Done) -> int:
    """Count equal outcomes since the last other success that was new."""
    return _repeated(before, step.outcome, lambda past: past.outcome, lambda past: past.outcome)


def repeated_call(before: Sequence[Done], step: Done) -> int:
    """Count equal calls with unknown results since the last other success that was new."""
    key = step.call if step.outcome is None else None
    return _repeated(
        before, key, lambda past: past.call, lambda past: past.outcome is None and past.call
    )


def _repeated(
    before: Sequence[Done],
    key: Hashable,
    is_other: Callable[[Done], Hashable],
    counted_as: Callable[[Done], Hashable],
) -> int:
    count, others = 0 if key is None else 1, set[Hashable]()
    for past in reversed(before):
        resets = past.novel and not past.failed
        if key is None or (resets and is_other(past) != key) or len(others) == _base.REMEMBERED:
            break
        if resets or counted_as(past) == key:
            others.clear()
        elif counted_as(past):
            others.add(counted_as(past))
        count += counted_as(past) == key
    return count


def rounds(before: Sequence[Done], step: Done) -> int:
    """Count rounds of 2 to 8 calls, two of them different, with no news after the first."""
    run = [*before, step]
    blind = next((n for n, past in enumerate(reversed(run)) if past.call is None), len(run))
    known = run[len(run) - blind :]
    return max(_rounds(known, period) for period in range(2, LONGEST_CYCLE + 1))


def _rounds(run: Sequence[Done], period: int) -> int:
    matched = 0
    for newer, older in zip(reversed(run), reversed(run[:-period]), strict=False):
        if newer.call != older.call or (newer.novel and newer.outcome is not None):
            break
        matched += 1
    one_call = len({past.call for past in run[-period:]}) == 1
    return 0 if matched < period or one_call else matched // period + 1


class Log:
    """What a run has done, in the order in which each thing became known."""

    def __init__(self) -> None:
        self.started: list[Done] = []
        self.calls: list[Done] = []
        self.results: list[Done] = []

    def is_novel(self, done: Done) -> bool:
        """Say whether the agent has not had this outcome, among the last ones of the run.

        Nothing is new about a step that was refused and ran.
        """
        seen = distinct((_seen_as(past) for past in reversed(self.results)), run_state.SEEN)
        return not done.refused and (done.call is None or _seen_as(done) not in seen)

    def life_of(self, agent: str) -> int:
        """Say which life of an agent's counters goes on with a step that starts now."""
        repeatable = [past for past in reversed(self.started) if past.life is not None]
        if agent not in distinct((past.agent for past in repeatable), rule_sets.AGENTS):
            return len(self.started)
        return next(past.life for past in repeatable if past.agent == agent) or 0

    def found(self, policy: Policy, step: Done, *, at_end: bool, late: bool) -> list[Found]:
        """Ask all rules about a step, and return what they say in the order of the table."""
        limits, rules = policy.settings
        found: list[Found] = []
        if not at_end:
            found += self._of_run(limits, step)
        if limits.max_duration_s is not None and step.elapsed_s >= limits.max_duration_s:
            found.append(("time_budget", "abort", step.elapsed_s))
        if step.life is not None and not at_end:
            found += self._of_names(limits, step)
        if step.life is not None and step.call is not None and at_end == late:
            found += self._of_calls(limits, step)
        if step.life is not None:
            found += self._of_results(rules, step, at_end=at_end)
        return sorted(found, key=lambda entry: ORDER.index(entry[0]))

    def _of_run(self, limits: Limits, step: Done) -> Iterator[Found]:
        before = self.started
        if step.kind != "agent":
            yield from over("step_budget", steps(before, step), limits.max_steps)
        if step.kind == "llm":
            yield from over("llm_call_budget", of_kind(before, step), limits.max_llm_calls)
        if step.kind == "tool":
            limit = limits.max_calls_per_tool.get(step.name)
            of_it = over("tool_call_budget", of_tool(before, step), limit)
            in_all = over("tool_call_budget", of_kind(before, step), limits.max_tool_calls)
            yield from [*in_all, *of_it][:1]

    def _of_names(self, limits: Limits, step: Done) -> Iterator[Found]:
        equal = in_a_row([past.name for past in (*_own(self.started, step), step)])
        if not limits.compare_arguments:
            yield from over("repeated_call_limit", equal, limits.max_repeated_calls)
        yield from over("same_tool", equal, limits.max_same_tool_calls)

    def _of_calls(self, limits: Limits, step: Done) -> Iterator[Found]:
        window = limits.loop_pattern_window
        calls = [past.call for past in (*_own(self.calls, step), step)]
        if limits.compare_arguments:
            yield from over("repeated_call_limit", in_a_row(calls), limits.max_repeated_calls)
        if window is not None and is_pattern(calls, window):
            yield "loop_pattern", "abort", window

    def _of_results(
        self, rules: Mapping[str, Thresholds], step: Done, *, at_end: bool
    ) -> Iterator[Found]:
        before = _own(self.results, step)
        if at_end:
            yield from judged("repeated_result", repeated_result(before, step), rules)
        yield from judged("repeated_call", repeated_call(before, step), rules)
        if at_end or (before and before[-1].outcome is None):
            yield from judged("cyclic_calls", rounds(before, step), rules)


def _own(log: Iterable[Done], step: Done) -> list[Done]:
    return [past for past in log if past.life == step.life]


def over(rule: str, count: int, limit: int | None) -> Iterator[Found]:
    """Hold a count against a limit of which the N-th is allowed."""
    if limit is not None and count > limit:
        yield rule, "abort", count


def judged(rule: str, count: int, rules: Mapping[str, Thresholds]) -> Iterator[Found]:
    """Hold a count against the thresholds of a rule."""
    thresholds = rules.get(rule, Thresholds())
    for action in ("abort", "warn"):
        line = getattr(thresholds, action)
        if line is not None and count >= line:
            yield rule, action, count
            return


def distinct(keys: Iterable[Hashable], most: int) -> list[Hashable]:
    """Return the first different keys."""
    found: list[Hashable] = []
    for key in keys:
        if key is not None and key not in found and len(found) < most:
            found.append(key)
    return found


def _seen_as(done: Done) -> Hashable:
    if done.call is None:
        return None
    return done.agent, done.call if done.outcome is None else done.outcome


class Play:
    """A run that is played through the definitions."""

    def __init__(self, policy: Policy, *, reports_once: bool = True) -> None:
        self._policy = policy
        self._reports_once = reports_once
        self._log = Log()
        self._waiting: list[Done] = []
        self._reported: set[tuple[str, str]] = set()
        self._held: str | None = None
        self._records_come = self._results_come = False

    def start(self, timed: Timed, now_s: int, *, commits: bool) -> tuple[Said, Done | None]:
        """Let a step start; it does not if it is refused, unless such steps happen all the same."""
        step, log = timed.step, self._log
        repeatable = step.kind == "tool" and not step.approved
        life = log.life_of(step.agent) if repeatable else None
        call = None if timed.late else _call(step)
        done = Done(step.kind, step.name, step.agent, life, now_s, call)
        found = log.found(self._policy, done, at_end=False, late=False)
        refused_by = self._refused_by(found)
        news = self._news(found)
        if refused_by is not None and not commits:
            return Said(refused_by, news), None
        done = done._replace(refused=refused_by is not None)
        log.started.append(done)
        if repeatable and (call is not None or not self._records_come):
            log.calls.append(done)
        if repeatable and not self._records_come:
            self._conclude(done)
        elif repeatable and not self._results_come:
            self._waiting.append(done)
        elif step.kind == "llm" and self._records_come:
            self._give_up_waiting()
        return Said(refused_by, news), done

    def end(self, timed: Timed, done: Done, now_s: int) -> Said:
        """Let a step end."""
        step, log = timed.step, self._log
        if step.kind == "tool" and not self._results_come:
            self._results_come = True
            log.results.clear()
            self._waiting.clear()
        self._records_come = True
        late = done.call is None
        call = None if done.life is None else _call(step)
        result = step.result if step.error is None else ("failed", step.error)
        outcome = None if call is None or result is UNKNOWN else (call, result)
        ended = done._replace(
            elapsed_s=now_s, call=call, outcome=outcome, failed=step.error is not None
        )
        ended = ended._replace(novel=log.is_novel(ended))
        found = log.found(self._policy, ended, at_end=True, late=late)
        if finished(step):
            found = [(rule, "warn", count) for rule, _, count in found]
        if ended.life is not None:
            log.results.append(ended)
            log.calls += [ended] if late else []
        self._held = self._refused_by(found)
        return Said(self._held, self._news(found))

    def _refused_by(self, found: list[Found]) -> str | None:
        return self._held or next((rule for rule, action, _ in found if action == "abort"), None)

    def _news(self, found: list[Found]) -> tuple[Found, ...]:
        news = tuple(entry for entry in found if entry[:2] not in self._reported)
        self._reported.update(entry[:2] for entry in news if self._reports_once)
        return news

    def _conclude(self, done: Done) -> None:
        """Take it that the result of a call stays unknown."""
        self._log.results.append(done._replace(novel=self._log.is_novel(done)))

    def _give_up_waiting(self) -> None:
        for done in self._waiting[-run_state.WAITING :]:
            self._log.calls += [done] if done.call is None else []
            self._conclude(done)
        self._waiting.clear()


def _call(step: Step) -> Hashable:
    unknown = step.arguments is UNKNOWN or step.kind != "tool" or step.approved
    return None if unknown else (step.name, step.arguments)


def said_of(
    word: Iterable[Timed],
    policy: Policy,
    recording: Recording,
    *,
    commits: bool,
    reports_once: bool = True,
) -> Iterator[Said]:
    """Play a run, and yield what is said of each step at its start, and at its end if recorded.

    `commits` says that refused steps happen all the same.
    """
    play = Play(policy, reports_once=reports_once)
    now_s, began_s = 0, None
    for timed in word:
        now_s += timed.pause_s
        began_s = now_s if began_s is None else began_s
        said, done = play.start(timed, now_s - began_s, commits=commits)
        yield said
        if done is not None and is_recorded(timed.step, recording):
            now_s += timed.took_s
            yield play.end(timed, done, now_s - began_s)


def is_recorded(step: Step, recording: Recording) -> bool:
    """Say whether the application tells what came out of a step."""
    return recording == "all" or (recording == "turns" and step.kind == "llm")
