"""The contract of an integration: runs end in the framework's own way, and can be gone on with.

`docs/integrations/matrix.md` is made of the cells; `pytest --measure` writes them anew. Without
`--every-way` only the first blocking and the first awaited way are tried.
"""

from __future__ import annotations

import asyncio
import runpy
from functools import partial
from pathlib import Path

import pytest

from otel_loopguard import AbortRequest, LoopGuardSpanProcessor, Policy, abort_of
from otel_loopguard.integrations import attach
from tests._integrations import QUIET, Cell
from tests._zero_code import Spent, Where
from tests.frameworks._cells import Cells, name_of
from tests.frameworks._expected import ANSWER, HEALTHY
from tests.frameworks._guides import hold
from tests.frameworks._integrated import script_of
from tests.frameworks._side_by_side import in_one_loop, in_two_threads
from tests.frameworks._stage import Said, Scene, Stage
from tests.frameworks._steered import HINT, steered
from tests.frameworks._workbench import Counts

THREE_EQUAL = Policy.none().with_limits(max_repeated_calls=3)


class TestIntegration:
    """An agent of the framework, with the integration and nothing else of the guard's in code."""

    def test_runaway(self, stage: Stage, way: str, cells: Cells):
        asked: list[tuple[str, Counts]] = []
        script = script_of(way)

        def hook(request: AbortRequest) -> None:
            asked.append((request.violation.rule, scene.counts()))

        with stage.guarded(abort_hooks=[hook]) as scene:
            stopped, went_on = scene.talk(way, script, "finish3")
            statuses = tripped(scene)
        rule, at_the_trip = asked[0] if asked else (None, None)
        assert scene.points("loopguard.errors") == []
        cells.hold(
            Cell(
                way=way,
                rule=rule,
                at_the_trip=None if at_the_trip is None else spent(at_the_trip),
                at_the_end=spent(stopped.counts),
                caller=caller(stopped),
                run_aborted=where(stopped),
                status=statuses[0] if statuses else "not tripped",
                goes_on=went_on.answer == ANSWER and went_on.error is None,
            )
        )

    def test_healthy(self, stage: Stage, plain_way: str, caplog: pytest.LogCaptureFixture):
        with stage.scene() as scene:
            alone = scene.talk(plain_way, "finish3")
        caplog.clear()
        with caplog.at_level("WARNING", "otel_loopguard"), stage.guarded() as scene:
            guarded = scene.talk(plain_way, "finish3")
        assert alone == [Said(ANSWER, None, HEALTHY)]
        assert guarded == alone
        assert scene.points("loopguard.violations") == []
        assert scene.points("loopguard.errors") == []
        assert [each for each in caplog.records if each.name.startswith("otel_loopguard")] == []

    def test_two_at_once(self, stage: Stage, plain_way: str):
        with stage.guarded() as scene:
            if plain_way in stage.integrated.awaited:
                talked = partial(scene.talked, plain_way)
                both = asyncio.run(
                    in_one_loop(scene, talked("endless"), partial(talked, "finish3"))
                )
            else:
                talk = partial(scene.talk, plain_way)
                both = in_two_threads(scene, partial(talk, "endless"), partial(talk, "finish3"))
            [stopped], [healthy] = both
        assert (healthy.answer, healthy.error, healthy.counts) == (ANSWER, None, HEALTHY)
        assert caller(stopped) != QUIET

    def test_blocked_before_it_is_made(self, stage: Stage, cells: Cells):
        """The fourth of equal calls is one too many, and no span shows any arguments."""
        with stage.guarded(THREE_EQUAL, content=False) as scene:
            stopped, went_on = scene.talk(stage.integrated.ways[0], "endless", "finish3")
        assert caller(stopped) != QUIET
        cells.hold_blocked(spent(stopped.counts))
        assert (went_on.answer, went_on.error) == (ANSWER, None), "the history can be gone on with"

    def test_limit_on_model_calls(self, stage: Stage, plain_way: str):
        policy = Policy.none().with_limits(max_llm_calls=5)
        with stage.guarded(policy, content=False) as scene:
            [stopped] = scene.talk(plain_way, "endless")
        assert caller(stopped) != QUIET
        assert stopped.counts == Counts(requests=5, executions=5)

    def test_hint(self, stage: Stage, cells: Cells):
        """A model that changes course when it is told hears of it once."""
        if not stage.integrated.steers:
            cells.hold_hint(None)
            return
        with steered() as (server, model):
            told = Stage(stage.integrated, server)
            with told.guarded(Policy(steer=f"{HINT} ({{rule}})")) as scene:
                [said] = scene.talk(stage.integrated.ways[0], "a model that listens")
        assert (said.answer, said.error) == (ANSWER, None)
        assert model.heard.count(1) == 1
        assert model.heard[-1] == 1, "in the request after the warning"
        cells.hold_hint(sum(model.heard))

    def test_attached_by_itself(self, stage: Stage, request: pytest.FixtureRequest):
        """`install()`, and the way without code, attach it because the framework is imported.

        The gate alone would find no repetition: no span shows any arguments.
        """
        with stage.scene(content=False) as scene:
            guard = LoopGuardSpanProcessor(THREE_EQUAL, mode="enforce", meter_provider=scene.meters)
            scene.provider.add_span_processor(guard)
            attach(guard, (name_of(request.path),))
            [said] = scene.talk(stage.integrated.ways[0], "endless")
            guard.shutdown()
        assert caller(said) != QUIET
        assert said.counts == Counts(requests=4, executions=3)

    def test_nothing_is_left_behind(self, stage: Stage):
        """With the last guard gone an agent runs to its own limit, as if none had been there."""
        way = stage.integrated.ways[0]
        with stage.guarded():
            pass
        with stage.scene() as scene:
            [said] = scene.talk(way, "endless")
        assert said.counts.requests > Counts(requests=6, executions=6).requests

    def test_example(self, example: Path, capsys: pytest.CaptureFixture[str]):
        runpy.run_path(str(example), run_name="__main__")
        assert ANSWER in capsys.readouterr().out

    @pytest.mark.usefixtures("example")
    def test_guide(self, request: pytest.FixtureRequest, tmp_path: Path):
        hold(name_of(request.path), tmp_path)

    def test_no_other_cells(self, cells: Cells):
        cells.hold_nothing_else()


def tripped(scene: Scene) -> list[str]:
    """Return how the runs count that have ended after a trip."""
    ended = [labels for labels, _ in scene.points("loopguard.runs")]
    return [str(each["loopguard.run.status"]) for each in ended if each["loopguard.tripped"]]


def caller(said: Said) -> str:
    """Return what the caller got: the type of what was raised, or the framework's own word."""
    return type(said.error).__name__ if said.error else said.ended or QUIET


def spent(counts: Counts) -> Spent:
    return Spent(model_requests=counts.requests, tool_executions=counts.executions)


def where(said: Said) -> Where:
    """Return where `RunAborted` is in what the caller got."""
    found = abort_of(said.error)
    if found is not None:
        return "itself" if found is said.error else "wrapped"
    return "text" if "the loop guard" in f"{said.error} {said.answer}" else "absent"


__all__ = ["TestIntegration"]
