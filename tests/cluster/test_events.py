from __future__ import annotations

import os

from p2pdp.cluster.events import Events, send_event


def test_what_is_told_arrives_in_order_and_once() -> None:
    events = Events()
    assert events.read() == []
    send_event(events.writing, "roster", n=3)
    send_event(events.writing, "trace", text="first line\nsecond line, é")
    assert events.read() == [
        {"event": "roster", "n": 3},
        {"event": "trace", "text": "first line\nsecond line, é"},
    ]
    assert events.read() == []
    events.close()


def test_a_line_may_come_in_pieces() -> None:
    events = Events()
    line = b'{"event": "published"}\n'
    for position in range(len(line)):
        assert events.read() == []
        os.write(events.writing, line[position : position + 1])
    assert events.read() == [{"event": "published"}]
    events.close()


def test_more_than_one_reading_is_taken_at_once() -> None:
    events = Events()
    os.set_blocking(events.writing, False)
    count = 0
    try:
        while True:
            send_event(events.writing, "excluded", user=count)
            count += 1
    except BlockingIOError:  # the pipe is full
        pass
    found = events.read()
    assert [event["user"] for event in found] == list(range(count))
    events.close()
