"""Sessions of pytest for the tests of its plugin."""

from __future__ import annotations

import pytest

from tests.plugin._sessions import Sessions


@pytest.fixture
def sessions(pytester: pytest.Pytester) -> Sessions:
    """Start sessions in an empty directory."""
    return Sessions(pytester)
