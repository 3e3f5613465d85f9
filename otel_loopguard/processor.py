"""The span processor: live spans in, telemetry and stops out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from otel_loopguard.abort.aborted import REFUSALS
from otel_loopguard.abort.entry_points import guard_entries, leave_entries
from otel_loopguard.abort.hooks import checked as checked_hooks
from otel_loopguard.abort.ladder import checked as checked_built_in
from otel_loopguard.abort.model_gate import guard_requests, leave_requests
from otel_loopguard.abort.veto import Veto
from otel_loopguard.admission import Admission
from otel_loopguard.aside import Aside
from otel_loopguard.blind_spots import BlindWarning
from otel_loopguard.checkpoints import Checkpoints
from otel_loopguard.decisions import RunReport
from otel_loopguard.dialects import Dialect
from otel_loopguard.environment import first_said, read_configuration, resolve_mode
from otel_loopguard.faults import Faults
from otel_loopguard.installed_dialects import chosen
from otel_loopguard.live_spans import record_of
from otel_loopguard.options.errors import wrong
from otel_loopguard.options.kinds import (
    BUILT_IN,
    AbortException,
    BuiltIn,
    abort_exception_of,
)
from otel_loopguard.policy import Mode, Policy
from otel_loopguard.reactions import Reactions
from otel_loopguard.reloading import Reloading
from otel_loopguard.runs import Run
from otel_loopguard.sampling import DropWarning
from otel_loopguard.stopwatch import Stopwatch
from otel_loopguard.surroundings import Surroundings, run_in_baggage
from otel_loopguard.telemetry import Telemetry
from otel_loopguard.told import Told, untold
from otel_loopguard.tracker import RunTracker

if TYPE_CHECKING:
    import os

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.trace import ReadableSpan, Span

    from otel_loopguard.abort.hooks import AbortHook
    from otel_loopguard.spans import SpanRecord
    from otel_loopguard.steps import Step

_HOOK_TIMEOUT_S = 2.0

_logger = logging.getLogger(__name__)
_GUARDS: WeakSet[LoopGuardSpanProcessor] = WeakSet()


class LoopGuardSpanProcessor(SpanProcessor):
    """Watches the spans of agents, reports runaways, and stops them.

        provider.add_span_processor(LoopGuardSpanProcessor(mode="enforce"))

    Add it to any provider that has `add_span_processor`, before or after exporters. Nothing but
    `RunAborted`, or `RunInterrupted` where you ask for it, ever leaves it, and that only from a
    model request, or a call, that is refused.

    Args:
        policy: the rules and limits, or the path of a policy file. If `None`: the file that
            `OTEL_LOOPGUARD_CONFIG` names, else the default policy. The variables `OTEL_LOOPGUARD_*`
            are laid over those, and a file is read anew when it has changed.
        mode: `observe` reports, `enforce` also stops. If `None`: `OTEL_LOOPGUARD_MODE`, else the
            policy's, else `enforce` if `abort_hooks` or `abort` is given, else `observe`.
        abort_hooks: called when a run trips, in order; see `AbortHook`.
        abort: the built-in stops to use; `()` for none. If `None`: `OTEL_LOOPGUARD_ABORT`, else
            all of them: `integration`, `gate`, `veto` and `cancel`.
        abort_exception: what leaves it then: `ordinary` for `RunAborted`, `base` for
            `RunInterrupted`. If `None`: `OTEL_LOOPGUARD_ABORT_EXCEPTION`, else `ordinary`.
        meter_provider: where metrics go; the global one if `None`.
        logger_provider: where log events go; the global one if `None`.
        log_events: whether violations are written as log events too. If `None`:
            `OTEL_LOOPGUARD_LOG_EVENTS`, else they are.
        hook_timeout_s: seconds that one call of a hook may take. If `None`:
            `OTEL_LOOPGUARD_HOOK_TIMEOUT_S`, else 2.
        dialects: how spans are read; those installed and built in if `None`.
        clock: seconds on a line that never goes back, by which the runs' limits on time go.

    Raises:
        PolicyError: for a mode or a built-in stop that does not exist, a clock that cannot be
            called, and any mistake in the variables or the file.

    """

    def __init__(  # noqa: PLR0913 -- each is an option
        self,
        policy: Policy | str | os.PathLike[str] | None = None,
        *,
        mode: Mode | None = None,
        abort_hooks: Iterable[AbortHook] = (),
        abort: Iterable[BuiltIn] | None = None,
        abort_exception: AbortException | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        log_events: bool | None = None,
        hook_timeout_s: float | None = None,
        dialects: Iterable[Dialect] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given: object = clock
        if not callable(given):
            raise wrong("clock", "a callable", given)
        said = read_configuration(policy=policy)
        timeout_s = first_said(hook_timeout_s, said.hook_timeout_s, _HOOK_TIMEOUT_S)
        hooks = checked_hooks(abort_hooks, timeout_s)
        stops = said.abort if abort is None else abort
        can_stop = bool(hooks) or stops is not None
        mode_of = partial(resolve_mode, mode, can_stop=can_stop)
        self.mode: Mode = mode_of(said.mode)
        enforces = self.mode == "enforce"
        built_in = checked_built_in(BUILT_IN if stops is None else stops)
        gated = enforces and "gate" in built_in
        raised = abort_exception_of(abort_exception, "abort_exception")
        self._refusal = REFUSALS[raised or said.abort_exception or "ordinary"]
        read_by = chosen(dialects)
        vetoes = enforces and "veto" in built_in
        self._veto = Veto(read_by, self._refusal, acts=vetoes)
        self._tracker = RunTracker(
            said.policy,
            live=True,
            dialects=read_by,
            prevented_kinds=frozenset(("llm",)) if gated else frozenset(),
            vetoes=self._can_veto,
            clock=clock,
            on_closed=self._closed,
        )
        self._telemetry = Telemetry(
            said.policy,
            self.mode,
            self._tracker.runs,
            meter_provider=meter_provider,
            logger_provider=logger_provider,
            log_events=first_said(log_events, said.log_events, True),  # noqa: FBT003 -- the default
        )
        self._blind = BlindWarning()
        self._drops = DropWarning()
        self._is_shut_down = False
        self._surroundings = Surroundings(self._tracker.runs)
        self._aside = Aside()
        self._fault = Faults(self._telemetry.fault, self._aside)
        self._stopwatch = Stopwatch(self._telemetry.took, self._aside, self._fault)
        self._reactions = Reactions(
            self._tracker,
            self._telemetry,
            self._drops,
            self._aside,
            self._fault,
            hooks=hooks,
            built_in=built_in,
            timeout_s=timeout_s,
            enforces=enforces,
        )
        self._reloading = Reloading(
            said, mode_of, self._tracker.runs, self._telemetry, self._aside, self._fault
        )
        self.checkpoints = Checkpoints(
            self._tracker,
            self._reactions,
            self._surroundings,
            self._aside,
            self._fault,
            look=self._reloading.look,
            refusal=self._refusal,
            blocks=enforces and "integration" in built_in,
        )
        """Where code that makes calls asks before it makes them."""
        self.integrations = said.integrations
        """The integrations that `OTEL_LOOPGUARD_INTEGRATIONS` names; `None` for all."""
        _GUARDS.add(self)
        guard_entries(self._surroundings)
        if gated:
            guard_requests(self)
        if can_stop and not enforces:
            _logger.warning("mode is 'observe': nothing will be stopped, although stops were given")
        for warning in said.policy.warnings:
            _logger.warning("policy: %s", warning)

    @property
    def policy(self) -> Policy:
        """What runs go by that begin now."""
        return self._tracker.runs.policy

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Take in a span that starts."""
        if self._is_shut_down or self._aside.depth:
            return
        verdict = began_s = None
        try:
            try:
                if next(self._stopwatch.starts):
                    began_s = time.perf_counter()
                self._reloading.look()
                if not self._surroundings.settled:
                    self._surroundings.look(span, parent_context)
                named = partial(run_in_baggage, parent_context)
                verdict = self._tracker.started(record_of(span), span, named)
                if verdict is not None:
                    self._reactions.act(verdict)
            except Exception as error:  # noqa: BLE001 -- telemetry must never break the application
                self._fault(error)
            if verdict is not None and verdict.vetoed_by is not None:
                self._veto.end(span, verdict.vetoed_by, self._fault)
                raise self._refusal(verdict.run.report(), verdict.run.id)
        finally:
            if began_s is not None:
                self._stopwatch.stop("start", began_s)

    def on_end(self, span: ReadableSpan) -> None:
        """Take in a span that has ended."""
        if self._is_shut_down:
            return
        began_s = None
        try:
            if next(self._stopwatch.ends):
                began_s = time.perf_counter()
            record = record_of(span)
            if self._aside.depth and self._tracker.runs.spans.get(record.span_id) is None:
                return
            verdict = self._tracker.ended(record)
            if verdict is not None:
                self._reactions.act(verdict)
                self._blind.ended(verdict.step, span)
        except Exception as error:  # noqa: BLE001 -- telemetry must never break the application
            self._fault(error)
        finally:
            if began_s is not None:
                self._stopwatch.stop("end", began_s)

    def admit(self, read: Callable[[], Told | None] = untold) -> Admission | None:
        """Let the model request of the calling code leave, or raise `RunAborted`.

        `read` returns what the request tells its model; it is called if its run is not known.
        """
        if self._aside.depth:
            return None
        try:
            self._reloading.look()
            span = trace.get_current_span()
            self._drops.requested(span)
            admission = Admission(self._tracker, span.get_span_context().span_id, read)
            if admission.verdict is not None:
                self._reactions.act(admission.verdict)
        except Exception as error:  # noqa: BLE001 -- a fault of ours never blocks a request
            self._fault(error)
            return None
        if admission.run is None or admission.refused_by is None:
            return admission
        try:
            self._reactions.ladder.refused(admission.refused_by, admission.refusals)
        except Exception as error:  # noqa: BLE001 -- nor does it let one of a refused run pass
            self._fault(error)
        raise self._refusal(admission.run.report(), admission.run.id)

    def shutdown(self) -> None:
        """Stop watching, and let every request pass again."""
        self._is_shut_down = True
        _GUARDS.discard(self)
        self.checkpoints.close()
        self._reactions.timer.stop()
        self._telemetry.leave()
        leave_requests(self)
        leave_entries(self._surroundings)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 -- nothing waits
        """Do nothing: nothing is held back."""
        return True

    def _can_veto(self, record: SpanRecord, step: Step) -> bool:
        """Say whether only what is raised at a span's start keeps its call from being made."""
        is_asked = record.scope in self.checkpoints.scopes
        return not is_asked and self._veto.can_stop(record, step)

    def _closed(self, run: Run, report: RunReport) -> None:
        """Hear that a run has ended that no span ended."""
        self._reactions.closed(run, report)


def guards_of_process() -> tuple[LoopGuardSpanProcessor, ...]:
    """Return the guards that are there and not shut down, in no order."""
    return tuple(_GUARDS)
