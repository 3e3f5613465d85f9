"""The variables `OTEL_LOOPGUARD_*`: which option each one sets, and how its text is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from otel_loopguard.options.errors import PolicyError, cut, nearest, wrong
from otel_loopguard.options.frameworks import integrations_of
from otel_loopguard.options.kinds import (
    BUILT_IN,
    AbortException,
    BuiltIn,
    abort_exception_of,
    seconds_of,
    switch_of,
)
from otel_loopguard.options.rules import RULES
from otel_loopguard.settings import Limits
from otel_loopguard.values.volatile import Masking

PREFIX = "OTEL_LOOPGUARD_"
CONFIG = f"{PREFIX}CONFIG"
"""The variable that names the policy file."""

_SWITCHES = {"true": True, "on": True, "false": False, "off": False}
_PAIRS = "names and values, such as {example}"
_SOME_RULE = "on, off, or thresholds such as warn=3,abort=5"
_NONE = "none"
_SHOWN = ", ".join(f"`{stop}`" for stop in BUILT_IN)
_STOPS = f"any of {', '.join(BUILT_IN)} with commas between them, or {_NONE}"
_IN_FILE = f"what has no variable of its own is set in the file that {CONFIG} names"


class Variable(NamedTuple):
    """An option that a variable sets."""

    path: tuple[str, ...]
    """Where it stands in the policy file."""
    takes: str
    read: Callable[[str, str], object]
    """Makes of the text what a file has; the second argument is the variable's name."""

    @property
    def option(self) -> str:
        """The path as errors name it."""
        return ".".join(self.path)


def _word(text: str, _name: str) -> str:
    return text.lower()


def _switch(text: str, _name: str) -> object:
    return _SWITCHES.get(text.lower(), text)


def _number(text: str, _name: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _scalar(text: str, name: str) -> object:
    switch = _switch(text, name)
    return _number(text, name) if switch is text else switch


def _names(text: str, _name: str) -> list[str]:
    return [part for each in text.split(",") if (part := each.strip())]


def _pattern(text: str, _name: str) -> list[str]:
    return [text]


def _pairs(example: str) -> Callable[[str, str], dict[str, object]]:
    def read(text: str, name: str) -> dict[str, object]:
        pairs: dict[str, object] = {}
        for part in _names(text, name):
            key, equals, value = (each.strip() for each in part.rpartition("="))
            if not (equals and key) or key in pairs:
                raise wrong(name, _PAIRS.format(example=example), text)
            pairs[key] = _scalar(value, name)
        return pairs

    return read


def _rule(text: str, name: str) -> object:
    switch = _scalar(text, name)
    if isinstance(switch, bool):
        return {"enabled": switch}
    if "=" not in text:
        raise wrong(name, _SOME_RULE, text)
    return _pairs("warn=3,abort=5")(text, name)


_COUNTS = _pairs("send_mail=1,search=20")
_PRICE = _pairs("input_per_m_usd=1.25,output_per_m_usd=10")


def _of_policy() -> Mapping[str, Variable]:
    limits = {name: getattr(Limits(), name) for name in Limits.__struct_fields__}
    forms = {
        name: ("true or false", _switch)
        if isinstance(default, bool)
        else ("`name=number`, with commas", _COUNTS)
        if isinstance(default, Mapping)
        else ("a number", _number)
        for name, default in limits.items()
    }
    rule = "`on`, `off` or `warn=3,abort=5`"
    said = (
        Variable(("mode",), "`observe` or `enforce`", _word),
        Variable(("scope",), "`run`, `agent` or `conversation`", _word),
        Variable(("steer",), "true, false or a text", _switch),
        *(Variable(("limits", name), *form) for name, form in forms.items()),
        *(Variable(("rules", name), rule, _rule) for name in RULES["run"]),
        Variable(("usage", "input_includes_cache"), "true or false", _switch),
        Variable(("usage", "price"), "`part=US dollars`, with commas", _PRICE),
        *(Variable(("masking", name), *_MASKING[name]) for name in Masking.__struct_fields__),
    )
    return {_name_of(variable): variable for variable in said}


_MASKING: Mapping[str, tuple[str, Callable[[str, str], object]]] = {
    "enabled": ("true or false", _switch),
    "keys": ("names, with commas", _names),
    "patterns": ("one regular expression", _pattern),
}


def _name_of(variable: Variable) -> str:
    path = variable.path[1:] if variable.path[0] == "limits" else variable.path
    return PREFIX + "_".join(path).upper()


def _seconds(text: str, name: str) -> float:
    return seconds_of(_number(text, name), name)


def _log_events(text: str, name: str) -> bool:
    return switch_of(_switch(text, name), name)


def _stops(text: str, name: str) -> tuple[BuiltIn, ...]:
    named = _names(text.lower(), name)
    if named == [_NONE]:
        return ()
    if not named or not {*named} <= {*BUILT_IN}:
        raise wrong(name, _STOPS, text)
    return tuple(stop for stop in BUILT_IN if stop in named)


OF_POLICY: Mapping[str, Variable] = _of_policy()
"""The variables that stand for options of the policy file, by name."""


def _abort_exception(text: str, name: str) -> AbortException | None:
    return abort_exception_of(text.lower(), name)


def _integrations(text: str, name: str) -> tuple[str, ...] | None:
    named = _names(text.lower(), name)
    return () if named == [_NONE] else integrations_of(named, name)


OF_PROCESSOR: Mapping[str, Variable] = {
    _name_of(variable): variable
    for variable in (
        Variable(("hook_timeout_s",), "a number of seconds above 0", _seconds),
        Variable(("log_events",), "true or false", _log_events),
        Variable(("abort",), f"any of {_SHOWN}, with commas, or `none`", _stops),
        Variable(("abort_exception",), "`ordinary` or `base`", _abort_exception),
        Variable(("integrations",), "names, with commas, or `none`", _integrations),
    )
}
"""The variables that stand for arguments of the guard, which no policy file has."""

KNOWN = (CONFIG, *OF_POLICY, *OF_PROCESSOR)
"""All variables that there are."""


def given(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those of our variables that are set: without any text, one is not."""
    named = {name: text.strip() for name, text in variables.items() if name.startswith(PREFIX)}
    return {name: text for name, text in named.items() if text}


def unknown(name: str) -> PolicyError:
    """Return the error for a variable that there is not."""
    own = {known.removeprefix(PREFIX): known for known in KNOWN}
    near = nearest(name.removeprefix(PREFIX), own)
    hint = f"did you mean {own[near]!r}?" if near else _IN_FILE
    shown = cut(name)
    return PolicyError(f"{shown}: there is no such variable; {hint}", path=shown)


def renamed(error: PolicyError, variable: Variable, name: str) -> PolicyError:
    """Return an error about an option as one about the variable that set it."""
    path = name + error.path[len(variable.option) :]
    return PolicyError(name + str(error)[len(variable.option) :], path=path)
