"""The engine: is this run still sane? A function of its inputs alone, one guard per run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from otel_loopguard.decisions import NOTHING_TAKEN, Decision, RunReport, Stats, Taken, Violation
from otel_loopguard.detectors import Facts
from otel_loopguard.endings import Status, finished
from otel_loopguard.engine.callbacks import Callbacks
from otel_loopguard.engine.learning import learn
from otel_loopguard.engine.reports import Found
from otel_loopguard.engine.rule_sets import Carried
from otel_loopguard.engine.run_state import RunState
from otel_loopguard.listeners import LISTENERS, Said, tell
from otel_loopguard.options.errors import wrong
from otel_loopguard.policy import LimitOptions, Policy
from otel_loopguard.pricing import pricing_of
from otel_loopguard.steps import Step

if TYPE_CHECKING:
    from typing_extensions import Unpack

_DEFAULT = Policy()


class LoopGuard:
    """Decides, step by step, whether a run may go on. One guard per run, one caller at a time.

    `check` asks whether a step may happen and counts it if so; `record` tells what came out of it.
    Without a policy the default rules are in force; keyword arguments set limits on top.

        guard = LoopGuard(max_steps=20)
        decision = guard.check(Step(kind="tool", name="search", arguments={"q": "x"}))
        if not decision.allowed:
            raise LoopGuardError(decision)

    Args:
        policy: the rules and limits; the default policy if `None`.
        clock: seconds on any monotonic line; used for steps that bring no time of their own.
        on_violation: called with each refusal and each newly reported violation. What it raises is
            swallowed and counted in `stats().failed_callbacks`.
        on_facts: told what is known of each step that has come back, before the rules are: for
            those who measure rules. What it raises is swallowed and counted as above.
        carried: what earlier runs of the same conversation have used up (`carried()` of theirs).
        limits: `max_steps`, `max_llm_calls` and the other limits of `Policy`.

    Raises:
        PolicyError: for an unknown limit or a bad value.

    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_violation: Callable[[Violation], object] | None = None,
        on_facts: Callable[[Facts], object] | None = None,
        carried: Carried | None = None,
        **limits: Unpack[LimitOptions],
    ) -> None:
        base = _DEFAULT if policy is None else Policy.checked(policy)
        callback: object = on_violation
        if callback is not None and not callable(callback):
            raise wrong("on_violation", "a callable or None", callback)
        self.policy = base.with_limits(**limits) if limits else base
        self._clock = clock
        self._callbacks = Callbacks(on_violation, on_facts)
        self._run: RunState | None = None
        self._held: Violation | None = None
        self._own_time = False
        priced = self.policy.settings.limits.max_cost_usd is not None
        self._pricing = pricing_of(self.policy.settings.usage, estimate=priced)
        self._carried = carried
        """What earlier runs of the conversation have used up, where the policy's scope is that."""
        self.is_asked_by_loop = True
        """Whether the loop itself asks; else whoever does says what the run comes to."""

    def start(self, at: float | None = None) -> None:
        """Begin a fresh run, at `at` seconds if given. Optional: the first check begins one."""
        self._begin_run(self._clock() if at is None else at)
        self._own_time = at is not None

    def preview(self, step: Step, *, ahead: int = 0) -> Decision:
        """Say what `check` would say, and forget it.

        `ahead` model calls have been let through and are not steps yet: they count as if they were.
        """
        now_s = self._clock() if step.started_s is None else step.started_s
        run = self._run or self._fresh(now_s)
        opened, _, refusal, news = run.begin(step, now_s, ahead=ahead)
        refusal = self._held or refusal
        count = opened.number if refusal is None else run.totals.steps
        return Decision(allowed=refusal is None, step_count=count, refusal=refusal, violations=news)

    def check(self, step: Step, *, commit: bool = False, ahead: int = 0) -> Decision:
        """Say whether the step may happen, and count it if so. Never raises for a valid `Step`.

        A refused step leaves the run as if nobody had asked. With `commit=True` it is counted all
        the same: for steps that nobody can prevent. `ahead` is that of `preview`.
        """
        decision = self._check(step, commit=commit, ahead=ahead)
        return self._heard(step, decision) if LISTENERS else decision

    def _check(self, step: Step, *, commit: bool, ahead: int) -> Decision:
        now_s = self._latest() if step.started_s is None else step.started_s
        run = self._run or self._begin_run(now_s)
        opened, facts, refusal, news = run.begin(step, now_s, ahead=ahead)
        refusal = self._held or refusal
        if refusal is None or commit:
            run.commit(opened, facts, step, now_s, refused=refusal is not None)
            self._own_time = self._own_time or step.started_s is not None
        if refusal is None and not news:
            return Decision(allowed=True, step_count=run.totals.steps)
        return self._said(run, (refusal, news))

    def record(self, step: Step) -> Decision:
        """Tell what came out of a step: result, error, tokens, time. May refuse the run from here.

        It completes the open step with the same span, else the same call id, else the oldest open
        one of the same kind, name and arguments; with none open the step is checked and counted
        first, as of its own start or the last moment before. An abort found here holds: every
        later check is refused until `end` or `reset`.
        """
        decision = self._record(step)
        return self._heard(step, decision, over=True) if LISTENERS else decision

    def _record(self, step: Step) -> Decision:
        given_s = step.started_s if step.ended_s is None else step.ended_s
        now_s = self._latest() if given_s is None else given_s
        run = self._run or self._begin_run(now_s if step.started_s is None else step.started_s)
        refusal = self._held
        news: tuple[Violation, ...] = ()
        opened = run.open.find(step)
        if opened is None:
            began_s = run.totals.last_s if step.started_s is None else step.started_s
            opened, facts, found, news = run.begin(
                step, began_s, phase="post", forgiven=finished(step)
            )
            refusal = refusal or found
            run.commit(opened, facts, step, began_s, refused=refusal is not None)
            run.reports.note(news)
        found, more = run.finish(opened, step, now_s)
        self._own_time = self._own_time or given_s is not None
        self._held = held = refusal or found
        if more:
            run.reports.note(more)
            news += more
        if news:
            self._callbacks.tell(news)
        return Decision(
            allowed=held is None, step_count=run.totals.steps, refusal=held, violations=news
        )

    def learn(self, step: Step, *, commit: bool = False) -> Decision:
        """Tell the arguments of a tool call that is open, before it is made: may it be?

        It has been counted, so only what looks at more than that is asked. `commit` is as of
        `check`: it is made whatever is said.
        """
        now_s = self._latest()
        run = self._run or self._begin_run(now_s)
        return self._said(run, learn(run, step, now_s, self._held, commit=commit))

    def not_made(self, call_id: str | None) -> None:
        """Tell the id of a tool call that was refused and is not made: nothing will answer it."""
        if self._run is not None:
            self._run.open.not_made(call_id)

    def stir(self) -> None:
        """Tell that something happens of which it is not known yet what step it is: no silence."""
        if self._run is not None:
            self._run.totals.last_s = max(self._run.totals.last_s, self._latest())

    def go_on(self) -> None:
        """Let go of an abort that holds: somebody else keeps what it was about from going on."""
        self._held = None

    def due_s(self) -> float | None:
        """Return when a limit on time will be reached if nothing happens until then.

        Seconds on its time line; `None` without a limit on time, or without a run. Ask `tick` then.
        """
        return None if self._run is None or self._held is not None else self._run.due_s()

    def tick(self, at: float | None = None) -> Decision:
        """Say what it means that nothing has happened until now, or until `at` seconds.

        The violation carries the step that is open, or the last one. An abort found here holds, as
        one that `record` finds.
        """
        now_s = self._clock() if at is None else at
        run = self._run
        if run is None:
            return Decision(allowed=True, step_count=0)
        found, news = run.tick(now_s)
        self._held = self._held or found
        return self._heard(None, self._said(run, (self._held, news), is_asked=False))

    def not_executed(self) -> None:
        """Tell that a tool call which was counted is no execution of a tool.

        It runs an agent, or is not made after all. To the budgets it stays an attempted call.
        """
        if self._run is not None:
            self._run.totals.take_back()

    def called_unseen(self, calls: int) -> None:
        """Tell of calls of tools that nobody will say more of: they are counted, and not judged."""
        if self._run is not None:
            self._run.totals.take_back(-calls)

    @property
    def is_complete(self) -> bool:
        """Whether the last turn finished the run, and nothing has happened since."""
        return self._run is not None and self._run.totals.is_complete

    def person_spoke(self) -> None:
        """Tell that a person has said something: the next model call is an answer to it."""
        if self._run is not None:
            self._run.spoken = True

    def stats(self) -> Stats:
        """Return the counts of the run so far."""
        now_s = self._latest()
        run = self._run or self._fresh(now_s)
        return run.totals.stats(now_s, run.open, run.outcomes, self._callbacks.failed)

    def taken(self) -> Taken:
        """Return what the run has taken so far; nothing where there is none. On any thread."""
        run = self._run  # read once: another thread may end it
        return NOTHING_TAKEN if run is None else run.totals.taken()

    def end(self, status: Status | None = None) -> RunReport:
        """End the run and return its report; the next check begins a fresh one.

        `status` overrides how the run's last step says that it ended.
        """
        report = self.report(status)
        if LISTENERS and self.is_asked_by_loop:
            tell(Said(guard=self, report=report))
        if self.policy.settings.scope == "conversation" and self._run is not None:
            self._carried = self._run.carried()
        self._run = self._held = None
        self._callbacks.failed = 0
        return report

    def report(self, status: Status | None = None) -> RunReport:
        """Return the report of the run so far, without ending it."""
        now_s = self._latest()
        run = self._run or self._fresh(now_s)
        return run.totals.report(now_s, status, run.reports.all(), run.open.call_ids())

    def reset(self) -> None:
        """Forget the run; the next check begins a fresh one."""
        if self._run is not None:  # to those who listen that is its end
            self.end()

    def carried(self) -> Carried | None:
        """Return what the conversation has used up so far, for the guard of its next run.

        `None` unless the policy's scope is `conversation`.
        """
        if self.policy.settings.scope != "conversation" or self._run is None:
            return self._carried
        return self._run.carried()

    def _heard(self, step: Step | None, decision: Decision, *, over: bool = False) -> Decision:
        """Return what was decided, once those who listen have heard it."""
        if LISTENERS and self.is_asked_by_loop:
            tell(Said(guard=self, step=step, decision=decision, over=over))
        return decision

    def _said(self, run: RunState, found: Found, *, is_asked: bool = True) -> Decision:
        """Tell what is news, and why a step is refused where one `is_asked` about; return both."""
        refusal, news = found
        run.reports.note(news)
        if is_asked and refusal is not None and refusal not in news:
            self._callbacks.tell((refusal,))
        self._callbacks.tell(news)
        return Decision(
            allowed=refusal is None, step_count=run.totals.steps, refusal=refusal, violations=news
        )

    def _begin_run(self, at_s: float) -> RunState:
        self.reset()
        self._run = self._fresh(at_s)
        return self._run

    def _fresh(self, at_s: float) -> RunState:
        on_facts = self._callbacks.facts
        return RunState(self.policy.settings, self._pricing, at_s, self._carried, on_facts)

    def _latest(self) -> float:
        if self._run is not None and self._own_time:
            return self._run.totals.last_s
        return self._clock()
