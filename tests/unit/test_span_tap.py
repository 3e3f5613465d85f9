"""The spans of all providers, for as long as a test looks at them."""

from __future__ import annotations

import threading

from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.listeners import Said, tell
from otel_loopguard.testing import Capture

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def seen(provider: TracerProvider, capture: Capture) -> int:
    provider.get_tracer("t").start_span("chat m", attributes=CHAT).end()
    return len(capture.spans)


def test_the_sdk_is_as_it_was_once_nobody_looks() -> None:
    before = TracerProvider.__init__
    with Capture():
        with Capture():
            pass
        assert TracerProvider.__init__ is not before
    assert TracerProvider.__init__ is before


def test_a_provider_is_seen_whenever_it_was_made() -> None:
    with Capture() as first:
        during = TracerProvider()
        assert seen(during, first) == 1
    between = TracerProvider()
    with Capture() as second:
        assert [seen(each, second) for each in (during, between)] == [1, 2]
    assert [seen(each, second) for each in (during, between)] == [2, 2]


def test_a_span_may_end_while_something_is_heard() -> None:
    """As where the garbage collector ends it."""
    span = TracerProvider().get_tracer("t").start_span("chat m", attributes=CHAT)

    class Ending(str):
        __slots__ = ()

        def __bool__(self) -> bool:
            span.end()
            return False

    with Capture():
        said = Said(guard=object(), agent=Ending())
        thread = threading.Thread(target=tell, args=(said,), daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
