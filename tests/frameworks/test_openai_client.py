"""The contract on hand-written loops over the `openai` client, with OpenTelemetry's spans of it."""

from __future__ import annotations

from tests.frameworks._contract_matrix import TestMatrix
from tests.frameworks._contract_plain_loop import TestGuardedRun, TestObserve, TestUnderOneSpan
from tests.frameworks._openai_loop import OPENAI_LOOP as FRAMEWORK

__all__ = ["FRAMEWORK", "TestGuardedRun", "TestMatrix", "TestObserve", "TestUnderOneSpan"]
