"""What each rule means, said once more, slowly: over the whole history of a run.

A definition here may look at every step there ever was. It shares nothing with the engine but the
steps, the thresholds and the horizons. `said_of` plays a run through the definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.detectors import DETECTORS, RULES, Limits, Thresholds, _base
from otel_loopguard.endings import ending_of, finished
from otel_loopguard.engine import agent_rules, memory, rule_sets, sight
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step, StepKind

LONGEST_CYCLE = 8
WINDOW = 10
MINUTE_S = 60
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

    kind: StepKind
    name: str
    agent: str
    life: int
    """Which life of the agent's counters it belongs to."""
    approved: bool
    """It is a call that may be repeated."""
    elapsed_s: float
    batch: Hashable = None
    """Which model call of the agent came before; `None` if none did."""
    call: Hashable = None
    """Name and arguments; `None` where the arguments are unknown."""
    outcome: Hashable = None
    """Call and result; `None` where either is unknown."""
    error: str | None = None
    refused: bool = False
    novel: bool = False
    told: bool = False
    """It was recorded, or it waited until it was clear that it would not be."""
    step: Step | None = None
    """What was recorded."""

    @property
    def failed(self) -> bool:
        """Whether it is known to have failed."""
        return self.error is not None

    @property
    def is_turn(self) -> bool:
        """Whether it is a model call that is known to have succeeded."""
        return self.kind == "llm" and self.step is not None and not self.failed

    @property
    def turn(self) -> Step:
        """What was recorded of a turn."""
        return self.step or Step(kind=self.kind)


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


def no_novelty(before: Sequence[Done], step: Done) -> int:
    """Count calls in a row that brought nothing new."""
    row = takewhile(lambda past: not past.novel, (step, *reversed(before)))
    known = [past for past in row if past.outcome is not None]
    return 0 if step.outcome is None or step.novel else responses(known[::-1])


def revisited_results(before: Sequence[Done], step: Done) -> int:
    """Count those that brought nothing new among the last ten, this one included."""
    known = [past for past in (*before, step) if past.outcome is not None][-WINDOW:]
    return 0 if step.outcome is None or step.novel else sum(not past.novel for past in known)


def responses(row: Sequence[Done]) -> int:
    """Count calls; different ones that one response asked for count once."""
    return 1 + sum(
        _same_call(one, other) or one.batch is None or one.batch != other.batch
        for one, other in pairwise(row)
    )


def equal_failures(row: Sequence[Done]) -> int:
    """Count how many of the last calls in a row of equal errors were equal."""
    pairs = reversed([*pairwise(row)])
    return 1 + sum(1 for _ in takewhile(lambda pair: _same_call(*pair), pairs))


def _same_call(one: Done, other: Done) -> bool:
    return one.call is not None and (one.agent, one.call) == (other.agent, other.call)


def row_of_errors(before: Sequence[Done], step: Done, *, of_run: bool) -> list[Done]:
    """Return the last equal errors of the same tool or model, or of all tools of the run."""
    row: list[Done] = [step]
    for past in reversed(before):
        ends = past.kind == step.kind and (of_run or past.agent == step.agent)
        same = past.kind == step.kind and (
            of_run or (past.agent, past.name) == (step.agent, step.name)
        )
        unjudged = past.novel or past.outcome is None
        if (ends and not past.failed and unjudged) or (
            same and past.failed and past.error != step.error
        ):
            break
        row += [past] if same and past.failed else []
    return row[::-1]


def failures(before: Sequence[Done], step: Done) -> int:
    """Count failures in a row, of whatever."""
    recorded = [step, *(past for past in reversed(before) if past.step is not None)]
    return sum(1 for _ in takewhile(lambda past: past.failed, recorded))


def idle_turns(before: Sequence[Done], step: Done) -> int:
    """Count turns in a row with no tool asked for or called."""
    told = [step, *(past for past in reversed(before) if past.kind == "tool" or past.is_turn)]
    return sum(1 for _ in takewhile(lambda past: past.is_turn and not asks(past.turn), told))


def cut_turns(before: Sequence[Done], step: Done) -> int:
    """Count turns in a row that the token limit cut."""
    turns = [step, *(past for past in reversed(before) if past.is_turn)]
    return sum(1 for _ in takewhile(lambda past: "length" in past.turn.finish_reasons, turns))


