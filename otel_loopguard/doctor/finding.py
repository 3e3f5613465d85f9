"""A finding: what the guard can or cannot see, what that means, and what would change it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Name: TypeAlias = Literal[
    "no_steps",
    "no_model_calls",
    "no_tool_calls",
    "no_arguments",
    "some_arguments",
    "sampling",
    "single_calls",
    "no_root",
    "unseen_root",
    "no_results",
    "no_answers",
    "no_usage",
    "some_usage",
    "no_finish_reasons",
    "cut_values",
    "lost_attributes",
    "late",
    "runs",
    "tool_calls",
    "model_calls",
    "calls_from_messages",
    "seen_twice",
]
"""What there is to find."""

Severity: TypeAlias = Literal["blind", "weak", "ok"]
"""Rules cannot act; they see less than they could; all is well."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was found. Its fields are those of the JSON output, in their order."""

    finding: Name
    severity: Severity
    scopes: tuple[str, ...]
    """The instrumentations that it is about; none where it is about all."""
    what: str
    """What was found, in one sentence."""
    means: str = ""
    """What that means for the guard."""
    remedy: str = ""
    """The setting or the code that changes it; "" where none is needed, or known."""
    source: str = ""
    """From where the remedy is known."""

    def __str__(self) -> str:
        """Return it as `severity: what [scopes]; set: remedy`."""
        scopes = f" [{', '.join(self.scopes)}]" if any(self.scopes) else ""
        remedy = f"; set: {self.remedy}" if self.remedy else ""
        return f"{self.severity}: {self.what}{scopes}{remedy}"


def some(count: int, what: str) -> str:
    """Return how many: `1 run`, `2 runs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def of(seen: int, count: int, what: str) -> str:
    """Return how many of all of them: `none of 93 tool calls`, `5 of 93 tool calls`."""
    return f"{f'{seen:,}' if seen else 'none'} of {some(count, what)}"
