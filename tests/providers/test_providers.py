"""The guard beside what sets up tracing: each with the real package, in a process of its own.

What they export without the guard they export with it, whoever comes first, and the violation too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from otel_loopguard.testing import model_server
from otel_loopguard.testing.otlp_receiver import otlp_receiver
from otel_loopguard.testing.received import ReceivedSpan

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VENDORS = ("own", "logfire", "phoenix", "langfuse", "traceloop")
INSTRUMENT = str(Path(sys.executable).parent / "opentelemetry-instrument")
WORKED = {"invoke_agent scout": 1, "execute_tool search": 6}


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )
    assert done.returncode == 0, done.stderr
    return done


def exported(setup: str, guard: str, *, zero_code: bool = False, **variables: str) -> Exported:
    with otlp_receiver() as receiver:
        before = [INSTRUMENT] if zero_code else []
        application = [sys.executable, str(HERE / "_application.py"), setup, guard, receiver.url]
        given = {"OTEL_PYTHON_CONFIGURATOR": "none", **variables}
        if setup == "distro":
            given = {
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
                **variables,
            }
        done = run(*before, *application, **given)
        return Exported(receiver.spans, done.stderr)


class Exported:
    """What a receiver got of one process, and what that said."""

    def __init__(self, spans: list[ReceivedSpan], stderr: str) -> None:
        self.counts: Mapping[str, int] = Counter(span.name for span in spans)
        self.events = [event.name for span in spans for event in span.events]
        self.tripped = [span.name for span in spans if span.attributes.get("loopguard.tripped")]
        self.prevented = [
            span.name for span in spans if span.attributes.get("loopguard.step.prevented")
        ]
        self.stderr = stderr


@pytest.mark.parametrize("setup", VENDORS)
def test_nothing_is_found_without_the_guard(setup: str) -> None:
    without = exported(setup, "none")

    assert (without.counts, without.events, without.tripped) == (WORKED, [], [])


@pytest.mark.parametrize("guard", ["first", "last"])
@pytest.mark.parametrize("setup", VENDORS)
def test_one_line_before_or_after_the_set_up(setup: str, guard: str) -> None:
    guarded = exported(setup, guard)

    assert guarded.counts == WORKED
    assert set(guarded.events) == {"loopguard.violation"}
    assert guarded.tripped == ["invoke_agent scout"]
    assert "loopguard" not in guarded.stderr


@pytest.mark.parametrize("setup", ["logfire", "langfuse", "traceloop"])
def test_a_refused_call_is_not_made(setup: str) -> None:
    """Their processors, which look at starts too, are told of the span's end alone."""
    guarded = exported(
        setup, "first", OTEL_LOOPGUARD_MODE="enforce", OTEL_LOOPGUARD_MAX_TOOL_CALLS="2"
    )

    assert guarded.counts == {"invoke_agent scout": 1, "execute_tool search": 3}
    assert guarded.prevented == ["execute_tool search"]
    assert "Traceback" not in guarded.stderr


@pytest.mark.parametrize("setup", [*VENDORS, "distro"])
def test_no_line_of_code(setup: str) -> None:
    guarded = exported(setup, "none", zero_code=True)

    assert guarded.counts == WORKED
    assert set(guarded.events) == {"loopguard.violation"}
    assert guarded.tripped == ["invoke_agent scout"]


def test_it_can_be_switched_off_as_every_instrumentation() -> None:
    disabled = "requests, loopguard"
    without = exported(
        "distro", "none", zero_code=True, OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=disabled
    )

    assert (without.counts, without.events, without.tripped) == (WORKED, [], [])


def test_a_mistake_is_told_and_the_application_runs() -> None:
    without = exported("own", "none", zero_code=True, OTEL_LOOPGUARD_MODE="enforced")

    assert (without.counts, without.events) == (WORKED, [])
    assert "the loop guard is not active: OTEL_LOOPGUARD_MODE: " in without.stderr


YAML = """
file_format: "1.0"
tracer_provider:
  processors:
    - simple:
        exporter:
          otlp_http:
            endpoint: {address}/v1/traces
instrumentation/development:
  python:
    loopguard:
      rules:
        repeated_result: {{warn: 2, abort: 3}}
"""


def test_the_yaml_configuration_of_opentelemetry(tmp_path: Path) -> None:
    with otlp_receiver() as receiver:
        file = tmp_path / "otel.yaml"
        file.write_text(YAML.format(address=receiver.url))
        application = [sys.executable, str(HERE / "_application.py"), "distro", "none", ""]
        done = run(INSTRUMENT, *application, OTEL_CONFIG_FILE=str(file))
        got = Exported(receiver.spans, done.stderr)
        [trip] = [span for span in receiver.spans if span.attributes.get("loopguard.tripped")]

    assert got.counts == WORKED
    assert "not active" not in done.stderr
    counts = [event.attributes["loopguard.count"] for event in trip.events]
    assert counts[0] == 2


@pytest.mark.parametrize(
    ("variables", "requests", "ending"),
    [
        ({}, 21, "BadRequestError"),
        ({"OTEL_LOOPGUARD_MODE": "enforce"}, 5, "RunAborted"),
        ({"OTEL_LOOPGUARD_MODE": "enforce", "OTEL_LOOPGUARD_MAX_LLM_CALLS": "3"}, 3, "RunAborted"),
        ({"OTEL_LOOPGUARD_CONFIG": "{policy}"}, 4, "RunAborted"),
        (
            {"OTEL_LOOPGUARD_CONFIG": "{policy}", "OTEL_LOOPGUARD_MODE": "observe"},
            21,
            "BadRequestError",
        ),
    ],
)
def test_a_loop_that_somebody_wrote_is_stopped_with_no_line_of_code(
    tmp_path: Path, variables: Mapping[str, str], requests: int, ending: str
) -> None:
    policy = tmp_path / "loopguard.toml"
    policy.write_text('mode = "enforce"\n\n[limits]\nmax_llm_calls = 4\n')
    with model_server(cap=20) as server:
        done = run(
            INSTRUMENT,
            sys.executable,
            str(HERE / "_loop.py"),
            server.url,
            OTEL_TRACES_EXPORTER="none",
            OTEL_METRICS_EXPORTER="none",
            OTEL_LOGS_EXPORTER="none",
            **{name: text.format(policy=policy) for name, text in variables.items()},
        )
        arrived = server.count()

    assert (done.stdout.split(), arrived) == ([ending, str(min(requests, 20))], requests)
