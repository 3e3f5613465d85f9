"""The registry of what the guard writes: whole, and all that is made of it is as it says."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from otel_loopguard import semconv
from otel_loopguard.registry import metrics, names
from scripts import telemetry_registry
from scripts.telemetry_names import PAGE, written
from scripts.telemetry_registry import HOME, read
from scripts.telemetry_tables import page_with_tables, prometheus_name


@pytest.mark.parametrize("path", sorted(written()), ids=lambda path: path.name)
def test_what_is_made_of_the_registry_is_as_it_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == written()[path], "run `make telemetry-names`"


def test_what_is_referred_to_is_called_as_where_it_is_read() -> None:
    read_as = (semconv.ERROR_TYPE, semconv.GEN_AI_AGENT_NAME, semconv.GEN_AI_TOOL_NAME)

    assert read_as == (names.ERROR_TYPE, names.GEN_AI_AGENT_NAME, names.GEN_AI_TOOL_NAME)


def test_all_that_is_defined_is_of_the_guard_and_in_use() -> None:
    registry = read()
    used = {each.ref for group in registry.groups for each in group.attributes if each.ref}
    given = {each.id for each in registry.group("registry.loopguard.given").attributes}

    assert {name for name in registry.attributes if not name.startswith("loopguard.")} == set()
    assert set(registry.attributes) - given == used - set(registry.foreign)


def test_the_files_come_with_the_package() -> None:
    shipped = files("otel_loopguard.registry")
    found = {each.name for each in shipped.iterdir() if each.name.endswith(".yaml")}

    assert found == {f"{name}.yaml" for name in telemetry_registry.FILES}


def test_names_of_metrics_are_unique_in_prometheus_too() -> None:
    called = [prometheus_name(group) for group in read().of_type("metric")]

    assert len(set(called)) == len(called) == len(metrics.METRICS)
    assert "loopguard_run_duration_after_trip_seconds_bucket" in called
    assert "loopguard_run_age_max_seconds" in called
    assert "loopguard_cost_total" in called
    assert "loopguard_info" in called


@pytest.mark.parametrize(
    ("was", "becomes", "error", "said"),
    [
        pytest.param(
            "ref: error.type", "ref: eror.type", ValueError, "'eror.type' in", id="reference"
        ),
        pytest.param("    unit: s\n", "", ValueError, "expected a whole metric", id="no unit"),
        pytest.param("unit: s", "units: s", msgspec.ValidationError, "units", id="unknown key"),
        pytest.param(
            "instrument: gauge",
            "instrument: gage",
            msgspec.ValidationError,
            "gage",
            id="instrument",
        ),
    ],
)
def test_a_mistake_in_the_registry_is_told_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    was: str,
    becomes: str,
    error: type[Exception],
    said: str,
) -> None:
    for name in telemetry_registry.FILES:
        text = (HOME / f"{name}.yaml").read_text(encoding="utf-8")
        (tmp_path / f"{name}.yaml").write_text(text.replace(was, becomes, 1), encoding="utf-8")
    monkeypatch.setattr(telemetry_registry, "HOME", tmp_path)

    with pytest.raises(error, match=said):
        read()


def test_a_page_without_room_for_a_table_is_told_of() -> None:
    page = PAGE.read_text(encoding="utf-8").replace("<!-- made of the registry: run -->", "")

    with pytest.raises(ValueError, match="registry: run"):
        page_with_tables(page, read())
