"""`opentelemetry-instrument` installs the guard with no line of code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection
from typing import Any

# The file keeps its types from mypy.
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from otel_loopguard.environment import lay_over
from otel_loopguard.installation import install, uninstall
from otel_loopguard.policy import Policy, PolicyError

_NOT_ACTIVE = "the loop guard is not active: %s"

_logger = logging.getLogger(__name__)


class LoopGuardInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Installs the guard, by `opentelemetry-instrument` or by `instrument()` in code.

    What it is to do comes from the environment and `loopguard.toml`, as for any guard. Under
    OpenTelemetry's YAML configuration the tables of a policy stand below
    `instrumentation/development`, `python`, `loopguard`. A mistake there is logged, and the guard
    left out: the application starts all the same.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return nothing: the guard works with whatever is installed."""
        return ()

    def _instrument(self, **options: Any) -> None:
        for provider in ("tracer_provider", "meter_provider", "logger_provider"):
            options.pop(provider, None)  # every instrumentor is given them; all are watched
        try:
            install(_policy_of(options) if options else None)
        except PolicyError as error:
            _logger.error(_NOT_ACTIVE, error)  # noqa: TRY400 -- the mistake is the user's
            _show(error)
        except Exception as error:  # the instrumentations after this one must be loaded
            _logger.exception(_NOT_ACTIVE, type(error).__qualname__)
            _show(error)

    def _uninstrument(self, **_: Any) -> None:
        uninstall()


def _show(error: Exception) -> None:
    """Say what is wrong where it is seen: OpenTelemetry's log handler may be the only one."""
    if _logger.hasHandlers():
        sys.stderr.write(f"{_NOT_ACTIVE % error}\n")


def _policy_of(options: dict[str, Any]) -> Policy:
    """Return the policy of a YAML configuration: that takes the place of the policy file."""
    policy = Policy.from_mapping(options)
    return lay_over(policy)[0].policy  # mistakes in variables are told where the guard is made
