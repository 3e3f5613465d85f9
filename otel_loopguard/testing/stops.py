"""Whether a run is stopped by its guard, and when: what a test of a limit asserts.

    assert_stops(lambda: agent.run("..."), rule="llm_call_budget", model_calls=5, model=model)

A guard that does not reach its agent makes the test fail, not hang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.decisions import RunReport
from otel_loopguard.testing.capture import Capture
from otel_loopguard.testing.run_to_end import Playable
from otel_loopguard.testing.trials import Expectations

if TYPE_CHECKING:
    from typing_extensions import Unpack


def assert_stops(run: Playable, **expected: Unpack[Expectations]) -> RunReport | None:
    """Do what `assert_stops` of the fixture `loopguard` does, without pytest."""
    __tracebackhide__ = True
    with Capture() as capture:
        return capture.assert_stops(run, **expected)


def assert_completes(run: Playable, **expected: Unpack[Expectations]) -> object:
    """Do what `assert_completes` of the fixture `loopguard` does, without pytest."""
    __tracebackhide__ = True
    with Capture() as capture:
        return capture.assert_completes(run, **expected)
