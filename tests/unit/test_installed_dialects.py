"""Dialects of other packages: found by their entry points, asked first, and harmless if broken."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from otel_loopguard.dialects import BUILT_IN
from otel_loopguard.doctor import Sighting, examine
from otel_loopguard.installed_dialects import all_dialects
from otel_loopguard.policy import Policy
from otel_loopguard.replay.recorded_spans import replay_spans
from otel_loopguard.sampling.recognition import is_gen_ai
from otel_loopguard.spans import SpanRecord
from tests._tracing import traced

MODULE = """
from otel_loopguard import Step
from otel_loopguard.dialects import Dialect

def read(record):
    return Step(kind="tool", name="ours") if record.name == "acme" else None

dialect = Dialect(name="acme", read=read)
nothing = 7
"""
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Install]:
    """Install a package that registers these dialects, as pip would."""

    def put(entries: str) -> None:
        info = tmp_path / "acme_dialect-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-dialect\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[otel_loopguard_dialect]\n{entries}\n")
        (tmp_path / "acme_dialect.py").write_text(MODULE)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        importlib.invalidate_caches()
        all_dialects.cache_clear()

    yield put
    all_dialects.cache_clear()


@pytest.mark.parametrize("what", ["dialect", "read"])
def test_an_installed_dialect_is_asked_first(install: Install, what: str) -> None:
    install(f"acme = acme_dialect:{what}")

    first, *others = all_dialects()

    assert first.name == "acme"
    assert tuple(others) == BUILT_IN


def test_it_serves_live_spans_and_recorded_ones(install: Install) -> None:
    install("acme = acme_dialect:dialect")
    record = SpanRecord(name="acme", trace_id=1, span_id=2, started_ns=1, ended_ns=2)

    assert [run.tool_calls for run in replay_spans([record], Policy(), "file")] == [1]
    with traced() as process:
        process.guard(Policy.none().with_limits(max_steps=1))
        with process.agent():
            for _ in range(2):
                with process.tracer.start_as_current_span("acme"):
                    pass
        assert process.total("loopguard.violations", rule="step_budget") == 1


def test_the_doctor_and_the_sampler_know_it_too(install: Install) -> None:
    install("acme = acme_dialect:dialect")
    record = SpanRecord(name="acme", trace_id=1, span_id=2, started_ns=1, ended_ns=2)

    (scope,) = examine([Sighting(record=record)]).scopes
    assert (scope.tools.calls, scope.recognised[0].dialect) == (1, "acme")
    assert is_gen_ai("acme", {})


@pytest.mark.parametrize("what", ["missing", "nothing"])
def test_one_that_cannot_be_used_is_logged_and_left_out(
    install: Install, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    install(f"acme = acme_dialect:{what}")

    assert tuple(all_dialects()) == BUILT_IN
    assert f"dialect 'acme' (acme_dialect:{what})" in caplog.text


def test_without_any_there_are_those_built_in() -> None:
    assert tuple(all_dialects()) == BUILT_IN
