"""What happens in the stack, line by line: trip, metric, pending, firing, page, resolved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from scripts.stack.exported import Exported, violations
from scripts.stack.whole import Stack

COUNTED = "sum by (gen_ai_agent_name, loopguard_rule) "
TRIPS = f'{COUNTED}(loopguard_violations_total{{loopguard_action="abort"}}) > 0'
NAMED = ("gen_ai_agent_name", "loopguard_rule", "loopguard_abort_hook", "job")


class Watch:
    """Remembers what was told already; `look` tells what is new."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._exported = Exported(stack.gateway.exported)
        self._counts: Mapping[tuple[str, str], float] = {}
        self._states: Mapping[tuple[str, str], str] = {}
        self._pages = 0

    def look(self) -> None:
        """Tell what has happened since the last look."""
        self._look_at_trips()
        # Who does not answer now may do so at the next look; who never will again has ended.
        with suppress(OSError):
            self._look_at_counts()
            self._look_at_alerts()
        self._look_at_pages()

    def _look_at_trips(self) -> None:
        # As they come: a trace is exported seconds after its trip, and some later than others.
        for span, event in violations(self._exported.more(), loopguard__action="abort"):
            rule = event.attributes.get("loopguard.rule")
            _tell("trip", event.at, f"{span.service}: {rule} in trace {span.trace_id}")

    def _look_at_counts(self) -> None:
        counts = {
            (each.metric.get("gen_ai_agent_name", ""), each.metric["loopguard_rule"]): each.number
            for each in self._stack.prometheus.query(TRIPS)
        }
        for (agent, rule), count in counts.items():
            if count != self._counts.get((agent, rule)):
                _tell("metric", time.time(), f"{agent}: {rule} has tripped {count:g} times")
        self._counts = counts

    def _look_at_alerts(self) -> None:
        states = {
            (alert.name, _about(alert.labels)): alert.state
            for alert in self._stack.prometheus.alerts()
        }
        for (name, about), state in states.items():
            if state != self._states.get((name, about)):
                _tell(state, time.time(), f"{name} {about}")
        self._states = states

    def _look_at_pages(self) -> None:
        pages = self._stack.pager.pages()
        for page in pages[self._pages :]:
            said = page.annotations.get("summary", "")
            word = "resolved" if page.status == "resolved" else page.receiver
            severity = page.labels.get("severity", "")
            _tell(word, page.at, f"{severity} {page.alert} {_about(page.labels)}: {said}")
        self._pages = len(pages)


def _about(labels: Mapping[str, str]) -> str:
    return " ".join(labels[name] for name in NAMED if name in labels)


def _tell(word: str, at: float, text: str) -> None:
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    print(f"{clock}  {word:8}  {text}", flush=True)
