"""The tables of docs/operations.md that the registry of telemetry becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from scripts.telemetry_registry import Attribute, Group, Members, Registry

_KINDS = {"updowncounter": "up-down counter"}
_PART = "<!-- made of the registry: {name} -->"
_END = "<!-- end of what is made -->"


def page_with_tables(page: str, registry: Registry) -> str:
    """Return the page with its tables as the registry has them now."""
    text = page
    for name, table in tables(registry).items():
        first = _PART.format(name=name)
        pattern = re.compile(f"{re.escape(first)}.*?{re.escape(_END)}", re.DOTALL)
        found = pattern.findall(text)
        if len(found) != 1:
            raise ValueError(f"docs/operations.md: expected {first!r} once, and {_END!r} after it")
        text = text.replace(found[0], f"{first}\n\n{table}\n\n{_END}")
    return text


def tables(registry: Registry) -> Mapping[str, str]:
    """Return each table, by what the page calls it."""
    return {
        "event": _attributes(registry, registry.group("event.loopguard.violation")),
        "run": _attributes(registry, registry.group("loopguard.run.span")),
        "metrics": _metrics(registry),
        "labels": _labels(registry),
    }


def prometheus_name(group: Group) -> str:
    """Return what queries call a metric in Prometheus, by the default translation."""
    unit = "_seconds" if group.unit == "s" else ""
    ending = {"counter": "_total", "histogram": "_bucket"}.get(group.instrument or "", "")
    return group.metric_name.replace(".", "_") + unit + ending


def _attributes(registry: Registry, group: Group) -> str:
    lines = ["| attribute | meaning |", "|---|---|"]
    lines += (f"| `{each.name}` | {_meaning(registry, each)} |" for each in group.attributes)
    return "\n".join(lines)


def _meaning(registry: Registry, attribute: Attribute) -> str:
    defined = registry.attributes.get(attribute.name, attribute)
    text, note = registry.meaning(attribute), registry.note(attribute)
    if defined.values:
        text += f": {_listed(defined.values)}"
    text += f". {note.rstrip('.')}" if note else ""
    level = attribute.requirement_level
    return text if not isinstance(level, dict) else f"{text} ({', '.join(level.values())})"


def _metrics(registry: Registry) -> str:
    lines = ["| name | in Prometheus | kind, unit | attributes |", "|---|---|---|---|"]
    for group in registry.of_type("metric"):
        kind = _KINDS.get(group.instrument or "", group.instrument)
        said = group.brief[0].lower() + group.brief[1:] + (f"; {group.note}" if group.note else "")
        cells = (
            f"`{group.metric_name}`",
            f"`{prometheus_name(group)}`",
            f"{kind}, `{group.unit}`: {said}",
            ", ".join(f"`{each.ref}`" for each in group.attributes),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _labels(registry: Registry) -> str:
    lines = ["| attribute | label | values |", "|---|---|---|"]
    used = {each.ref: each for group in registry.of_type("metric") for each in group.attributes}
    for name, reference in sorted(used.items()):
        known = registry.attributes.get(name, reference).type
        said = registry.meaning(reference)
        if isinstance(known, Members):
            said = "; ".join(f"`{each.value}`: {each.brief}" for each in known.members)
        elif known == "boolean":
            said += ": `true` or `false`"
        lines.append(f"| `{name}` | `{name.replace('.', '_')}` | {said} |")
    return "\n".join(lines)


def _listed(values: tuple[str, ...]) -> str:
    *most, last = (f"`{value}`" for value in values)
    return f"{', '.join(most)} or {last}"
