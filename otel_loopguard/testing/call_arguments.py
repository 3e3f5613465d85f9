"""The arguments of a call that a double asks for, in the forms that frameworks want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from otel_loopguard.canonical import UNKNOWN


def arguments_text(arguments: object) -> str:
    """Return them as JSON text; a text stays as it is, be it JSON or not."""
    if isinstance(arguments, str):
        return arguments
    return msgspec.json.encode({} if arguments is UNKNOWN else arguments).decode()


def arguments_object(arguments: object) -> dict[str, object] | None:
    """Return them as an object; `None` for a text, or another value, that is none."""
    if arguments is UNKNOWN:
        return {}
    if isinstance(arguments, str):
        try:
            return msgspec.json.decode(arguments, type=dict[str, object])
        except msgspec.MsgspecError:
            return None
    given = cast("Mapping[str, object]", arguments)
    return dict(given) if isinstance(arguments, Mapping) else None
