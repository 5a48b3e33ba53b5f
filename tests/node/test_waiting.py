from __future__ import annotations

from p2pdp.node.waiting import NOTE_S, Waiting


def test_what_lasts_is_told_once_and_then_each_change_and_the_end() -> None:
    told: list[str] = []
    waiting = Waiting(told.append)
    waiting.note("for one", 10.0)
    waiting.note("for one", 10.0 + NOTE_S - 0.1)
    assert told == []
    waiting.note("for one", 10.0 + NOTE_S)
    waiting.note("for one", 20.0)
    waiting.note("for two", 20.1)
    assert told == ["for one", "for two"]
    waiting.note(None, 21.0)
    waiting.note(None, 22.0)
    assert told[2:] == ["bootstrap is there; it goes on"]
    waiting.note("for one", 23.0)
    assert len(told) == 3


def test_what_passes_soon_is_not_told() -> None:
    told: list[str] = []
    waiting = Waiting(told.append)
    for second in range(10):
        waiting.note("for one", float(second))
        waiting.note(None, second + 0.5)
    assert told == []
