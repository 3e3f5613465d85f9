"""What holds for all tests; and the examples of README, docs and docstrings, which run as tests."""

from __future__ import annotations

from doctest import ELLIPSIS

from hypothesis import settings
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.myst import DocTestDirectiveParser, PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

# A loaded machine or a coverage run is no failure of an example; pytest-timeout ends what hangs.
settings.register_profile("house", settings.default, deadline=None, print_blob=True)
settings.load_profile("house")

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
