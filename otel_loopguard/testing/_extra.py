"""What is said where a part of the extra `testing` is missing."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def extra_needed() -> Generator[None]:
    """Say how to install the extra, if an import in the block needs it and it is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise ModuleNotFoundError(
            f"otel_loopguard.testing needs {error.name!r}; "
            "install it with: pip install 'otel-loopguard[testing]'",
            name=error.name,
        ) from error
