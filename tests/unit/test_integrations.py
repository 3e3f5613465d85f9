"""How integrations are attached: once their frameworks are imported, now or later."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import otel_loopguard
from otel_loopguard import LoopGuardSpanProcessor, PolicyError, integrations
from otel_loopguard.installation import uninstall
from otel_loopguard.options import frameworks

FRAMEWORK = "class Agent:\n    def ask(self):\n        return 'asked'\n"
INTEGRATION = """
from otel_loopguard.abort.patches import Entry
from otel_loopguard.integrations._integration import Integration


def _places(module):
    def asked(wrapped, agent, args, kwargs):
        return 'wrapped ' + wrapped(*args, **kwargs)

    yield Entry(module.Agent, "ask", asked)


_INTEGRATION = Integration("A framework", {"a_framework": _places})
install, uninstall = _INTEGRATION.install, _INTEGRATION.uninstall
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[[], str]]:
    """A framework that can be imported, and an integration for it; asks an agent of it."""
    (tmp_path / "a_framework.py").write_text(FRAMEWORK)
    (tmp_path / "for_a_framework.py").write_text(INTEGRATION)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(integrations, "__path__", [*integrations.__path__, str(tmp_path)])
    known = MappingProxyType({"for_a_framework": "a_framework"})
    for module in (integrations, frameworks):
        monkeypatch.setattr(module, "FRAMEWORKS", known)
    monkeypatch.setattr(integrations.Waiting, "guards", {})
    monkeypatch.setattr(integrations.Waiting, "hooked", frozenset[str]())

    def ask() -> str:
        framework: Any = import_module("a_framework")
        return framework.Agent().ask()

    yield ask
    uninstall()
    for name in ("a_framework", f"{integrations.__name__}.for_a_framework"):
        sys.modules.pop(name, None)


def test_a_framework_that_is_imported_later(ask: Callable[[], str]):
    guard = otel_loopguard.install(mode="enforce")
    assert ask() == "wrapped asked"
    guard.shutdown()
    assert ask() == "asked"


def test_a_framework_that_is_there_already(ask: Callable[[], str]):
    assert ask() == "asked"
    guard = otel_loopguard.install(mode="enforce")
    assert ask() == "wrapped asked"
    guard.shutdown()


def test_the_last_guard_counts(ask: Callable[[], str]):
    otel_loopguard.install(mode="enforce")
    guard = otel_loopguard.install(mode="enforce")
    assert ask() == "wrapped asked"
    guard.shutdown()
    assert ask() == "asked"


def test_a_guard_that_is_gone_before_the_framework_comes(ask: Callable[[], str]):
    otel_loopguard.install(mode="enforce").shutdown()
    assert ask() == "asked"


@pytest.mark.parametrize("where", ["code", "variable", "not-installed"])
def test_none_unless_wanted(where: str, ask: Callable[[], str], monkeypatch: pytest.MonkeyPatch):
    if where == "code":
        otel_loopguard.install(mode="enforce", integrations=())
    elif where == "variable":
        monkeypatch.setenv("OTEL_LOOPGUARD_INTEGRATIONS", "none")
        otel_loopguard.install(mode="enforce")
    else:
        LoopGuardSpanProcessor(mode="enforce").shutdown()
    assert ask() == "asked"


def test_those_that_are_named(ask: Callable[[], str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_LOOPGUARD_INTEGRATIONS", "for_a_framework")
    otel_loopguard.install(mode="enforce")
    assert ask() == "wrapped asked"


@pytest.mark.usefixtures("ask")
def test_a_name_that_is_none(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(PolicyError, match=r"^integrations: expected names out of for_a_framework"):
        otel_loopguard.install(integrations=("for_another",))
    with pytest.raises(PolicyError, match=r"got 'for_a_framework'$"):
        otel_loopguard.install(integrations="for_a_framework")
    monkeypatch.setenv("OTEL_LOOPGUARD_INTEGRATIONS", "for_another")
    with pytest.raises(PolicyError, match=r"^OTEL_LOOPGUARD_INTEGRATIONS: expected names out of"):
        otel_loopguard.install()


def test_one_that_cannot_be_installed_is_told_of_and_the_framework_is_there(
    ask: Callable[[], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "for_a_framework.py").write_text("raise RuntimeError('another version')\n")
    otel_loopguard.install(mode="enforce")
    with caplog.at_level(logging.ERROR, "otel_loopguard"):
        assert ask() == "asked"
    assert "'for_a_framework' cannot be installed; its other stops are there" in caplog.text


def test_another_package_of_that_name_is_no_reason_to_warn(
    ask: Callable[[], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Many a project has a package `agents` of its own."""
    (tmp_path / "for_a_framework.py").write_text("from a_framework import Runner\n")
    otel_loopguard.install(mode="enforce")
    with caplog.at_level(logging.INFO, "otel_loopguard.integrations"):
        assert ask() == "asked"
    [said] = caplog.records
    assert said.levelno == logging.INFO
    assert "'for_a_framework' is left out, its other stops are there: cannot" in said.getMessage()


def test_a_framework_that_is_built_otherwise(
    ask: Callable[[], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "for_a_framework.py").write_text(INTEGRATION.replace('"ask"', '"asks"'))
    otel_loopguard.install(mode="enforce")
    with caplog.at_level(logging.ERROR, "otel_loopguard"):
        assert ask() == "asked"
    assert "runs of A framework are stopped by the model gate alone" in caplog.text
