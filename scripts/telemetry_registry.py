"""The registry of what the guard writes: read from its YAML files, checked.

Nothing of the package is imported: it cannot be without the modules that are made of the registry.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "otel_loopguard" / "registry"
FILES = ("attributes", "events", "spans", "metrics")

FOREIGN = {
    "error.type": "The class of what went wrong",
    "gen_ai.agent.name": "The agent that acts",
    "gen_ai.token.type": "`input` or `output`",
    "gen_ai.tool.name": "The tool that is called",
}
"""Names of OpenTelemetry's own conventions that are referred to, and what they mean here."""

Stability: TypeAlias = Literal["development", "stable"]
Kind: TypeAlias = Literal["counter", "updowncounter", "gauge", "histogram"]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; a key that it does not know is a mistake."""


class Member(_Table, frozen=True):
    """A value that an attribute may have."""

    id: str
    value: str
    brief: str


class Members(_Table, frozen=True):
    """The values that an attribute may have."""

    members: tuple[Member, ...]


class Attribute(_Table, frozen=True):
    """An attribute, defined; or one that is referred to by `ref`."""

    id: str = ""
    ref: str = ""
    type: Literal["string", "int", "double", "boolean"] | Members | None = None
    stability: Stability | None = None
    brief: str = ""
    note: str = ""
    examples: tuple[str | int | float | bool, ...] = ()
    requirement_level: Literal["required"] | dict[str, str] | None = None

    @property
    def name(self) -> str:
        return self.id or self.ref

    @property
    def values(self) -> tuple[str, ...]:
        """The values that it may have; none where it may have any."""
        known = self.type
        return tuple(each.value for each in known.members) if isinstance(known, Members) else ()


class Annotations(_Table, frozen=True):
    """What the conventions have no key for."""

    explicit_bucket_boundaries: tuple[float, ...] = ()
    observed: bool = False
    exemplars: str = ""


class Group(_Table, frozen=True):
    """A metric, an event, or attributes that belong together."""

    id: str
    type: Literal["attribute_group", "event", "metric"]
    brief: str
    attributes: tuple[Attribute, ...]
    display_name: str = ""
    name: str = ""
    metric_name: str = ""
    stability: Stability | None = None
    instrument: Kind | None = None
    unit: str = ""
    note: str = ""
    annotations: Annotations = Annotations()


class _File(_Table, frozen=True):
    groups: tuple[Group, ...]


class Registry:
    """All groups, and the attributes that they define."""

    def __init__(self, groups: tuple[Group, ...]) -> None:
        self.groups = groups
        self.attributes = {
            each.id: each for group in groups for each in group.attributes if each.id
        }
        for group in groups:
            _check(group, self.attributes)

    def of_type(self, wanted: str) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.type == wanted)

    def group(self, name: str) -> Group:
        return next(group for group in self.groups if group.id == name)

    @property
    def foreign(self) -> tuple[str, ...]:
        """The names of others that are referred to."""
        return tuple(sorted({each.ref for each in self._references()} - set(self.attributes)))

    def _references(self) -> Iterator[Attribute]:
        return (each for group in self.groups for each in group.attributes if each.ref)

    def meaning(self, attribute: Attribute) -> str:
        """Return what an attribute means where it stands."""
        defined = self.attributes.get(attribute.name)
        return attribute.brief or (FOREIGN[attribute.ref] if defined is None else defined.brief)

    def note(self, attribute: Attribute) -> str:
        defined = self.attributes.get(attribute.name, attribute)
        return "" if attribute.brief and attribute.ref else attribute.note or defined.note


def read() -> Registry:
    """Read all files.

    Raises:
        msgspec.ValidationError: for a key or a value that there is not.
        ValueError: for a group that contradicts itself, or refers to what there is not.

    """
    files = [
        msgspec.yaml.decode((HOME / f"{name}.yaml").read_bytes(), type=_File) for name in FILES
    ]
    return Registry(tuple(group for file in files for group in file.groups))


def _check(group: Group, defined: dict[str, Attribute]) -> None:
    whole = {
        "attribute_group": bool(group.attributes),
        "event": bool(group.name and group.stability),
        "metric": bool(group.metric_name and group.instrument and group.unit and group.stability),
    }
    named = {"event": f"event.{group.name}", "metric": f"metric.{group.metric_name}"}
    if not whole[group.type] or named.get(group.type, group.id) != group.id:
        raise ValueError(f"{group.id!r}: expected a whole {group.type}, and its name in the id")
    for each in group.attributes:
        if each.id and not (each.type and each.stability and each.brief):
            raise ValueError(f"{each.id!r} in {group.id!r}: expected type, stability and brief")
        if each.ref and each.ref not in defined and each.ref not in FOREIGN:
            raise ValueError(f"{each.ref!r} in {group.id!r}: expected the id of an attribute")
        if bool(each.id) == bool(each.ref):
            raise ValueError(f"{each.name!r} in {group.id!r}: expected either id or ref")
