from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.transports import ways
from p2pdp.transports.ways import FrameQueue


@given(st.lists(st.one_of(st.none(), st.binary(max_size=12)), max_size=60))
def test_a_queue_is_in_order_and_keeps_what_came_first(actions: list[bytes | None]) -> None:
    """None takes a frame out; anything else is put in."""
    model: deque[bytes] = deque()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "QUEUE_FRAMES_MAX", 5)
        patch.setattr(ways, "QUEUE_BYTES_MAX", 30)
        queue = FrameQueue()
        for frame in actions:
            if frame is None:
                if model:
                    assert queue.take() == model.popleft()
            else:
                room = len(model) < 5 and sum(map(len, model)) + len(frame) <= 30
                assert queue.add(frame) == room
                if room:
                    model.append(frame)
            assert len(queue) == len(model)


def test_the_bounds_are_those_of_the_largest_run() -> None:
    queue = FrameQueue()
    assert all(queue.add(b"") for _ in range(ways.QUEUE_FRAMES_MAX))
    assert not queue.add(b"")
    queue = FrameQueue()
    assert queue.add(bytes(ways.QUEUE_BYTES_MAX))
    assert queue.add(b"")
    assert not queue.add(b"a")