def repeated_output(before: Sequence[Done], step: Done) -> int:
    """Count equal turns since the run brought something new, or something that nobody can judge.

    What another agent says is new if the run had not heard it before.
    """
    said, count = output_of(step.turn), 1
    for place in reversed(range(len(before))):
        past = before[place]
        output = output_of(past.turn) if past.is_turn else None
        if past.kind == "tool" and (past.novel or past.outcome is None):
            break
        heard = {output_of(earlier.turn) for earlier in before[:place] if earlier.is_turn}
        own = past.agent == step.agent
        if output is not None and (output != said if own else output not in heard):
            break
        count += own and output is not None
    return 0 if said is None else count


def extra_turns(before: Sequence[Done]) -> int:
    """Count the turns that finished the task right before, of an agent that uses tools."""
    told = [past for past in before if past.told and (past.kind != "llm" or past.is_turn)]
    acts = any(past.kind == "tool" or (past.is_turn and asks(past.turn)) for past in told)
    last = takewhile(lambda past: past.is_turn and finished(past.turn), reversed(told))
    return sum(1 for _ in last) if acts else 0


def asks(turn: Step) -> bool:
    """Say whether a turn asked for tools."""
    known = turn.tool_calls is not UNKNOWN and len(turn.tool_calls) > 0
    return known or "tool_calls" in turn.finish_reasons


def output_of(turn: Step) -> Hashable:
    """Return what a turn said and asked for; `None` where neither is known."""
    calls = None
    if turn.tool_calls is not UNKNOWN:
        calls = tuple((call.name, call.arguments) for call in turn.tool_calls)
    if turn.output is UNKNOWN:
        return calls or None
    is_silent = calls is None and not turn.output.strip() and asks(turn)
    return None if is_silent else (turn.output.strip(), calls)


