"""What holds for all tests; and the examples of README, docs and docstrings, which run as tests."""

from __future__ import annotations

import os
import sys
from doctest import ELLIPSIS

import pytest
from hypothesis import HealthCheck, Phase, settings
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.myst import DocTestDirectiveParser, PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

# A loaded machine or a coverage run is no failure of an example; pytest-timeout ends what hangs.
settings.register_profile("house", settings.default, deadline=None, print_blob=True)
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

pages = Sybil(
    parsers=[DocTestDirectiveParser(ELLIPSIS), PythonCodeBlockParser(doctest_optionflags=ELLIPSIS)],
    patterns=["README.md", "docs/*.md", "docs/rules/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser(ELLIPSIS)],
    path="otel_loopguard",
    patterns=["*.py"],
    document_types={".py": PythonDocStringDocument},
)

pytest_collect_file = (pages + docstrings).pytest()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let go of recordings that a file's tests have read: all of them are large."""
    if nextitem is None or nextitem.path != item.path:
        for name in ("tests._recordings", "tests._played"):
            for held in vars(sys.modules.get(name, object)).values():
                if hasattr(held, "cache_clear"):
                    held.cache_clear()
