"""AG2, as it stood in November 2026 (1.2).

Sources: its `TelemetryMiddleware`; recordings with and without content.

Recognised by the scope `opentelemetry.instrumentation.ag2`. The GenAI names are read as everywhere,
messages in the form of OpenAI's Chat API. What differs:

- a model call is named `chat`, without a model, when it starts, and has nothing else.
- `ag2.tool.call.result.truncated` says that a tool's result was cut, at 8,192 characters unless the
  application says otherwise.
- `record_usage {kind}` is a span for bookkeeping: that of a `model_call` repeats the usage of the
  call beside it. None of them is a step.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._gen_ai import model_step, step_of
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

_SCOPE = "opentelemetry.instrumentation.ag2"


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if AG2 did not write it, or it is none."""
    if record.scope != _SCOPE:
        return None
    if record.name == "chat":
        return model_step(record)
    step = step_of(record)
    if step is not None and record.attributes.get(semconv.AG2_RESULT_TRUNCATED):
        return msgspec.structs.replace(step, result=UNKNOWN)
    return step


DIALECT = Dialect(
    name="ag2",
    read=read,
    marks=Marks(scopes=frozenset({_SCOPE})),
    vetoable=frozenset({(_SCOPE, "tool"), (_SCOPE, "llm")}),
)
