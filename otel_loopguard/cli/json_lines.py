"""What the commands print for scripts: JSON, one object a line."""

from __future__ import annotations

import json
import sys

import msgspec


def json_line(value: msgspec.Struct) -> bytes:
    """Return a report, or a part of one, as one line; half of a surrogate pair becomes `?`."""
    text = json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"


def print_json(value: msgspec.Struct) -> None:
    """Print a report, or a part of one, as one line, at once."""
    sys.stdout.buffer.write(json_line(value))
    sys.stdout.flush()
