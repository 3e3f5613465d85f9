"""The Python examples of the README, of the pages in docs/ and of docstrings run as tests."""

from __future__ import annotations

from doctest import ELLIPSIS

from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.myst import DocTestDirectiveParser, PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

pages = Sybil(
    parsers=[DocTestDirectiveParser(ELLIPSIS), PythonCodeBlockParser(doctest_optionflags=ELLIPSIS)],
    patterns=["README.md", "docs/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser(ELLIPSIS)],
    path="otel_loopguard",
    patterns=["*.py"],
    document_types={".py": PythonDocStringDocument},
)

pytest_collect_file = (pages + docstrings).pytest()
