from __future__ import annotations

import pytest

from p2pdp.core.draws import Draws, Mechanism, Shape
from p2pdp.core.events import Event, Excluded, Received, Started, Woken, tell
from p2pdp.core.ids import Peer
from p2pdp.core.step import Fault, Message, Step

MESSAGE = Message("token", (0, 7), 2718281828)


class NoDraws:
    def noise(self, mechanism: Mechanism, shape: Shape) -> int:
        raise AssertionError

    def choice(self, options: int) -> int:
        raise AssertionError


class Notebook:
    """A machine that answers with a fault that names the call, and remembers its arguments."""

    finished = False

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def _noted(self, name: str, *arguments: object) -> Step:
        self.calls.append((name, *arguments))
        return Step(faults=(Fault(name),))

    def start(self, now_s: float, draws: Draws) -> Step:
        return self._noted("start", now_s, draws)

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        return self._noted("receive", sender, message, now_s, draws)

    def wake(self, now_s: float, draws: Draws) -> Step:
        return self._noted("wake", now_s, draws)

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return self._noted("excluded", peer, now_s, draws)


@pytest.mark.parametrize(
    ("event", "name", "arguments"),
    [
        (Started(), "start", ()),
        (Received(3, MESSAGE), "receive", (3, MESSAGE)),
        (Woken(), "wake", ()),
        (Excluded(4), "excluded", (4,)),
    ],
)
def test_an_event_is_told_by_exactly_one_call(event: Event, name: str, arguments: tuple[object, ...]) -> None:
    machine, draws = Notebook(), NoDraws()
    assert tell(machine, event, 1.5, draws) == Step(faults=(Fault(name),))
    assert machine.calls == [(name, *arguments, 1.5, draws)]


def test_the_text_of_an_event_shows_neither_sender_nor_value() -> None:
    text = repr(Received(sender=4711, message=MESSAGE))
    assert text == "Received('token')"


def test_equal_events_are_equal_values() -> None:
    assert Received(3, MESSAGE) == Received(3, Message("token", (0, 7), 2718281828))
    assert Received(3, MESSAGE) != Received(4, MESSAGE)
    assert Started() == Started()
    assert Excluded(1) != Excluded(2)
