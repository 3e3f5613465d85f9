"""What a test gets: it observes every guard, and asserts that runs are stopped, or complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_loopguard.decisions import RunReport
from otel_loopguard.testing.observer import Observer
from otel_loopguard.testing.run_to_end import Playable, play, play_here
from otel_loopguard.testing.trials import TIMEOUT_S, Expectations, Expected, Trial

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Capture(Observer):
    """Observes guards and spans, plays runs, and asserts how they end. The fixture `loopguard`."""

    def __init__(self, *, contents: bool = False) -> None:
        super().__init__(contents=contents)
        self.trials: list[Trial] = []
        """The runs that were played."""

    def assert_stops(self, run: Playable, **expected: Unpack[Expectations]) -> RunReport | None:
        """Play a run in a thread, or on a loop of its own, and fail unless its guard stops it.

        It was stopped if `RunAborted` came out of it, whatever has wrapped it, or a loop's own
        `LoopGuardError`; or, in frameworks that end quietly, if a guard reports it as `aborted`.
        Returns that report.

        Raises:
            AssertionError: says what was expected and what came, draws the run, and names what to
                check where no guard saw it.

        """
        __tracebackhide__ = True
        trial, timeout_s = self._begin(expected, stops=True)
        return trial.judge(play(run, timeout_s, trial.refuse))

    async def assert_stops_async(
        self, run: Playable, **expected: Unpack[Expectations]
    ) -> RunReport | None:
        """Do what `assert_stops` does on the running loop of asyncio."""
        __tracebackhide__ = True
        trial, timeout_s = self._begin(expected, stops=True)
        return trial.judge(await play_here(run, timeout_s, trial.refuse))

    def assert_completes(self, run: Playable, **expected: Unpack[Expectations]) -> object:
        """Play a run as `assert_stops` does, and fail unless it ends by itself; return its value.

        No guard may have stopped it, and nothing may have been raised.

        Raises:
            AssertionError: says what was expected and what came, and draws the run.

        """
        __tracebackhide__ = True
        trial, timeout_s = self._begin(expected, stops=False)
        end = play(run, timeout_s, trial.refuse)
        trial.judge(end)
        return end.value

    async def assert_completes_async(
        self, run: Playable, **expected: Unpack[Expectations]
    ) -> object:
        """Do what `assert_completes` does on the running loop of asyncio."""
        __tracebackhide__ = True
        trial, timeout_s = self._begin(expected, stops=False)
        end = await play_here(run, timeout_s, trial.refuse)
        trial.judge(end)
        return end.value

    def _begin(self, said: Expectations, *, stops: bool) -> tuple[Trial, float | None]:
        expected = Expected(
            stops=stops,
            rule=said.get("rule"),
            model_calls=said.get("model_calls"),
            tool_executions=said.get("tool_executions"),
        )
        timeout_s = said.get("timeout", TIMEOUT_S)
        named = said.get("model")
        models = tuple(self.models) if named is None else (named,)
        trial = Trial(self, expected, models, tuple(said.get("tools", ())), timeout_s)
        self.trials.append(trial)
        return trial, timeout_s
