"""Every script by its name, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import msgspec

from otel_loopguard.testing.scripts import faulty, healthy, runaways
from otel_loopguard.testing.scripts.turns import MAX_DELAY_S, Play, Script

_MOST = 1_000
_MOST_DIGITS = 9
"""Of thousands, no `int` is made."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Scripts that differ by one number, which stands behind a colon."""

    letter: str
    """What stands for the number where the scripts are listed."""
    expected: str
    """What the number has to be."""
    of: Callable[[str], Play | None]
    """The script with this number; `None` where it is not what is expected."""


def _family(
    make: Callable[[int], Play], *, letter: str = "N", lowest: int = 1, highest: int = _MOST
) -> Family:
    def of(number: str) -> Play | None:
        is_whole = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
        return make(int(number)) if is_whole and lowest <= int(number) <= highest else None

    return Family(letter=letter, expected=f"a whole number from {lowest} to {highest}", of=of)


def _slow(number: str) -> Play | None:
    is_number = number.isascii() and number.replace(".", "", 1).isdecimal()
    seconds = float(number) if is_number else -1.0
    return runaways.slow(seconds) if 0 <= seconds <= MAX_DELAY_S else None


_PLAYS: Mapping[str, Play] = {
    "endless": runaways.endless,
    "alternate": runaways.alternate,
    "varying": runaways.varying,
    "handoff": runaways.handoff,
    "finish3": healthy.finish3,
    "poll": healthy.poll(healthy.POLLS),
    "error_tool": faulty.error_tool,
    "unknown_tool": faulty.unknown_tool,
    "bad_arguments": faulty.bad_arguments,
    "misfit_arguments": faulty.misfit_arguments,
    "truncated": faulty.truncated,
    "truncated_call": faulty.truncated_call,
    "filtered": faulty.filtered,
    "empty": faulty.empty,
}

SCRIPTS: Mapping[str, Script] = MappingProxyType(
    {name: Script(name=name, play=play) for name, play in _PLAYS.items()}
)
"""Every script by its name, but for those of `FAMILIES`."""

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "cycle": _family(runaways.cycle),
        "parallel": _family(runaways.parallel),
        "slow": Family(
            letter="S", expected=f"a number of seconds from 0 to {MAX_DELAY_S:g}", of=_slow
        ),
        "finish": _family(healthy.finish),
        "poll": _family(healthy.poll),
        "http_error": _family(faulty.http_error, letter="CODE", lowest=400, highest=599),
    }
)
"""What stands before the colon of a script with a number, as in `cycle:3`."""

DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "endless": "calls the first tool with the same arguments, for ever",
        "alternate": "calls two tools in turn, for ever; of one tool, with two arguments in turn",
        "cycle:N": "goes round N different calls, for ever",
        "varying": "calls the first tool with other arguments each time, for ever",
        "parallel:N": "makes the call of `endless` N times at once, for ever",
        "handoff": "hands over to another agent, for ever",
        "slow:S": "plays `endless`, each answer after S seconds",
        "finish:N": "answers in turn N, after N-1 different calls",
        "finish3": "answers in turn 3: the first tool, the second or the first again, an answer",
        "poll": f"asks for a state {healthy.POLLS} times with the same arguments, then answers",
        "poll:N": "asks for a state N times, then answers",
        "error_tool": "calls the first tool with valid arguments that name something missing",
        "unknown_tool": "calls a tool that was not offered",
        "bad_arguments": "calls the first tool with arguments that are no JSON; where an API "
        "carries them as a value, with ones that do not fit its schema",
        "misfit_arguments": "calls the first tool with arguments that do not fit its schema",
        "truncated": "answers with a text that the token limit cuts",
        "truncated_call": "calls the first tool, but the token limit cuts the arguments",
        "filtered": "answers with nothing: the provider's filter held it back, or it refused",
        "empty": "answers with neither a text nor a call",
        "http_error:CODE": "fails with HTTP status CODE, 400 to 599, and the provider's error body",
    }
)
"""What each script plays, by its name as it is listed, with a letter for the number."""


@lru_cache(maxsize=256)
def find_script(name: str) -> Script | None:
    """Return the script of this name, or `None` where there is none."""
    family, colon, number = name.partition(":")
    if not colon:
        return SCRIPTS.get(name)
    play = FAMILIES[family].of(number) if family in FAMILIES else None
    return None if play is None else Script(name=name, play=play)


def script_named(name: str) -> Script:
    """Return the script of this name.

    Raises `ValueError`, with the names that exist, where there is none.
    """
    script = find_script(name)
    if script is not None:
        return script
    family, colon, _ = name.partition(":")
    if colon and family in FAMILIES:
        listed = FAMILIES[family]
        raise ValueError(
            f"script {name!r} cannot be played; expected '{family}:{listed.letter}' with "
            f"{listed.expected}"
        )
    known = ", ".join(repr(each) for each in DESCRIPTIONS)
    raise ValueError(f"script {name!r} does not exist; expected one of {known}")
