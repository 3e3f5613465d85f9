"""A tool call that has begun, and shows its arguments before it is made."""

from __future__ import annotations

import msgspec

from otel_loopguard.decisions import Violation
from otel_loopguard.engine.reports import Found
from otel_loopguard.engine.run_state import RunState
from otel_loopguard.steps import Step


def learn(
    run: RunState, step: Step, now_s: float, held: Violation | None, *, commit: bool
) -> Found:
    """Take in the arguments, and the id, of an open call; say whether it may be made.

    `held` refuses it whatever it is. A call that is not open, or that had shown its arguments when
    it began, has been judged. With `commit` it is made whatever is said.
    """
    opened = run.open.find(step)
    if opened is None:
        return held, ()
    run.open.name_call(opened, step.call_id)
    if not opened.late:
        return held, ()
    shown, facts, found, news = run.begin(step, now_s, begun=opened)
    refusal = held or found
    if (refusal is None or commit) and facts.call is not None and not opened.within:
        # As if it had shown them when it began; limits of invocations hear of that at its end.
        opened.identity, opened.late = shown.identity, False
        if refusal is not None or opened.refused:
            opened.refused = True
            facts = msgspec.structs.replace(facts, novel=False)
        for detector in opened.rules.calls:
            detector.commit(facts)
    return refusal, news
