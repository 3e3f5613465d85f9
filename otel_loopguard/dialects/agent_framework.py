"""Microsoft's Agent Framework, as it stood in November 2026 (1.23).

Sources: its `observability.py`; recordings of agents with and without sensitive data.

Its agents, models and tools have the GenAI names, values as Enums that are text and lists as JSON
text, and `gen_ai` reads them as everywhere. Here only what is around them is read:

- `workflow.run`, recognised by its name and the scope `agent_framework`, lasts for the whole run of
  a workflow and holds all of its agents: an agent with the name in `workflow.name`.

`workflow.build`, `executor.process`, `edge_group.process` and `message.send` are no steps. Between
agents that hand over to one another no tool span is written, only one agent after the other.
"""

from __future__ import annotations

from otel_loopguard import semconv
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._values import text
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

_SCOPE = "agent_framework"


def read(record: SpanRecord) -> Step | None:
    """Return the step that the span is; `None` if it is no run of a workflow."""
    if record.scope != _SCOPE or not record.name.startswith("workflow.run"):
        return None
    name = text(record.attributes.get(semconv.AGENT_FRAMEWORK_WORKFLOW_NAME))
    return Step(kind="agent", name=name or record.name)


DIALECT = Dialect(
    name="agent_framework",
    read=read,
    marks=Marks(scopes=frozenset({_SCOPE})),
    vetoable=frozenset({(_SCOPE, "tool"), (_SCOPE, "llm")}),
)
