"""What the guard writes: events, attributes of the run's span, metrics."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import get_args

from opentelemetry._logs import Logger, LoggerProvider, SeverityNumber, get_logger
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span
from opentelemetry.util.types import AttributeValue

from otel_loopguard.bounded_names import BoundedNames
from otel_loopguard.contexts import NOWHERE, context_of
from otel_loopguard.decisions import RunReport, Violation
from otel_loopguard.detectors import Action
from otel_loopguard.gaps import KINDS, Gap, Gaps
from otel_loopguard.instruments import SCOPE, Instruments
from otel_loopguard.observations import Watched
from otel_loopguard.policy import Mode, Policy
from otel_loopguard.registry import names
from otel_loopguard.version import VERSION
from otel_loopguard.violation_event import attributes_of

_LOGS_HAVE_EVENTS = "event_name" in inspect.signature(Logger.emit).parameters
"""Older versions of the API know no log-based events."""


class Telemetry:
    """Writes down what a guard found and did."""

    def __init__(
        self,
        policy: Policy,
        mode: Mode,
        watched: Watched,
        *,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        log_events: bool = True,
    ) -> None:
        log_events = log_events and _LOGS_HAVE_EVENTS
        self._logger = get_logger(SCOPE, VERSION, logger_provider) if log_events else None
        self._instruments = Instruments(
            meter_provider, {names.VERSION: VERSION, names.MODE: mode}, watched
        )
        self._rules = policy.rule_ids
        self._agents = watched.agents
        self._announced: set[str] = set()
        self._tools = BoundedNames()

    def announce(self, agent: str | None = None, hooks: Iterable[str] = ()) -> None:
        """Make the series exist at zero, so that the first violation is seen as an increase.

        Of several exemplars one is kept, by chance: what stands at zero must offer none.
        """
        self._instruments.steps_after_trip.add(0, _agent_labels(agent), NOWHERE)
        self._announce_rules(self._rules, agent)
        for gap in KINDS:
            self._instruments.gaps.add(0, _gap_labels(gap, agent), NOWHERE)
        for hook in hooks:
            self._instruments.abort_requests.add(0, {names.ABORT_HOOK: hook}, NOWHERE)
            for result in ("ok", "failed", "timeout"):
                labels: dict[str, AttributeValue] = {
                    names.ABORT_HOOK: hook,
                    names.ABORT_RESULT: result,
                }
                self._instruments.aborts.add(0, labels, NOWHERE)

    def announce_reloads(self) -> None:
        """Make the series of a policy file exist at zero, where there is one."""
        for result in ("ok", "failed"):
            self._instruments.reloads.add(0, {names.POLICY_RELOAD_RESULT: result}, NOWHERE)

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
        """Make the series of the run's agent exist."""
        self._agent(agent)

    def run_ended(
        self,
        agent: str,
        report: RunReport,
        gaps: Gaps,
        top: Context,
        offending: Context,
    ) -> None:
        """Count a run that is over, what it took, and what its steps did not show.

        Exemplars name the spans of the contexts: its topmost one, and the one that tripped it.
        Among those of a counter the SDK draws by the application's random numbers, so that a
        healthy run has none there.
        """
        inst = self._instruments
        labels: dict[str, AttributeValue] = {names.GEN_AI_AGENT_NAME: self._agent(agent)}
        status = {names.RUN_STATUS: report.status, names.TRIPPED: report.trip is not None}
        inst.runs.add(1, {**labels, **status}, top if report.trip else NOWHERE)
        inst.steps.record(report.steps, labels, top)
        inst.duration.record(report.duration_s, labels, top)
        if report.cost_usd > 0:
            inst.cost.record(report.cost_usd, labels, top)
        if report.trip is not None:
            inst.after_trip.record(report.after_trip_s, labels, offending)
        for gap, count in gaps.counts():
            inst.gaps.add(count, _gap_labels(gap, self._agent(agent)), NOWHERE)
        for token_type, tokens in (
            ("input", report.input_tokens),
            ("output", report.output_tokens),
        ):
            inst.tokens.record(tokens, {**labels, names.GEN_AI_TOKEN_TYPE: token_type}, top)

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
        attributes = attributes_of(violation, run_id)
        target = next((s for s in spans if isinstance(s, Span) and s.is_recording()), None)
        if target is not None:
            target.add_event(names.EVENT_VIOLATION, attributes)
        context = None if violation.span is None else context_of(violation.span, sampled=sampled)
        agent_label = self._agent(violation.agent or agent)
        counted = _labels(violation.rule, violation.action, agent_label)
        self._instruments.violations.add(1, counted, context)
        if violation.tool:
            counted = _labels(violation.rule, violation.action, None)
            counted[names.GEN_AI_TOOL_NAME] = self._tools.of(violation.tool)
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

    def abort(self, hook: str, result: str, seconds: float, context: Context) -> None:
        """Count that a stop is `asked` for, or what became of it, so long after the trip.

        Exemplars name the span of the context: the one that tripped the run.
        """
        if result == "asked":
            self._instruments.abort_requests.add(1, {names.ABORT_HOOK: hook}, context)
            return
        labels = {names.ABORT_HOOK: hook, names.ABORT_RESULT: result}
        self._instruments.aborts.add(1, labels, context)
        if result == "ok":
            self._instruments.time_to_stop.record(seconds, {names.ABORT_HOOK: hook}, context)

    def took(self, callback: str, seconds: float) -> None:
        """Record how long the guard took for a span that starts, or has ended."""
        labels = {names.CALLBACK: callback}
        self._instruments.guard_duration.record(seconds, labels, NOWHERE)

    def fault(self, error: BaseException) -> None:
        """Count a fault inside the guard."""
        self._instruments.errors.add(1, {names.ERROR_TYPE: type(error).__qualname__})

    def _announce_rules(self, rules: Iterable[str], agent: str | None) -> None:
        for rule in rules:
            for action in get_args(Action):
                self._instruments.violations.add(0, _labels(rule, action, agent), NOWHERE)

    def _agent(self, name: str) -> str:
        bounded = self._agents.of(name)
        if bounded not in self._announced:
            self._announced.add(bounded)
            self.announce(bounded)
        return bounded


def _gap_labels(gap: Gap, agent: str | None) -> dict[str, AttributeValue]:
    return {names.GAP: gap, names.STEP_KIND: KINDS[gap], **_agent_labels(agent)}


def _labels(rule: str, action: str, agent: str | None) -> dict[str, AttributeValue]:
    return {names.RULE: rule, names.ACTION: action, **_agent_labels(agent)}


def _agent_labels(agent: str | None) -> dict[str, AttributeValue]:
    return {} if agent is None else {names.GEN_AI_AGENT_NAME: agent}
