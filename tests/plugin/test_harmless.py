"""The pytest plugin in sessions that do not use it, or have only a part of what it needs."""

from __future__ import annotations

import pytest

from tests.plugin._sessions import LOOP, Sessions

IMPORTED = """
import sys

def test_nothing_is_imported():
    ours = [name for name in sys.modules if name.startswith(("otel_loopguard", "opentelemetry"))]
    assert ours == []
"""


@pytest.mark.parametrize(
    "options",
    [(), ("-n", "1"), ("-p", "no:loopguard")],
    ids=["alone", "xdist", "switched-off"],
)
def test_it_imports_nothing_of_the_package(sessions: Sessions, options: tuple[str, ...]) -> None:
    session = sessions.run(IMPORTED, *options)

    assert session.outcomes == {"test_nothing_is_imported": "passed"}, session.text
    assert session.summary == []


def test_without_the_extra_the_doubles_work(sessions: Sessions) -> None:
    session = sessions.run(
        """
import sys

class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("starlette", "uvicorn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing)
"""
        + LOOP
        + """
def test_stopped(loopguard, model):
    loopguard.assert_stops(lambda: agent(model, five()), model=model, model_calls=5)

def test_server(model_server): ...
"""
    )

    assert session.outcomes == {"test_stopped": "passed", "test_server": "error"}, session.text
    assert "pip install 'otel-loopguard[testing]'" in session.failure_of("test_server")


def test_switched_off_it_offers_nothing(sessions: Sessions) -> None:
    session = sessions.run(LOOP + "def test_fixture(loopguard): ...", "-p", "no:loopguard")

    assert session.outcomes == {"test_fixture": "error"}
    assert "fixture 'loopguard' not found" in session.text


def test_fixtures_of_the_same_names_are_left_alone(sessions: Sessions) -> None:
    session = sessions.run(
        """
import pytest

@pytest.fixture
def loopguard():
    return "mine"

@pytest.fixture
def model_server():
    return "mine too"

def test_mine(loopguard, model_server):
    assert (loopguard, model_server) == ("mine", "mine too")
"""
    )

    assert session.outcomes == {"test_mine": "passed"}, session.text
