"""What a policy says of token counts, of prices, and of what is masked in results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from otel_loopguard.options.errors import PolicyError, refuse_unknown, wrong
from otel_loopguard.options.kinds import (
    laid_over,
    names_of,
    number_of,
    patterns_of,
    switch_of,
    table_of,
)
from otel_loopguard.pricing import Price, Usage
from otel_loopguard.values.volatile import KEY_NAME, Masking

_NEEDED = ("input_per_m_usd", "output_per_m_usd")
_KEY = "a letter, then letters, digits, '_', '-' and '.', at most 64 in all"
_UNDER_PRICE = dict.fromkeys(Price.__struct_fields__, "write it under price")


def usage_over(current: Usage, table: Mapping[str, object], path: str) -> Usage:
    """Return how tokens are counted and priced, with `table` laid over it.

    A price is replaced as a whole, for parts of two prices would be the price of no model.

    Raises:
        PolicyError: for an option that there is not, or a value that it does not take.

    """
    refuse_unknown(table, Usage.__struct_fields__, f"{path}.", _UNDER_PRICE)
    made: dict[str, Any] = {}
    for name, given in table.items():
        at = f"{path}.{name}"
        if name == "price":
            made[name] = _price_of(given, at, None)
        elif name == "prices":
            made[name] = laid_over(current.prices, table_of(given, at), at, _price_of)
        else:
            made[name] = None if given is None else switch_of(given, at)
    return msgspec.structs.replace(current, **made)


def _price_of(value: object, path: str, _current: Price | None) -> Price | None:
    if value is None:
        return None
    table = table_of(value, path, "a table of US dollars per million tokens")
    refuse_unknown(table, Price.__struct_fields__, f"{path}.")
    made: dict[str, float] = {}
    for name in Price.__struct_fields__:
        given = table.get(name)
        per = "request" if name == "per_request_usd" else "million tokens"
        expected = f"US dollars per {per}, 0 or more"
        if given is not None:
            made[name] = number_of(given, f"{path}.{name}", expected, lowest=0)
        elif name in _NEEDED:
            missing = f"{path}.{name}"
            raise PolicyError(f"{missing}: is missing; expected {expected}", path=missing)
    return Price(**made)


def masking_over(current: Masking, table: Mapping[str, object], path: str) -> Masking:
    """Return what is masked, with `table` laid over it; a list takes the place of the former one.

    Raises:
        PolicyError: for an option that there is not, or a value that it does not take.

    """
    refuse_unknown(table, Masking.__struct_fields__, f"{path}.")
    readers = {"keys": _keys_of, "patterns": patterns_of}
    made: dict[str, Any] = {
        name: readers.get(name, switch_of)(given, f"{path}.{name}") for name, given in table.items()
    }
    return Masking(**{**msgspec.structs.asdict(current), **made})


def _keys_of(value: object, path: str) -> tuple[str, ...]:
    keys = names_of(value, path)
    for place, key in enumerate(keys):
        if not re.fullmatch(KEY_NAME, key):
            raise wrong(f"{path}[{place}]", _KEY, key)
    return keys
