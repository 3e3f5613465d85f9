"""What most tests begin with."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests._tracing import Traced, traced


@pytest.fixture
def process() -> Generator[Traced]:
    """Trace a test's agents, in a context that belongs to no run."""
    with traced() as made:
        yield made
