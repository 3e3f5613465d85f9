"""What became of a run of the loop."""

from __future__ import annotations

import msgspec

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.agent_loop.endings import Ending
from otel_loopguard.agent_loop.messages import Message
from otel_loopguard.decisions import RunReport
from otel_loopguard.model_turns import ModelTurn


class AgentResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, what it came to, and what it took."""

    ending: Ending
    output: object
    """The text of the last turn, or what the finish tool returned; `None` unless `complete`."""
    report: RunReport
    """What the loop's own guard counted and found: status, rule, steps, tokens, violations."""
    history: tuple[Message, ...]
    """The conversation, to go on from: each call in it is answered."""
    last_turn: ModelTurn | None
    """The model's last answer, also where it was cut, filtered or not accepted."""
    error: Exception | None
    """What was raised: by the model, a tool, or the callable that looked at the result."""
    aborted: RunAborted | None
    """The stop, for `aborted` and `repeated_call`: raise it where your caller expects that."""

    @property
    def steps(self) -> int:
        """Model calls and tool calls that were attempted."""
        return self.report.steps

    @property
    def model_calls(self) -> int:
        """Model calls that were attempted, those that raised included."""
        return self.report.model_calls

    @property
    def tool_calls(self) -> int:
        """Tool calls that were attempted: retries, unknown tools and bad arguments included."""
        return self.report.tool_calls

    @property
    def last_tool(self) -> str:
        """The tool that was called last; empty if none was."""
        return self.report.last_tool

    @property
    def input_tokens(self) -> int:
        """Tokens that the model was given, in all."""
        return self.report.input_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens that the model answered with, in all."""
        return self.report.output_tokens

    @property
    def trace(self) -> tuple[str, ...]:
        """The last steps as `kind:name`, without content."""
        return self.report.trace
