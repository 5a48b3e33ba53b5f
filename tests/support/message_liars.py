"""Users that lie in what they send, for simulated worlds: a way to change each message, and some such ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from p2pdp.core import messages
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.sim.process import Process
from p2pdp.sim.world import World
from p2pdp.wire.codec import pack_message, pack_value, unpack_message
from tests.support.fault_worlds import prepared

Lie = Callable[[RunPlan, Peer, Message], Iterable[tuple[Peer, Message]]]
LIFE = frozenset({"ready", "alive", "seen", "head", "skeleton", "complaint", "stalled"})
SALTS = SeededEntropy(7, "liars")


class LyingWorld(World):
    """Each user in `lies` sends what its lie makes of what it should send. Its own ledger says what it should."""

    def __init__(self, text: str, lies: dict[Peer, Lie], seed: int = 1, **options: Any) -> None:
        run, data, digest = prepared(text)
        self.lies = lies
        super().__init__(run, data.user, text, digest, seed, **options)

    def _take_seat(self, process: Process, credentials: Any) -> None:
        lie = self.lies.get(process.peer)
        process.credentials = credentials
        super()._take_seat(process, credentials)
        host: Any = process.host
        if lie is None or host is None:
            return
        host.fast_frame = host._fast = None
        peers, honestly = host._peers, host._peers.send

        def send(to: Peer, packed: bytes, part: bytes, now_s: float, _digest: bytes | None = None) -> None:
            message = unpack_message(packed, part[16:])
            if message.type in LIFE and lie is not unanswering:
                honestly(to, packed, part, now_s)
                return
            for receiver, told in lie(self.run, to, message):
                value = told.value if isinstance(told.value, bytes) and told.type == "raw" else pack_value(told.value)
                honestly(receiver, pack_message(told), SALTS.salt() + value if value else b"", now_s)

        peers.send = send


def swallow(_run: RunPlan, _to: Peer, _message: Message) -> list[tuple[Peer, Message]]:
    """Acknowledges all, answers probes, and passes nothing on."""
    return []


def unanswering(_run: RunPlan, to: Peer, message: Message) -> list[tuple[Peer, Message]]:
    """Does so during a settlement too."""
    return [(to, message)] if message.type in LIFE - {"seen"} else []


def headless(_run: RunPlan, to: Peer, message: Message) -> list[tuple[Peer, Message]]:
    """Takes part, and never hands in its head."""
    return [] if message.type == "head" else [(to, message)]


def longtype(_run: RunPlan, to: Peer, message: Message) -> list[tuple[Peer, Message]]:
    """Sends types that are longer than any."""
    return [(to, Message("x" * 300, message.fields, message.value))]


def badvalue(_run: RunPlan, to: Peer, message: Message) -> list[tuple[Peer, Message]]:
    """Sends numbers that are out of bounds, or of another shape, in place of values."""
    huge: Any = 2**62 + 5 if isinstance(message.value, int) else 1e300
    return [(to, message if message.value is None else Message(message.type, message.fields, huge))]


def double(run: RunPlan, to: Peer, message: Message) -> list[tuple[Peer, Message]]:
    """Sends all that it passes on to one more user too, or twice."""
    other = (to + 1) % run.n if to >= 0 else to
    return [(to, message), (other, message)]


def milk(run: RunPlan, to: Peer, message: Message) -> list[tuple[Peer, Message]]:
    """Asks one user again and again to contribute, in as many steps, rounds or activations as there are."""
    if to < 0 or not message.fields or not isinstance(message.fields[-1], int):
        return [(to, message), (to, message)]
    at = run.protocol.messages.get(message.type)
    places = list(at.fields._fields) if at is not None else []
    place = next((places.index(name) for name in ("step", "round", "activation") if name in places), None)
    if place is None:
        return [(to, message), (to, message)]
    told = []
    for step in range(message.fields[place], run.plan.length + 1):
        fields = (*message.fields[:place], step, *message.fields[place + 1 :])
        told.append((to, Message(message.type, fields, message.value)))
    return told


def total(run: RunPlan, to: Peer, message: Message) -> list[tuple[Peer, Message]]:
    """Hands in an item as if it had come to its end, in place of passing it on."""
    if message.type != messages.TOKEN:
        return [(to, message)]
    return [(CURATOR, Message(messages.TOTAL, (message.fields[0], run.plan.steps + 1), message.value))]


LIES: dict[str, Lie] = {
    lie.__name__: lie for lie in (swallow, unanswering, headless, longtype, badvalue, double, milk, total)
}
