"""Which run a model request belongs to: by its block, span or context, or by what it tells.

A loop without a span of its own is known by the ids of the tool calls whose results its requests
tell. Loops that share a span of the application are one run until that trips by what one of them
did: from then on each other one is a run of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from otel_loopguard.joins import Key, is_one_of_many
from otel_loopguard.run_finder import RunFinder
from otel_loopguard.runs import Run
from otel_loopguard.slots import Slot
from otel_loopguard.span_tree import Node
from otel_loopguard.told import Told


def is_known(runs: RunFinder, node: Node | None) -> bool:
    """Say whether a request's run is found without what it tells."""
    run = runs.expected(node) or runs.in_context()
    return run is not None and run.kind != "root"


def run_of(runs: RunFinder, node: Node | None, told: Told | None) -> tuple[Run | None, bool]:
    """Return the run of a request; `None` if it belongs to none. Say as well if it is opened.

    What an agent or a `guarded_run` opened goes before a run that is no more than a trace's root.
    `told` is `None` if nothing is known of what the request tells.
    """
    explicit, opened = runs.explicit(node)
    if explicit is not None:
        return explicit, opened
    by_span, by_context = None if node is None else node.run_above(), runs.in_context()
    for run in (by_span, by_context):
        if run is not None and run.kind != "root":
            return run, False
    root = by_span or by_context
    if told is None:
        return root, False
    if root is not None and root.goes_on_with(told):
        _keep(runs, root, told)
        return root, False
    return _of_conversation(runs, node, root, told)


def _of_conversation(
    runs: RunFinder, node: Node | None, root: Run | None, told: Told
) -> tuple[Run | None, bool]:
    known = runs.joins.find(_keys(told))
    heir = None if root is None else root.sharers.heir(told.opening)
    run, opened = (heir if known is None or known is root else known), False
    if run is None and root is None and not any(_keys(told)):
        return None, False
    if run is None:
        run, opened = _opened(runs, node, told), True
    if root is not None:
        root.sharers.leave_to(run, told.opening)
    _keep(runs, run, told)
    _go_on(runs, run, node)
    return run, opened


def _opened(runs: RunFinder, node: Node | None, told: Told) -> Run:
    if node is None:
        run_id = told.call_ids[-1] if told.call_ids else told.response_id
        return runs.open("joined", run_id, Slot(), None)
    run_id, conversation = f"{node.trace_id:032x}-{node.span_id:016x}", node.conversation
    run = runs.open("joined", run_id, Slot(), None, conversation=conversation)
    run.agent = node.agent
    return run


def _go_on(runs: RunFinder, run: Run, node: Node | None) -> None:
    runs.going.seen(run)
    if run.trip is None:  # one that goes on asking is not kept by that
        run.last_ns = max(run.last_ns, time.time_ns())
    for above in () if node is None else node.upwards():
        if above.awaits and above.is_open:
            above.run = above.run or run
            if run.top is None or not run.top.is_open:
                run.top = above


def _keep(runs: RunFinder, run: Run, told: Told) -> None:
    sharers = run.sharers
    sharers.have_told = sharers.have_told or bool(told.call_ids)
    for key in _keys(told):
        if runs.joins.find([key]) is not None:
            return  # those before it are known as well
        runs.joins.keep(key, run)


def _keys(told: Told) -> Iterator[Key]:
    for call_id in told.call_ids:
        if not is_one_of_many(call_id):
            yield "call", call_id
    if told.response_id:
        yield "response", told.response_id
