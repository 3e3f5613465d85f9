"""Tools that are called several times in one turn, and come back when all of these calls are made.

How many calls are at work when a run trips would be another figure each time.
"""

from __future__ import annotations

import threading
from functools import wraps

from tests.frameworks._framework import Job, Tool

CALLS = 3
"""As many as the script `parallel:3` asks for in a turn."""

_WAIT_S = 20


def at_once(job: Job) -> Job:
    """Return the job with such tools."""
    return job._replace(tools=[_waiting(tool) for tool in job.tools])


def _waiting(tool: Tool) -> Tool:
    others = threading.Barrier(CALLS)

    @wraps(tool)
    def waiting(query: str) -> str:
        answer: str = tool(query)
        others.wait(_WAIT_S)
        return answer

    return waiting
