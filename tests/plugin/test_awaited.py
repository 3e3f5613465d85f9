"""The pytest plugin beside those that run async tests, each the real one."""

from __future__ import annotations

from tests.plugin._sessions import LOOP, Sessions

RUNS = """
async def awaited(model, guard=None):
    while True:
        decision = None if guard is None else guard.check(Step(kind="llm", name="m"))
        if decision is not None and not decision.allowed:
            raise LoopGuardError(decision)
        await model()


class Async:
    def __init__(self, model):
        self._model = model

    async def __call__(self):
        await awaited(self._model.awaited, five())


async def waits_for_ever(model):
    model()
    await asyncio.Event().wait()
"""

TESTS = """
{mark}
async def test_stopped(loopguard, model):
    report = await loopguard.assert_stops_async(
        lambda: awaited(model.awaited, five()), model=model, model_calls=5, rule="llm_call_budget"
    )
    assert report.model_calls == 5

{mark}
async def test_object(loopguard, model):
    await loopguard.assert_stops_async(Async(model), model=model, model_calls=5)

{mark}
async def test_awaitable(loopguard, model):
    await loopguard.assert_stops_async(awaited(model.awaited, five()), model=model, model_calls=5)

{mark}
async def test_plain_function(loopguard, model):
    await loopguard.assert_stops_async(lambda: agent(model, five()), model=model, model_calls=5)

{mark}
async def test_completes(loopguard):
    async def run():
        await asyncio.sleep(0)
        return 42
    assert await loopguard.assert_completes_async(run) == 42

{mark}
async def test_never_waits(loopguard, model):
    await loopguard.assert_stops_async(lambda: awaited(model.awaited), model=model, timeout=0.2)

{mark}
async def test_only_waits(loopguard, model):
    await loopguard.assert_stops_async(lambda: waits_for_ever(model), model=model, timeout=0.2)

{mark}
async def test_no_model_to_tell(loopguard):
    async def spins():
        while True:
            pass
    await loopguard.assert_stops_async(spins, timeout=0.2)

{mark}
async def test_nothing_is_left(loopguard, model):
    import threading
    before = asyncio.all_tasks()
    with pytest.raises(AssertionError):
        await loopguard.assert_stops_async(lambda: awaited(model.awaited), model=model, timeout=0.2)
    assert asyncio.all_tasks() == before
    watches = [each for each in threading.enumerate() if each.name.startswith("loopguard")]
    for each in watches:
        each.join(5)
    assert not any(each.is_alive() for each in watches)

{mark}
@pytest.mark.loopguard(trips="llm_call_budget", at=6)
async def test_marked(model):
    with pytest.raises(LoopGuardError):
        await awaited(model.awaited, five())
"""

ENDED = {
    "test_stopped": "passed",
    "test_object": "passed",
    "test_awaitable": "passed",
    "test_plain_function": "passed",
    "test_completes": "passed",
    "test_never_waits": "failed",
    "test_only_waits": "failed",
    "test_no_model_to_tell": "failed",
    "test_nothing_is_left": "passed",
    "test_marked": "passed",
}


def test_pytest_asyncio(sessions: Sessions) -> None:
    tests = TESTS.format(mark="@pytest.mark.asyncio")

    session = sessions.run(LOOP + RUNS + tests, "-p", "no:anyio")

    assert session.outcomes == ENDED, session.text
    assert "no model could be told to refuse" in session.failure_of("test_no_model_to_tell")
    assert "CancelledError" not in session.failure_of("test_never_waits")


def test_anyio(sessions: Sessions) -> None:
    backend = """
@pytest.fixture
def anyio_backend():
    return "asyncio"
"""
    tests = TESTS.format(mark="@pytest.mark.anyio")

    session = sessions.run(LOOP + RUNS + backend + tests, "-p", "no:asyncio")

    assert session.outcomes == ENDED, session.text


def test_async_runs_in_plain_tests(sessions: Sessions) -> None:
    session = sessions.run(
        LOOP
        + RUNS
        + """
def test_stopped(loopguard, model):
    loopguard.assert_stops(
        lambda: awaited(model.awaited, five()), model=model, model_calls=5, rule="llm_call_budget"
    )

def test_coroutine_function(loopguard):
    async def run():
        return 42
    assert loopguard.assert_completes(run) == 42

def test_never_waits(loopguard, model):
    loopguard.assert_stops(lambda: awaited(model.awaited), model=model, timeout=0.2)

def test_only_waits(loopguard, model):
    loopguard.assert_stops(lambda: waits_for_ever(model), model=model, timeout=0.2)

def test_swallows(loopguard):
    def run():
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass
    loopguard.assert_stops(run, timeout=0.2)

def test_nothing_is_left():
    import threading
    watches = [each for each in threading.enumerate() if each.name.startswith("loopguard")]
    for each in watches:
        each.join(5)
    assert not any(each.is_alive() for each in watches)
"""
    )

    assert session.outcomes == {
        "test_stopped": "passed",
        "test_coroutine_function": "passed",
        "test_never_waits": "failed",
        "test_only_waits": "failed",
        "test_swallows": "failed",
        "test_nothing_is_left": "passed",
    }, session.text
