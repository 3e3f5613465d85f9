"""The veto: a refused call is not made, because its span raises when it starts.

A span starts before the call that it stands for, so what is raised there keeps that from happening,
if it comes out: some instrumentations swallow it, and then the call is made after all. So this is
done only where it has been measured that it comes out, and only while nothing else stands between.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from opentelemetry.sdk.trace import Span, SpanProcessor, SynchronousMultiSpanProcessor
from opentelemetry.trace import Status, StatusCode

from otel_loopguard.abort.aborted import Refusal
from otel_loopguard.dialects import Dialects
from otel_loopguard.registry import names
from otel_loopguard.runs import Run
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

if TYPE_CHECKING:
    from opentelemetry.context import Context

_CALLS = frozenset({"llm", "tool"})
_OURS = "otel_loopguard."
_SDK = "opentelemetry.sdk.trace"
_START = Span.start.__code__
_PROBE = "the loop guard asks whether span processors may raise; nothing is wrong"


class Veto:
    """Keeps refused calls from being made, where their spans start.

    Args:
        dialects: those that spans are read by; they know where an exception comes out.
        refusal: what is raised.
        acts: whether any call is to be kept from being made.

    """

    def __init__(self, dialects: Dialects, refusal: Refusal, *, acts: bool) -> None:
        self._vetoable = dialects.vetoable
        self._refusal = refusal
        self._acts = acts and _comes_out(is_ordinary=issubclass(refusal, Exception))

    def can_stop(self, record: SpanRecord, step: Step) -> bool:
        """Say whether a call is not made if something is raised now, at the start of its span."""
        if not self._acts or step.kind not in _CALLS:
            return False
        known = (record.scope, step.kind) in self._vetoable
        return (known or record.attributes.get(names.VETOABLE) is True) and _is_called_directly()

    def end(self, span: Span, run: Run, fault: Callable[[Exception], object]) -> None:
        """End the span of a call that is not made: nobody else will, for it is not handed out.

        What processors raise that are told of it is a `fault`: some miss that it had started.
        """
        try:
            refused_with = self._refusal.__qualname__
            span.set_attributes({names.STEP_PREVENTED: True, names.ERROR_TYPE: refused_with})
            message = None if run.trip is None else run.trip.message
            span.set_status(Status(StatusCode.ERROR, message))
            span.end()
        except Exception as error:  # noqa: BLE001 -- a foreign processor may do anything
            fault(error)


def _is_called_directly() -> bool:
    """Say whether the code that starts the span has called us, with the SDK alone between.

    It has not in threads of a `ConcurrentMultiSpanProcessor`, in which waiting for a span's end can
    wait for ever, nor where a processor that wraps this one may keep exceptions to itself, or the
    end of a span, as Logfire's does while it tells of a start.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code is _START:
            return True
        module = str(frame.f_globals.get("__name__"))
        if not (module == _SDK or module.startswith(_OURS)):
            return False
        frame = frame.f_back
    return False


class _Raising(SpanProcessor):
    """Raises what it is given when a span starts."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 -- theirs
        raise self._error


def _comes_out(*, is_ordinary: bool) -> bool:
    """Ask the SDK whether it lets out what a processor raises: a later one may not."""
    probe = (Exception if is_ordinary else BaseException)(_PROBE)
    processors = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]
    processors.add_span_processor(_Raising(probe))
    try:
        processors.on_start(cast("Any", None))
    except BaseException as error:
        if error is probe:
            return True
        raise
    return False
