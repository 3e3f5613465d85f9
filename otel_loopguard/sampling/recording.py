"""A sampler that lets the guard see what another one drops."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from otel_loopguard.sampling.recognition import is_gen_ai

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanKind, TraceState
    from opentelemetry.util.types import Attributes

Recorded: TypeAlias = Literal["gen_ai", "runs", "all"]
"""Which of the dropped spans are recorded: GenAI's alone, all below them too, or every one."""

_logger = logging.getLogger(__name__)


class RecordDropped(Sampler):
    """Records spans that another sampler drops: processors see them, exporters do not.

        TracerProvider(sampler=RecordDropped(ParentBased(TraceIdRatioBased(0.1))))

    Which traces are sampled stays as it is, here and in the services that are called. Put it
    around the whole sampler, not inside of `ParentBased`, which would drop the children.

    Args:
        root: the sampler that decides.
        spans: which of the dropped spans are recorded. `runs`: those of GenAI, by the name and the
            attributes that they are created with, and all below them, so that the guard sees what
            hangs where. `gen_ai`: the first alone. `all`: every one, for instrumentations that do
            not show what a span is until it ends.

    Raises:
        ValueError: if there is no such choice of spans.

    """

    def __init__(self, root: Sampler, *, spans: Recorded = "runs") -> None:
        if spans not in get_args(Recorded):
            raise ValueError(f"spans: expected 'gen_ai', 'runs' or 'all', got {spans!r}")
        self._root = root
        self._spans: Recorded = spans
        self._is_fault_known = False

    @property
    def root(self) -> Sampler:
        """The sampler that decides."""
        return self._root

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Ask the wrapped sampler, and record what it drops if that is wanted."""
        # The SDK gives six; a sampler that knows no more must not fail because it is wrapped.
        state = () if trace_state is None else (trace_state,)
        result = self._root.should_sample(
            parent_context, trace_id, name, kind, attributes, links, *state
        )
        if result.decision is not Decision.DROP:
            return result
        given = attributes or {}
        if not self._is_wanted(name, given, parent_context):
            return result
        # A sampler that drops hands on no attributes, or only its own, and it is by those that the
        # span was created with that dialects know it.
        added: Attributes = getattr(result, "attributes", None)
        kept = {**given, **added} if added else given
        return SamplingResult(Decision.RECORD_ONLY, kept, result.trace_state)

    def get_description(self) -> str:
        """Return what it is and what it wraps."""
        return f"RecordDropped{{{self._root.get_description()}}}"

    def _is_wanted(
        self, name: str, attributes: Mapping[str, object], parent_context: Context | None
    ) -> bool:
        if self._spans == "all":
            return True
        try:
            if self._spans == "runs" and _is_below_recorded(parent_context):
                return True
            return is_gen_ai(name, attributes)
        except Exception:  # what is raised here reaches the application
            if not self._is_fault_known:
                self._is_fault_known = True
                _logger.exception("a span could not be recognised; it is left out")
            return False


def _is_below_recorded(parent_context: Context | None) -> bool:
    parent = trace.get_current_span(parent_context)
    return parent.is_recording() and not parent.get_span_context().trace_flags.sampled
