from __future__ import annotations

import os

from p2pdp.cluster.events import Events, send_event


def test_events_arrive_whole_and_in_order_however_they_were_cut() -> None:
    events = Events()
    try:
        assert events.read() == []
        send_event(events.writing, "roster", n=3)
        send_event(events.writing, "failed", slot=1, text="no space\nleft")
        os.write(events.writing, b'{"event": "publ')
        assert events.read() == [
            {"event": "roster", "n": 3},
            {"event": "failed", "slot": 1, "text": "no space\nleft"},
        ]
        os.write(events.writing, b'ished"}\n')
        assert events.read() == [{"event": "published"}]
        assert events.read() == []
    finally:
        events.close()
