"""What the page on models in process shows is what is run."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_models_in_process_are_those_that_their_page_shows():
    page = (ROOT / "docs" / "testing-doubles.md").read_text("utf-8")
    shown = [block.split("```\n")[0] for block in page.split("```py\n")[1:]]
    written = sorted(each.read_text("utf-8") for each in (ROOT / "examples/doubles").glob("*.py"))
    assert sorted(shown) == written
