"""Who runs in the stack: agents that loop and are stopped, and the run that trips everything."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from otel_loopguard.testing import model_server
from scripts.stack.agents import DOUBLES, HOOKED, PROGRAM, Agent, running_agent
from scripts.stack.posts import taking_posts
from scripts.stack.programs import Program
from scripts.stack.stop_service import StopService
from scripts.stack.whole import Stack

RUNAWAY = "LoopguardRunawayContinues"
TURN_S = 0.2
"""How long the model of the runaway takes over an answer."""
ENFORCE = {"OTEL_LOOPGUARD_MODE": "enforce"}
ESTIMATED = {"OTEL_LOOPGUARD_MAX_COST_USD": "5"}
"""With a limit in dollars, models whose price is known have one."""
# The model is a made-up one, so its price is, too.
PRICED = {"OTEL_LOOPGUARD_USAGE_PRICE": "input_per_m_usd=2.5,output_per_m_usd=10"}
SPARING = {
    "crowd": {"OTEL_METRIC_EXPORT_INTERVAL": "5000"},  # thousands of series
    "slow": {"OTEL_TRACES_EXPORTER": "none"},  # hundreds of spans a second that say nothing
}
FOR_EVER = "86400"
ACTED = dict.fromkeys(("rounds", "hoard", "lapse", "blind", "slow"), FOR_EVER) | {"crowd": "15"}
"""For how many seconds each part is acted: the crowd until it has been seen, for it weighs much."""


class Story:
    """What a scenario is told of at the start, and what it does while it is watched."""

    def __init__(self, *told: str, go_on: Callable[[], object] = lambda: None) -> None:
        self.told = told
        self.go_on = go_on


class Runaway:
    """An agent that nothing built in stops, who is asked to stop it, and its process."""

    def __init__(self, service: StopService, program: Program) -> None:
        self.service = service
        self.program = program


@contextmanager
def looping_agent(
    stack: Stack, *, runs: int, pause_s: float, service: str = "scout", **variables: str
) -> Generator[Program]:
    """An agent whose model asks for the same tool for ever; the guard stops each of its runs."""
    with model_server("endless") as model:
        agent = Agent(
            service=service,
            model_url=model.url,
            arguments=(
                *(PROGRAM, "--name", service, "--runs", str(runs), "--pause", str(pause_s)),
            ),
            variables={**ENFORCE, **PRICED, **variables},
        )
        with running_agent(agent, stack.folder, stack.gateway.otlp) as program:
            yield program


@contextmanager
def healthy_agent(stack: Stack, *, runs: int, pause_s: float) -> Generator[Program]:
    """An agent that comes to an end each time, on a model whose price is known."""
    with model_server("finish:3") as model:
        agent = Agent(
            service="concierge",
            model_url=model.url,
            arguments=(
                *(PROGRAM, "--name", "concierge", "--model", "gpt-4o"),
                *("--runs", str(runs), "--pause", str(pause_s)),
            ),
            variables={**ENFORCE, **ESTIMATED},
        )
        with running_agent(agent, stack.folder, stack.gateway.otlp) as program:
            yield program


@contextmanager
def runaway_agent(stack: Stack, *, stays: bool = False, **variables: str) -> Generator[Runaway]:
    """An agent whose guard can do nothing but ask a service, which is down until it is up.

    Once it is up it takes the model away, as one does who revokes a key. `stays` says whether the
    agent's process goes on after that, without a run.
    """
    with model_server(f"slow:{TURN_S}") as model, ExitStack() as running:
        service = StopService(lambda: model.refuse("this key was revoked"))
        address = running.enter_context(taking_posts(service.answer))
        agent = Agent(
            service="runaway",
            model_url=model.url,
            arguments=(
                # Until it is stopped, however long that takes on a busy machine.
                *(HOOKED, "--name", "runaway", "--model", "gpt-4o", "--turns", "1000000"),
                *(("--runs", "2", "--pause", "86400") if stays else ()),
            ),
            variables={**PRICED, "STOP_URL": address, **variables},
        )
        with running_agent(agent, stack.folder, stack.gateway.otlp) as program:
            yield Runaway(service, program)


@contextmanager
def looping(stack: Stack) -> Generator[Story]:
    """Three real agents: one that is stopped, one that is well, one that runs away."""
    with (
        looping_agent(stack, runs=100_000, pause_s=5),
        healthy_agent(stack, runs=100_000, pause_s=1),
        runaway_agent(stack, stays=True) as runaway,
    ):

        def go_on() -> None:
            if (
                stack.pager.pages(alertname=RUNAWAY, job="runaway")
                and runaway.service.state == "down"
            ):
                print(
                    "          somebody was paged and has brought the stop service up", flush=True
                )
                runaway.service.state = "up"

        yield Story(
            "scout loops for ever; the guard stops each of its runs before its next model call",
            "concierge is well: it answers after a few calls",
            "runaway loops as well, and its guard can only ask a service to stop it, which is down",
            go_on=go_on,
        )


@contextmanager
def everything(stack: Stack) -> Generator[Story]:
    """Real agents and acted ones, until every metric and every rule has something."""
    with ExitStack() as running:
        steered = {"OTEL_LOOPGUARD_STEER": "true"}
        running.enter_context(looping_agent(stack, runs=100_000, pause_s=3, **steered))
        runaway = running.enter_context(runaway_agent(stack, LATE="yes"))
        for part, seconds in ACTED.items():
            agent = Agent(
                service=f"acted-{part}",
                model_url="",  # what is acted asks no model
                arguments=(*DOUBLES, stack.folder, "--part", part, "--seconds", seconds),
                variables=SPARING.get(part, {}),
            )
            running.enter_context(running_agent(agent, stack.folder, stack.gateway.otlp))

        def go_on() -> None:
            if stack.pager.pages(alertname=RUNAWAY, job="runaway", window="5m"):
                runaway.service.state = "up"

        yield Story("real agents and acted ones trip all there is", go_on=go_on)


SCENARIOS: dict[str, Callable[[Stack], AbstractContextManager[Story]]] = {
    "looping": looping,
    "everything": everything,
}
