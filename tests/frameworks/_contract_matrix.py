"""The contract: what the guard alone does in each mode is what the committed rows say.

`docs/zero-code.md` is made of the rows; `pytest --measure` writes them anew.
"""

from __future__ import annotations

import asyncio

import pytest

from otel_loopguard import AbortRequest, abort_of
from tests._zero_code import Healthy, Row, Spent, Surroundings, Together, Where
from tests.frameworks._contract_company import both_in_one_loop, both_in_two_threads
from tests.frameworks._expected import ANSWER, HEALTHY
from tests.frameworks._rows import Rows
from tests.frameworks._surroundings import Around, around_of
from tests.frameworks._workbench import Counts, Outcome, Scene, Workbench


class TestMatrix:
    """Each way to run an agent, with the default policy in mode `enforce` and nothing else."""

    def test_row(
        self,
        bench: Workbench,
        mode: str,
        surroundings: Surroundings,
        rows: Rows,
        caplog: pytest.LogCaptureFixture,
    ):
        asked, outcome, at_the_end = runaway(bench, mode, surroundings)
        rule, at_the_trip = asked[0] if asked else (None, None)
        rows.hold(
            Row(
                around=surroundings,
                mode=mode,
                rule=rule,
                at_the_trip=at_the_trip,
                at_the_end=at_the_end,
                error=type(outcome.error).__name__ if outcome.error else None,
                run_aborted=where(outcome),
                healthy=healthy(bench, mode, surroundings, caplog),
                together=together(bench, mode, surroundings),
            )
        )

    def test_no_other_rows(self, rows: Rows):
        rows.hold_nothing_else()


def runaway(
    bench: Workbench, mode: str, surroundings: Surroundings
) -> tuple[list[tuple[str, Spent]], Outcome, Spent]:
    """Play a runaway: what the hooks were told and when, what the caller got, and all it cost."""
    asked: list[tuple[str, Spent]] = []

    def hook(request: AbortRequest) -> None:
        asked.append((request.violation.rule, spent(scene.counts())))

    with bench.guarded(abort_hooks=[hook]) as scene:
        outcome = scene.play(mode, around=around(scene, surroundings))
        return asked, outcome, spent(scene.counts())


def healthy(
    bench: Workbench, mode: str, surroundings: Surroundings, log: pytest.LogCaptureFixture
) -> Healthy:
    """Play a healthy run, without the guard and with it."""
    with bench.scene() as scene:
        alone = scene.play(mode, "finish3", around=around(scene, surroundings))
    assert alone == (ANSWER, None, HEALTHY)
    log.clear()
    with log.at_level("WARNING", "otel_loopguard"), bench.guarded() as scene:
        outcome = scene.play(mode, "finish3", around=around(scene, surroundings))
        violations = scene.points("loopguard.violations")
    said = [each for each in log.records if each.name.startswith("otel_loopguard")]
    return Healthy(
        spent=spent(outcome.counts),
        same_answer=(outcome.answer, outcome.error) == (alone.answer, None),
        warnings=len(violations) + len(said),
    )


def together(bench: Workbench, mode: str, surroundings: Surroundings) -> Together:
    """Play a runaway and a healthy run that lasts longer."""
    with bench.guarded() as scene:
        both = (around(scene, surroundings), around(scene, surroundings))
        if mode in bench.framework.awaited:
            stopped, untouched = asyncio.run(both_in_one_loop(scene, mode, both))
        else:
            stopped, untouched = both_in_two_threads(scene, mode, both)
    return Together(
        runaway=spent(stopped.counts),
        run_aborted=where(stopped),
        healthy=spent(untouched.counts),
        same_answer=(untouched.answer, untouched.error) == (ANSWER, None),
    )


def around(scene: Scene, surroundings: Surroundings) -> Around | None:
    return around_of(surroundings, scene.provider, scene.framework.run_span)


def spent(counts: Counts) -> Spent:
    return Spent(model_requests=counts.requests, tool_executions=counts.executions)


def where(outcome: Outcome) -> Where:
    """Return where `RunAborted` is in what the caller got."""
    found = abort_of(outcome.error)
    if found is not None:
        return "itself" if found is outcome.error else "wrapped"
    return "text" if "the loop guard" in f"{outcome.error} {outcome.answer}" else "absent"


__all__ = ["TestMatrix"]
