"""The modules that the registry of telemetry becomes: constants, and definitions of metrics."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.telemetry_registry import FOREIGN, Group, Registry

_FIRST = '''\
"""{what}, made of the YAML files beside it by `make telemetry-names`."""

from __future__ import annotations

'''


_IMPORTS = """\
from otel_loopguard.registry import names
from otel_loopguard.registry.metric import Metric"""


def names_module(registry: Registry) -> str:
    """Return the text of `names.py`."""
    lines = ["# OpenTelemetry's own names, as far as the guard writes them."]
    for name in registry.foreign:
        lines += _constant(constant(name), name, FOREIGN[name])
    for group in registry.groups:
        if group.display_name:
            lines += ["", f"# {group.display_name}."]
            for each in group.attributes:
                lines += _constant(constant(each.id), each.id, each.brief)
    lines += ["", "# Events."]
    for group in registry.of_type("event"):
        lines += _constant(f"EVENT_{constant(group.name)}", group.name, group.brief)
    what = "Names of attributes and events"
    return _FIRST.format(what=what) + "\n".join(lines) + "\n"


def metrics_module(registry: Registry) -> str:
    """Return the text of `metrics.py`."""
    metrics = registry.of_type("metric")
    blocks = [
        _IMPORTS,
        *("\n".join(_definition(group)) for group in metrics),
        "\n".join(
            [
                "METRICS = (",
                *(f"    {constant(group.metric_name)}," for group in metrics),
                ")",
                '"""All metrics."""',
            ]
        ),
    ]
    return _FIRST.format(what="Metrics of the guard") + "\n\n".join(blocks) + "\n"


def constant(name: str) -> str:
    """Return what a name is called in code."""
    return name.removeprefix("loopguard.").replace(".", "_").upper()


def _constant(called: str, name: str, brief: str) -> list[str]:
    # What looks like a secret to a linter is a name.
    exempt = "  # noqa: S105 -- a name" if "TOKEN_" in called else ""
    return [f'{called} = "{name}"{exempt}', f'"""{brief}."""']


def _definition(group: Group) -> Iterator[str]:
    names = [f"names.{constant(each.ref)}" for each in group.attributes]
    yield f"{constant(group.metric_name)} = Metric("
    yield f'    "{group.metric_name}",'
    yield f'    "{group.instrument}",'
    yield f'    "{group.unit}",'
    yield f'    "{group.brief}",'
    yield f"    ({', '.join(names)}{',' if len(names) == 1 else ''}),"
    bounds = group.annotations.explicit_bucket_boundaries
    if bounds:
        yield f"    buckets=({', '.join(f'{bound:.7g}' for bound in bounds)}),"
    if group.annotations.observed:
        yield "    observed=True,"
    yield ")"
