"""What holds for all tests; and the examples of README, docs and docstrings, which run as tests."""

from __future__ import annotations

import gc
import os
import sys
from doctest import ELLIPSIS
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import none
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.myst import DocTestDirectiveParser, PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

pytest.register_assert_rewrite("tests")

pytest_plugins = ("pytester",)  # the tests of the pytest plugin start sessions of their own

# A loaded machine or a coverage run is no failure of an example; pytest-timeout ends what hangs.
# Each run draws other examples, so some of them each time are enough where people wait; a CI run
# takes all once (`thorough`), and few where what is tested is another Python (`brief`).
for name, share in {"house": 25, "thorough": 100, "brief": 15}.items():
    settings.register_profile(
        name,
        settings.default,
        deadline=None,
        print_blob=True,
        max_examples=share,
        suppress_health_check=[HealthCheck.data_too_large],  # runs of many spans are large
    )
# `make mutants` runs tests thousands of times: the same few examples each time, and the first that
# fails is enough.
settings.register_profile(
    "mutants",
    settings.get_profile("house"),
    database=None,
    derandomize=True,
    max_examples=25,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=tuple(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))

# What the shell of whoever runs the tests says to the guard is no part of them.
for name in [name for name in os.environ if name.startswith("OTEL_LOOPGUARD_")]:
    del os.environ[name]

pages = Sybil(
    parsers=[DocTestDirectiveParser(ELLIPSIS), PythonCodeBlockParser(doctest_optionflags=ELLIPSIS)],
    patterns=["README.md", "docs/*.md", "docs/integrations/*.md", "docs/rules/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser(ELLIPSIS)],
    path="otel_loopguard",
    patterns=["*.py"],
    document_types={".py": PythonDocStringDocument},
)

pytest_collect_file = (pages + docstrings).pytest()


@given(none())
def holds(_: None) -> None:
    """Be a law that holds."""


def pytest_collection_finish(session: pytest.Session) -> None:  # noqa: ARG001 -- the hook's name
    """Spare the garbage collector the thousands of tests, which are there to the end."""
    holds()  # the first law that is tried looks for something among what the collector sees
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let go of recordings that a file's tests have read: all of them are large."""
    if nextitem is None or nextitem.path != item.path:
        for name in ("tests._recordings", "tests._played"):
            for held in vars(sys.modules.get(name, object)).values():
                if hasattr(held, "cache_clear"):
                    held.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def no_guards_of_other_files() -> None:
    """Shut down what examples and other files' tests left behind: it would be asked as well."""
    gc.collect()
    processors: Any = sys.modules.get("otel_loopguard.processor")
    for guard in () if processors is None else processors.guards_of_process():
        guard.shutdown()
