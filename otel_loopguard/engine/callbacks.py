"""Whom a loop wants told: of violations, and of what is known of steps."""

from __future__ import annotations

from collections.abc import Callable

from otel_loopguard.decisions import Violation
from otel_loopguard.detectors import Facts


class Callbacks:
    """The callbacks of one guard. What they raise is swallowed and counted."""

    __slots__ = ("_on_facts", "_on_violation", "failed")

    def __init__(
        self,
        on_violation: Callable[[Violation], object] | None,
        on_facts: Callable[[Facts], object] | None,
    ) -> None:
        self._on_violation = on_violation
        self._on_facts = on_facts
        self.failed = 0
        """How often one raised in this run."""

    @property
    def facts(self) -> Callable[[Facts], None] | None:
        """What takes the facts of each step, if anybody wants them."""
        return None if self._on_facts is None else self._note

    def tell(self, violations: tuple[Violation, ...]) -> None:
        """Tell of each violation."""
        for violation in () if self._on_violation is None else violations:
            self._call(self._on_violation, violation)

    def _note(self, facts: Facts) -> None:
        self._call(self._on_facts, facts)

    def _call(self, callback: Callable[..., object] | None, told: object) -> None:
        try:
            if callback is not None:  # pragma: no branch -- else nobody is told
                callback(told)
        except Exception:  # noqa: BLE001 -- a foreign callback may do anything
            self.failed += 1
