"""Every integration's page ends with a test, and is found from the page about testing them.

The tests themselves are played where their frameworks are: `tests/frameworks/_guides.py`.
"""

from __future__ import annotations

import re

import pytest

from otel_loopguard.options.frameworks import FRAMEWORKS
from tests.frameworks._guides import ROOT, RUNAWAY, guide_of

OVERVIEW = ROOT / "docs" / "testing-frameworks.md"


def test_overview_links_to_the_test_of_each_integration():
    links = re.findall(r"\[(\w+)\]\(integrations/(\w+)\.md#test-your-guard\)", OVERVIEW.read_text())
    assert sorted(links) == [(name, name) for name in sorted(FRAMEWORKS)]


@pytest.mark.parametrize("integration", sorted(FRAMEWORKS))
def test_page_shows_a_test_that_can_be_played(integration: str):
    guide = guide_of(integration)
    compile(guide.guarded, f"{integration}.md", "exec")
    compile(guide.unguarded, f"{integration}.md", "exec")
    assert f"def {RUNAWAY}(loopguard, model_server):\n" in guide.unguarded
    assert "install(" not in guide.unguarded
    assert re.findall(r"timeout=(?:3|10)\b", guide.unguarded)