class Log:
    """What a run has done, in the order in which each thing became known."""

    def __init__(self) -> None:
        self.results_come = False
        self.started: list[Done] = []
        self.calls: list[Done] = []
        self.results: list[Done] = []
        """What came back since the first tool call did, or before that what seemed not to."""
        self.ended: list[Done] = []
        """What came back."""
        self.events: list[tuple[str, int, str]] = []
        """By agent and life: a `turn`, that one `asks for nothing`, a `call` that counts."""

    def is_novel(self, done: Done) -> bool:
        """Say whether the agent has not had this outcome, among the last ones of the run.

        Nothing is new about a step that was refused and ran.
        """
        seen = distinct((_seen_as(past) for past in reversed(self.results)), memory.SEEN)
        return not done.refused and (done.call is None or _seen_as(done) not in seen)

    def life_of(self, agent: str) -> int:
        """Say which life of an agent's counters goes on with a step that starts now."""
        recent = [*reversed(self.started)]
        if agent not in distinct((past.agent for past in recent), rule_sets.AGENTS):
            return len(self.started)
        return next(past.life for past in recent if past.agent == agent)

    def batch_of(self, step: Step, life: int) -> Hashable:
        """Say which response of the model asks for a call that starts now."""
        if step.batch is not None:
            return step.batch
        whose = step.agent, life
        own = [event for agent, its_life, event in self.events if (agent, its_life) == whose]
        since = [*takewhile(lambda event: event != "turn", reversed(own))]
        ends = "asks for nothing" in since or since.count("call") >= agent_rules.LARGEST_BATCH
        return None if ends or len(since) == len(own) else (step.agent, life, own.count("turn"))

    def found(self, policy: Policy, step: Done, *, at_end: bool, late: bool) -> list[Found]:
        """Ask all rules about a step, and return what they say in the order of the table."""
        limits, rules = policy.settings.limits, policy.settings.rules
        repeatable = step.kind == "tool" and not step.approved
        found: list[Found] = [*self._of_spent(limits, step, at_end=at_end)]
        found += self._of_ends(limits, rules, step) if at_end else self._of_run(limits, step)
        if step.kind == "llm" and not at_end:
            own = _own(self.results, step)
            found += judged("extra_turn", extra_turns(own), rules)
        if limits.max_duration_s is not None and step.elapsed_s >= limits.max_duration_s:
            found.append(("time_budget", "abort", step.elapsed_s))
        if repeatable and not at_end:
            found += self._of_names(limits, step)
        if repeatable and step.call is not None and at_end == late:
            found += self._of_calls(limits, step)
        if repeatable:
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
        if step.kind != "agent" and limits.max_steps_per_minute is not None:
            counted = [past for past in before if past.kind != "agent"]
            recent = sum(step.elapsed_s - past.elapsed_s < MINUTE_S for past in counted)
            if recent >= limits.max_steps_per_minute:
                yield "step_rate", "abort", limits.max_steps_per_minute + 1

    def _of_spent(self, limits: Limits, step: Done, *, at_end: bool) -> Iterator[Found]:
        known = [past.turn for past in self.ended] + ([step.turn] if at_end else [])
        read = sum(past.input_tokens or 0 for past in known)
        written = sum(past.output_tokens or 0 for past in known)
        spent = (
            *over("token_budget", read, limits.max_input_tokens),
            *over("token_budget", written, limits.max_output_tokens),
            *over("token_budget", read + written, limits.max_total_tokens),
        )
        yield from spent[:1]
        cost_usd = sum(past.cost_usd or 0 for past in known)
        yield from over("cost_budget", cost_usd, limits.max_cost_usd)

    def _of_ends(
        self, limits: Limits, rules: Mapping[str, Thresholds], step: Done
    ) -> Iterator[Found]:
        own = _own(self.ended, step)
        if step.kind in ("llm", "tool") and step.failed:
            counted = [past for past in own if past.kind in ("llm", "tool")]
            failed = failures(counted, step)
            yield from over("consecutive_errors", failed, limits.max_consecutive_errors)
            if not step.approved:
                yield from self._of_errors(rules.get("repeated_error", Thresholds()), step)
        if step.kind == "llm":
            tokens = step.turn.input_tokens or 0
            yield from over("context_budget", tokens, limits.max_context_tokens)
        if step.is_turn:
            idle = idle_turns(own, step)
            yield from over("idle_turns", idle, limits.max_turns_without_tool)
            yield from judged("repeated_output", repeated_output(self.results, step), rules)
            yield from judged("truncated_turns", cut_turns(own, step), rules)

    def _of_errors(self, thresholds: Thresholds, step: Done) -> Iterator[Found]:
        before = self.results
        row = row_of_errors(before, step, of_run=False)
        of_run = row_of_errors(before, step, of_run=True) if step.kind == "tool" else row
        count, alike = max(responses(row), responses(of_run)), equal_failures(row)
        found = [*judged("repeated_error", count, {"repeated_error": thresholds})]
        stops = any(action == "abort" for _, action, _ in found)
        if thresholds.abort is not None and not stops and alike >= ceil(thresholds.abort * 2 / 3):
            found = [("repeated_error", "abort", alike)]
        yield from found

    def _of_names(self, limits: Limits, step: Done) -> Iterator[Found]:
        own = [past for past in _own(self.started, step) if past.kind == "tool"]
        equal = in_a_row([past.name for past in (*own, step)])
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
        before = _own_calls(self.results, step)
        if at_end:
            yield from judged("revisited_results", revisited_results(before, step), rules)
            yield from judged("no_novelty", no_novelty(before, step), rules)
            yield from judged("repeated_result", repeated_result(before, step), rules)
        yield from judged("repeated_call", repeated_call(before, step), rules)
        unseen = bool(before) and before[-1].outcome is None and not self.is_novel(step)
        if at_end or unseen:
            yield from judged("cyclic_calls", rounds(before, step), rules)


def _own(log: Iterable[Done], step: Done) -> list[Done]:
    return [past for past in log if (past.agent, past.life) == (step.agent, step.life)]


def _own_calls(log: Iterable[Done], step: Done) -> list[Done]:
    return [past for past in _own(log, step) if past.kind == "tool" and not past.approved]


