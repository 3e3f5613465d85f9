"""What spans do not show, said once: a guard that sees nothing stops nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from otel_loopguard.decisions import RunReport
from otel_loopguard.runs import Run
from otel_loopguard.steps import UNKNOWN, Step
from otel_loopguard.switches import GENAI_CONTENT, content_switch

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_BLIND = (
    "the arguments of tool calls (first: %s) are not on their spans, so repeated calls cannot be "
    "recognised and only limits act; what makes %s write them: %s; `otel-loopguard doctor` says "
    "what else is missing"
)
_NO_SWITCH = f"not known, but OpenTelemetry's instrumentations do with {GENAI_CONTENT}"
_UNSEEN = (
    "%d model requests were made in run %s and no span of the agent arrived: it is not "
    "instrumented, or writes to another tracer provider, so loops cannot be recognised"
)

_logger = logging.getLogger(__name__)


class BlindWarning:
    """Says once that tool calls do not show their arguments, and what makes them."""

    def __init__(self) -> None:
        self._is_said = False

    def ended(self, step: Step | None, span: ReadableSpan) -> None:
        """Look at a step that has ended, on its span."""
        if self._is_said or step is None or step.kind != "tool":
            return
        if step.arguments is UNKNOWN:
            self._is_said = True
            scope = "" if span.instrumentation_scope is None else span.instrumentation_scope.name
            _logger.warning(_BLIND, step.name, repr(scope), content_switch(scope) or _NO_SWITCH)


def warn_if_unseen(run: Run, report: RunReport) -> None:
    """Say that nothing is known of a run but its model requests."""
    unseen = 0 if run.places.are_asked_about else run.places.unseen
    if unseen and not report.tool_calls and unseen == report.model_calls:
        _logger.warning(_UNSEEN, unseen, run.id)
