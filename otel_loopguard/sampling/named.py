"""The sampler that `OTEL_TRACES_SAMPLER=loopguard` names."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from opentelemetry.sdk.trace.sampling import Sampler

from otel_loopguard.sampling.recording import RecordDropped

_GROUP = "opentelemetry_traces_sampler"
_VARIABLE = "OTEL_TRACES_SAMPLER_ARG"
_OWN_NAME = "loopguard"
_BY_DEFAULT = "parentbased_always_on"
"""What the SDK takes where nothing is said."""
_BY_RATIO = ("traceidratio", "parentbased_traceidratio")


def from_environment(argument: str | None = None) -> RecordDropped:
    """Return the sampler for the value of `OTEL_TRACES_SAMPLER_ARG`, which the SDK passes.

    It is the name of the sampler to wrap and, after a comma, that one's own argument:
    `parentbased_traceidratio,0.1`. Any name that `OTEL_TRACES_SAMPLER` takes is known. Without one
    it is the SDK's default, `parentbased_always_on`.

    Raises:
        ValueError: if there is no such sampler, or its argument cannot be read.

    """
    name, _, own = (part.strip() for part in (argument or "").partition(","))
    factory: Any = _entry_point(name.lower() or _BY_DEFAULT, argument).load()
    is_ratio = name.lower() in _BY_RATIO
    sampler = factory(_ratio(own, name, argument) if is_ratio else own or None)
    if not isinstance(sampler, Sampler):
        raise _complaint(f"a sampler, but {name!r} made {sampler!r}", argument)
    return RecordDropped(sampler)


def _entry_point(name: str, argument: str | None) -> EntryPoint:
    known = {each.name.lower(): each for each in entry_points(group=_GROUP)}
    known.pop(_OWN_NAME, None)
    if name not in known:
        raise _complaint(
            f"the name of a sampler ({', '.join(sorted(known))}) and after a comma its argument, "
            "such as 'parentbased_traceidratio,0.1'",
            argument,
        )
    return known[name]


def _ratio(own: str, name: str, argument: str | None) -> float:
    try:
        ratio = float(own)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise _complaint(f"a ratio from 0 to 1 after the name, such as '{name},0.1'", argument)
    return ratio


def _complaint(expected: str, argument: str | None) -> ValueError:
    return ValueError(f"{_VARIABLE}: expected {expected}, got {argument!r}")
