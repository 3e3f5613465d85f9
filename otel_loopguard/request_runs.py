"""Which run a model request belongs to: by its block, span or context, or by what it tells.

A loop without a span of its own is known by the ids of the tool calls whose results its requests
tell. Of loops that share a span of the application, the first that tells of a call is the span's
run; each other one is a run inside that.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

from otel_loopguard.joins import Key
from otel_loopguard.run_finder import RunFinder
from otel_loopguard.runs import Run
from otel_loopguard.slots import Slot
from otel_loopguard.span_tree import Node
from otel_loopguard.told import Told, is_one_of_many


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
    loop = runs.joins.find(_keys(told))
    if loop is not None and loop.kind == "root":  # until they are told apart, any answer is its own
        root, loop = root or loop, None
    return (
        _of_loop(runs, node, loop, told) if root is None else _below(runs, node, root, loop, told)
    )


def _below(
    runs: RunFinder, node: Node | None, root: Run, loop: Run | None, told: Told
) -> tuple[Run, bool]:
    """Return the run of a request that is made below a span of the application."""
    sharers = root.sharers
    run, opened = loop or sharers.heir(told.opening), False
    if run is None and root.goes_on_with(told):
        run = root
    elif run is None:
        outer = root if sharers.have_asked else None
        run, opened = _opened(runs, node, told, outer), True
        if outer is not None:
            forgotten = sharers.leave_to(run, told.opening)
            if forgotten is not None:
                runs.shut(forgotten)
            run.requested.take_over(root.requested, told.call_ids)
    sharers.ask(told.opening, None if run is root else run)
    # Some instrumentations do not make a call's span current while its request is made.
    _go_on(runs, run, _calls(node) or sharers.waiting(), told)
    return run, opened


def _of_loop(
    runs: RunFinder, node: Node | None, loop: Run | None, told: Told
) -> tuple[Run | None, bool]:
    if loop is None and not any(_keys(told)):
        return None, False
    run = loop or _opened(runs, node, told, None)
    _go_on(runs, run, _calls(node), told)
    return run, loop is None


def _opened(runs: RunFinder, node: Node | None, told: Told, outer: Run | None) -> Run:
    if node is None:
        named = (*told.call_ids[-1:], told.response_id, uuid.uuid4().hex)
        return runs.open("joined", next(filter(None, named)), Slot(), None, outer=outer)
    run_id, conversation = f"{node.trace_id:032x}-{node.span_id:016x}", node.conversation
    run = runs.open("joined", run_id, Slot(), None, conversation=conversation, outer=outer)
    run.agent = node.agent
    return run


def _go_on(runs: RunFinder, run: Run, calls: list[Node], told: Told) -> None:
    runs.going.seen(run)
    for key in _keys(told):
        if runs.joins.find([key]) is not None:
            break  # those before it are known as well
        runs.joins.keep(key, run)
    if run.trip is None:  # one that goes on asking is not kept by that
        run.last_ns = max(run.last_ns, time.time_ns())
    counted_by = (run, *run.around())
    for call in calls:
        if call.run not in counted_by:  # one around it may have begun to count it
            call.move(run)
            if run.kind == "joined" and (run.top is None or not run.top.is_open):
                run.top = call


def _calls(node: Node | None) -> list[Node]:
    """Return the spans of model calls that a request is made below."""
    above = () if node is None else node.upwards()
    return [each for each in above if each.is_open and (each.awaits or each.kind == "llm")]


def _keys(told: Told) -> Iterator[Key]:
    for call_id in told.call_ids:
        if not is_one_of_many(call_id):
            yield "call", call_id
    if told.response_id:
        yield "response", told.response_id
