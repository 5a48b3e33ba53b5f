"""What can happen to a machine, and the one way to tell it.

Live nodes, the simulator, a restart and the auditor all drive a machine through `tell`,
so an event means the same thing to each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from p2pdp.core.draws import Draws
from p2pdp.core.ids import Peer
from p2pdp.core.step import Message, Step


@dataclass(frozen=True, slots=True)
class Started:
    pass


class Received(NamedTuple):
    sender: Peer
    message: Message

    def __repr__(self) -> str:  # who sent a token is its route
        return f"Received({self.message.type!r})"


@dataclass(frozen=True, slots=True)
class Woken:
    pass


@dataclass(frozen=True, slots=True)
class Excluded:
    peer: Peer


Event = Started | Received | Woken | Excluded


class Machine(Protocol):
    """A protocol or service: no socket, clock, file or random source of its own.

    A late or spurious wake must be harmless, and so must a message of a peer that was
    excluded. Misbehaviour of a peer comes back as a fault in the step.
    """

    def start(self, now_s: float, draws: Draws) -> Step: ...

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step: ...

    def wake(self, now_s: float, draws: Draws) -> Step: ...

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step: ...

    @property
    def finished(self) -> bool: ...


Hop = tuple[Peer, int, int, Peer, int]
"""From whom a token came, its item, at which step; to whom it went, which may be back to oneself, and at which step."""


class Watcher(Protocol):
    """What a machine may offer besides: peers that its host is to watch over.

    The host asks those it has not heard of, and tells the machine who stays silent (`SILENT`, of its own).
    """

    @property
    def watched(self) -> AbstractSet[Peer]: ...


class Passer(Protocol):
    """What a machine may offer besides, since a walk does little else: the usual step of a token in one piece."""

    def hop(self, sender: Peer, item: int, step: int, value: int, draws: Draws) -> tuple[Peer, int] | None:
        """Does what `receive` would do with a user's token, or its own, drawing once of each stream.

        Tells to whom the token goes next and its value there, at the step after this one. If `receive` would do
        anything else, or the message would have been refused before, it does nothing and gives None.
        """

    def hopped(self, hops: Iterable[Hop]) -> None:
        """Tells of hops, in order, what the next one need not know: before anything else is asked of the machine.

        A protocol's machine offers `hop` alone; this is the part of the `Participant` around it.
        """


def tell(machine: Machine, event: Event, now_s: float, draws: Draws) -> Step:
    if isinstance(event, Received):
        return machine.receive(event.sender, event.message, now_s, draws)
    if isinstance(event, Started):
        return machine.start(now_s, draws)
    if isinstance(event, Excluded):
        return machine.excluded(event.peer, now_s, draws)
    return machine.wake(now_s, draws)
