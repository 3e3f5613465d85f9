"""The names of `otel_loopguard.testing`, each imported when it is first asked for."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from otel_loopguard import testing

HEAVY = ("starlette", "uvicorn", "pydantic_ai", "langchain_core", "agents", "pytest")


@pytest.mark.parametrize("name", testing.__all__)
def test_a_public_name_is_what_it_is_called(name: str):
    named: object = getattr(testing, name)
    assert name in dir(testing)
    assert not isinstance(named, ModuleType)
    assert getattr(named, "__name__", name) == name


def test_the_names_are_sorted():
    assert testing.__all__ == sorted(testing.__all__, key=lambda each: (not each.isupper(), each))


def test_what_does_not_exist_is_named():
    name = "endless_model"
    with pytest.raises(AttributeError, match=rf"otel_loopguard\.testing.*'{name}'"):
        getattr(testing, name)


@pytest.mark.parametrize(
    "first", ["", "import otel_loopguard.testing.model_server; "], ids=["alone", "module first"]
)
def test_a_module_does_not_take_the_place_of_a_function(first: str):
    code = (
        f"{first}from otel_loopguard.testing import model_server\n"
        "import otel_loopguard.testing.model_server\n"
        "from otel_loopguard.testing import model_server as again\n"
        "with model_server() as server, again() as another: assert server.url != another.url"
    )
    assert run(code) == ""


def test_the_doubles_import_nothing_but_the_package():
    code = (
        "import sys\n"
        "from otel_loopguard.testing import EndlessModel, FakeClock, recording_tool\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    assert run(code) == "[]\n"


def run(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout
