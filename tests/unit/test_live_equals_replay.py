"""Live spans, with what was known at each start, lead to the decisions that recorded ones do."""

from __future__ import annotations

import pytest

from tests._played import Found, Played, live, replayed
from tests._recordings import Recording, recordings, true_folders
from tests._truth import reason_of

HAPPENED = [
    recording for recording in recordings(*sorted(true_folders())) if recording.written_events()
]


def told(played: Played, recording: Recording) -> list[Found]:
    """Return what was reported; without the span of a model call where live it is another one."""
    without = reason_of(recording, "live span") is not None
    return sorted(
        each._replace(span=None) if without and not each.tool else each for each in played.found
    )


@pytest.mark.parametrize(
    ("recording", "in_context"),
    [
        pytest.param(
            recording, in_context, id=f"{recording}-{'one' if in_context else 'no'}-context"
        )
        for recording in HAPPENED
        for in_context in (True, False)
        if in_context or reason_of(recording, "live context") is None
    ],
)
def test_live_equals_replay(recording: Recording, *, in_context: bool) -> None:
    happened, recorded = live(recording, in_context=in_context), replayed(recording)
    assert happened.counts == recorded.counts
    assert happened.tokens == recorded.tokens
    if reason_of(recording, "live decisions") is None:
        assert told(happened, recording) == told(recorded, recording)
    else:
        assert set(told(happened, recording)) < set(told(recorded, recording))
