"""What the guard writes: events, attributes of the run's span, metrics."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import get_args

from opentelemetry import trace
from opentelemetry._logs import Logger, LoggerProvider, SeverityNumber, get_logger
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, TraceFlags
from opentelemetry.util.types import AttributeValue

from otel_loopguard.decisions import RunReport, Violation
from otel_loopguard.detectors import Action
from otel_loopguard.gaps import KINDS, Gap, Gaps
from otel_loopguard.instruments import SCOPE, Instruments, Stores
from otel_loopguard.policy import Mode, Policy
from otel_loopguard.registry import names
from otel_loopguard.version import VERSION

NAMES = 200
"""Agent and tool names that metrics tell apart; every further one is `_OTHER`."""

_OTHER = "_OTHER"
_LOGS_HAVE_EVENTS = "event_name" in inspect.signature(Logger.emit).parameters
"""Older versions of the API know no log-based events."""


class Telemetry:
    """Writes down what a guard found and did."""

    def __init__(
        self,
        policy: Policy,
        mode: Mode,
        stores: Stores,
        *,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        log_events: bool = True,
    ) -> None:
        log_events = log_events and _LOGS_HAVE_EVENTS
        self._logger = get_logger(SCOPE, VERSION, logger_provider) if log_events else None
        self._instruments = Instruments(
            meter_provider, {names.VERSION: VERSION, names.MODE: mode}, stores
        )
        self._rules = policy.rule_ids
        self._agents: set[str] = set()
        self._announced: set[str] = set()
        self._tools: set[str] = set()

    def announce(self, agent: str | None = None, hooks: Iterable[str] = ()) -> None:
        """Make the series exist at zero, so that the first violation is seen as an increase."""
        self._instruments.steps_after_trip.add(0, _agent_labels(agent))
        self._announce_rules(self._rules, agent)
        for gap in KINDS:
            self._instruments.gaps.add(0, _gap_labels(gap, agent))
        for hook in hooks:
            self._instruments.abort_requests.add(0, {names.ABORT_HOOK: hook})
            for result in ("ok", "failed", "timeout"):
                labels: dict[str, AttributeValue] = {
                    names.ABORT_HOOK: hook,
                    names.ABORT_RESULT: result,
                }
                self._instruments.aborts.add(0, labels)

    def announce_reloads(self) -> None:
        """Make the series of a policy file exist at zero, where there is one."""
        for result in ("ok", "failed"):
            self._instruments.reloads.add(0, {names.POLICY_RELOAD_RESULT: result})

    def reloaded(self, policy: Policy | None) -> None:
        """Count that the policy file has changed; without a policy it cannot be followed."""
        result = "failed" if policy is None else "ok"
        self._instruments.reloads.add(1, {names.POLICY_RELOAD_RESULT: result})
        if policy is not None:
            new = [rule for rule in policy.rule_ids if rule not in self._rules]
            self._rules = policy.rule_ids
            for agent in (None, *self._announced):
                self._announce_rules(new, agent)

    def leave(self) -> None:
        """Tell of the guard no more: it is shut down."""
        self._instruments.leave()

    def run_opened(self, agent: str) -> None:
        """Count a run that goes on."""
        self._instruments.active.add(1, {names.GEN_AI_AGENT_NAME: self._agent(agent)})

    def run_left(self, agent: str) -> None:
        """Count a run no more that goes on in the parent of this process."""
        self._instruments.active.add(-1, {names.GEN_AI_AGENT_NAME: self._agent(agent)})

    def run_ended(self, agent: str, report: RunReport, gaps: Gaps) -> None:
        """Count a run that is over, what it took, and what its steps did not show."""
        labels: dict[str, AttributeValue] = {names.GEN_AI_AGENT_NAME: self._agent(agent)}
        self._instruments.active.add(-1, labels)
        self._instruments.runs.add(
            1,
            {
                **labels,
                names.RUN_STATUS: report.status,
                names.TRIPPED: report.trip is not None,
            },
        )
        self._instruments.steps.record(report.steps, labels)
        self._instruments.duration.record(report.duration_s, labels)
        if report.trip is not None:
            self._instruments.after_trip.record(report.after_trip_s, labels)
        for gap, count in gaps.counts():
            self._instruments.gaps.add(count, _gap_labels(gap, self._agent(agent)))
        for token_type, tokens in (
            ("input", report.input_tokens),
            ("output", report.output_tokens),
        ):
            self._instruments.tokens.record(tokens, {**labels, names.GEN_AI_TOKEN_TYPE: token_type})

    def step_after_trip(self, agent: str) -> None:
        """Count a step that started after its run had tripped, and happened."""
        self._instruments.steps_after_trip.add(1, _agent_labels(self._agent(agent)))

    def violation(
        self,
        violation: Violation,
        run_id: str,
        agent: str,
        spans: Iterable[object],
        *,
        sampled: bool,
    ) -> None:
        """Write a violation to the first of the spans that records, to the log and the metrics.

        `sampled` says whether the offending span is exported, so that an exemplar may name it.
        """
        attributes = _described(violation, run_id)
        target = next((s for s in spans if isinstance(s, Span) and s.is_recording()), None)
        if target is not None:
            target.add_event(names.EVENT_VIOLATION, attributes)
        context = _context_of(violation, sampled=sampled)
        agent_label = self._agent(violation.agent or agent)
        counted = _labels(violation.rule, violation.action, agent_label)
        self._instruments.violations.add(1, counted, context)
        if violation.tool:
            counted = _labels(violation.rule, violation.action, None)
            counted[names.GEN_AI_TOOL_NAME] = _bounded(violation.tool, self._tools)
            self._instruments.by_tool.add(1, counted, context)
        if self._logger is not None:
            severe = violation.action == "abort"
            self._logger.emit(
                event_name=names.EVENT_VIOLATION,
                severity_number=SeverityNumber.ERROR if severe else SeverityNumber.WARN,
                severity_text="ERROR" if severe else "WARN",
                body=violation.message,
                attributes=attributes,
                context=context,
            )

    def hint(self, violation: Violation, agent: str) -> None:
        """Count a hint that a model is given about a violation."""
        agent_label = self._agent(violation.agent or agent)
        self._instruments.hints.add(
            1, {names.RULE: violation.rule, names.GEN_AI_AGENT_NAME: agent_label}
        )

    def describe(self, span: object, run_id: str, report: RunReport) -> None:
        """Write what is known about the run on its topmost span, while that still records.

        Runs may share that span: what it says of one that tripped is not overwritten by another.
        """
        if not isinstance(span, Span) or not span.is_recording():
            return
        written: Mapping[str, AttributeValue] = getattr(span, "attributes", None) or {}
        if written.get(names.TRIPPED) and written.get(names.RUN_ID) != run_id:
            return
        attributes: dict[str, AttributeValue] = {
            names.RUN_ID: run_id,
            names.RUN_STATUS: report.status,
            names.RUN_STEPS: report.steps,
            names.TRIPPED: report.trip is not None,
        }
        if report.trip is not None:
            attributes[names.RULE] = report.trip.rule
            attributes[names.RUN_STEPS_AFTER_TRIP] = report.steps_after_trip
        span.set_attributes(attributes)

    def abort(self, hook: str, result: str, seconds: float) -> None:
        """Count that a stop is `asked` for, or what became of it, so long after the trip."""
        if result == "asked":
            self._instruments.abort_requests.add(1, {names.ABORT_HOOK: hook})
            return
        self._instruments.aborts.add(1, {names.ABORT_HOOK: hook, names.ABORT_RESULT: result})
        if result == "ok":
            self._instruments.time_to_stop.record(seconds, {names.ABORT_HOOK: hook})

    def fault(self, error: BaseException) -> None:
        """Count a fault inside the guard."""
        self._instruments.errors.add(1, {names.ERROR_TYPE: type(error).__qualname__})

    def _announce_rules(self, rules: Iterable[str], agent: str | None) -> None:
        for rule in rules:
            for action in get_args(Action):
                self._instruments.violations.add(0, _labels(rule, action, agent))

    def _agent(self, name: str) -> str:
        if name in self._agents:
            return name
        bounded = _bounded(name, self._agents)
        if bounded not in self._announced:
            self._announced.add(bounded)
            self.announce(bounded)
        return bounded


def _bounded(name: str, known: set[str]) -> str:
    if name not in known:
        if len(known) >= NAMES:
            return _OTHER
        known.add(name)
    return name


def _context_of(violation: Violation, *, sampled: bool) -> Context | None:
    """Return a context with the offending span, for exemplars and log records."""
    if violation.span is None:
        return None
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    offending = SpanContext(*violation.span, is_remote=False, trace_flags=flags)
    return trace.set_span_in_context(NonRecordingSpan(offending), Context())


def _described(violation: Violation, run_id: str) -> dict[str, AttributeValue]:
    described: dict[str, AttributeValue] = {
        names.RULE: violation.rule,
        names.REASON: violation.reason,
        names.ACTION: violation.action,
        names.PHASE: violation.phase,
        names.COUNT: violation.count,
        names.THRESHOLD: violation.threshold,
        names.MESSAGE: violation.message,
        names.STEP_NUMBER: violation.step,
        names.WASTED_STEPS: violation.wasted_steps,
        names.WASTED_TOKENS: violation.wasted_tokens,
        names.WASTED_COST: violation.wasted_cost_usd,
        names.RUN_ID: run_id,
    }
    if violation.tool:
        described[names.GEN_AI_TOOL_NAME] = violation.tool
    if violation.agent:
        described[names.GEN_AI_AGENT_NAME] = violation.agent
    if violation.span is not None:
        described[names.STEP_TRACE_ID] = f"{violation.span.trace_id:032x}"
        described[names.STEP_SPAN_ID] = f"{violation.span.span_id:016x}"
    return described


def _gap_labels(gap: Gap, agent: str | None) -> dict[str, AttributeValue]:
    return {names.GAP: gap, names.STEP_KIND: KINDS[gap], **_agent_labels(agent)}


def _labels(rule: str, action: str, agent: str | None) -> dict[str, AttributeValue]:
    return {names.RULE: rule, names.ACTION: action, **_agent_labels(agent)}


def _agent_labels(agent: str | None) -> dict[str, AttributeValue]:
    return {} if agent is None else {names.GEN_AI_AGENT_NAME: agent}