def over(rule: str, count: float, limit: float | None) -> Iterator[Found]:
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
        self._due: Found | None = None
        """What would have stopped the run, had its last turn not finished it."""
        self._records_come = self._has_concluded = self._is_complete = False

    def start(self, timed: Timed, now_s: int, *, commits: bool) -> tuple[Said, Done | None]:
        """Let a step start; it does not if it is refused, unless such steps happen all the same."""
        step, log = timed.step, self._log
        repeatable = step.kind == "tool" and not step.approved
        life = log.life_of(step.agent)
        call = None if timed.late else _call(step)
        approved = step.kind == "tool" and step.approved
        batch = log.batch_of(step, life)
        done = Done(step.kind, step.name, step.agent, life, approved, now_s, batch, call)
        found = log.found(self._policy, done, at_end=False, late=False)
        found += [self._due] if self._due is not None and step.kind != "agent" else []
        refused_by = self._refused_by(found)
        news = self._news(found)
        if refused_by is not None and not commits:
            return Said(refused_by, news), None
        done = done._replace(refused=refused_by is not None, novel=log.is_novel(done))
        log.started.append(done)
        self._is_complete = self._is_complete and step.kind in ("agent", "custom")
        log.events += [(step.agent, life, "turn")] if step.kind == "llm" else []
        if step.kind == "tool" and (call is not None or not self._records_come):
            log.calls.append(done)
        if repeatable and not self._records_come:
            self._conclude(done)
        elif repeatable and not log.results_come:
            self._waiting.append(done)
        elif step.kind == "llm" and self._records_come:
            self._give_up_waiting()
        return Said(refused_by, news), done

    def end(self, timed: Timed, done: Done, now_s: int) -> Said:
        """Let a step end."""
        step, log = timed.step, self._log
        if step.kind == "tool" and not log.results_come:
            log.results_come = True
            log.results = [] if self._has_concluded else log.results
            self._waiting.clear()
        self._records_come = True
        late = done.call is None
        call = _call(step)
        result = step.result if step.error is None else ("failed", step.error)
        outcome = None if call is None or result is UNKNOWN else (call, result)
        ended = done._replace(
            elapsed_s=now_s, call=call, outcome=outcome, error=step.error, told=True, step=step
        )
        ended = ended._replace(novel=step.kind == "tool" and log.is_novel(ended))
        found = log.found(self._policy, ended, at_end=True, late=late)
        if finished(step) if step.kind == "llm" else self._is_complete and step.kind != "tool":
            stops = [(rule, action, count) for rule, action, count in found if action == "abort"]
            acts = any(
                past.kind == "tool" and not past.approved and past.life == ended.life
                for past in log.results
            )
            self._due = next((e for e in stops if acts or e[0] not in RULES), self._due)
            found = [(rule, "warn", count) for rule, _, count in found]
        if step.kind == "llm":
            self._is_complete = ending_of(step) == "complete"
        log.results.append(ended)
        log.ended.append(ended)
        if step.kind == "tool":
            log.calls += [ended] if late else []
        if step.kind == "tool" and not step.approved:
            log.events.append((ended.agent, ended.life, "call"))
        elif ended.is_turn and (finished(step) or step.tool_calls == ()):
            log.events.append((ended.agent, ended.life, "asks for nothing"))
        self._held = self._refused_by(found)
        return Said(self._held, self._news(found))

    def _refused_by(self, found: list[Found]) -> str | None:
        return self._held or next((rule for rule, action, _ in found if action == "abort"), None)

    def _news(self, found: list[Found]) -> tuple[Found, ...]:
        told = self._reported  # a warning after an abort of the same rule is no news
        fresh = [e for e in found if e[:2] not in told and (e[0], "abort") not in told]
        first = {entry[:2]: next(e for e in fresh if e[:2] == entry[:2]) for entry in fresh}
        news = tuple(first.values())
        self._reported.update(entry[:2] for entry in news if self._reports_once)
        return news

    def _conclude(self, done: Done) -> None:
        """Take it that the result of a call stays unknown."""
        self._has_concluded = True
        novel = done.novel and self._log.is_novel(done)  # when it began, and still
        self._log.results.append(done._replace(novel=novel))
        self._log.events.append((done.agent, done.life, "call"))

    def _give_up_waiting(self) -> None:
        for done in self._waiting[-sight.WAITING :]:
            told = done._replace(told=True)
            self._log.calls += [told] if told.call is None and not told.approved else []
            self._conclude(told)
            self._log.ended.append(told)
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
