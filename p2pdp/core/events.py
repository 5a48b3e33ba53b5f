"""The events of a machine, and the one way to pass them to it.

Live nodes, the simulator, a restart and the auditor all drive a machine through `tell`,
so an event means the same thing to each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

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


@runtime_checkable
class Waiter(Protocol):
    """An optional capability of a machine whose schedule is public: it says whom it waits for.

    It must not name anybody where that would tell a hidden route.
    """

    @property
    def waits_for(self) -> Collection[Peer]: ...


@runtime_checkable
class Preparer(Protocol):
    """An optional capability of a machine: in an idle moment it makes ready what its next message needs.

    It changes nothing that can be seen, and need not be asked.
    """

    def prepare(self) -> None: ...


class Watcher(Protocol):
    """An optional capability of a machine: its host watches over the peers that it names.

    The host asks those it has not heard of, and tells the machine who stays silent (`SILENT`, of its own).
    """

    @property
    def watched(self) -> AbstractSet[Peer]: ...


Hop = tuple[Peer, int, int, Peer, int]
"""The sender of a token, its item and step; its receiver, which may be oneself, and its step there."""

FastHop = Callable[[Peer, int, int, int, Draws], tuple[Peer, int] | None]
"""The usual step of a token in one piece: from sender, item, step, value and draws to the next holder and its value.

It does what `receive` would do with a user's token, or its own, drawing once of each stream; the token's next step is
the one after this. If `receive` would do anything else, or the message would have been refused before, it does nothing
and returns None. It notes only what the next hop needs to know: `hopped` tells the rest.
"""


FastExchange = Callable[[Peer, tuple[int, ...], Any, float, Draws], Step | None]
"""The usual message of an exchange: from sender, fields, value, time and draws to the machine's step.

It does what `receive` would do with a user's message of one type, which has whole numbers as fields and as its value a
float or, where the exchanger says so, a vector; it returns what that would return. If the message would have been
refused before, or brought a fault, it does nothing and returns None.
"""


class Exchanger(NamedTuple):
    """The calls of a fast path, for a machine whose protocol declares a fast exchange (`Protocol.fast_exchange`)."""

    type: str
    fields: int  # how many the messages have
    exchange: FastExchange
    vectors: bool = False  # values are vectors, of whatever numbers
    passes: bool = False  # the fields are item and step of what must not get lost, as a token


class Passer(NamedTuple):
    """The calls of a fast path, for a machine whose protocol declares a fast hop (`Protocol.fast_hop`)."""

    hop: FastHop
    hopped: Callable[[Iterable[Hop]], None]  # tells of hops, in order, before anything else is asked of the machine


def tell(machine: Machine, event: Event, now_s: float, draws: Draws) -> Step:
    """Pass an event to a machine, and return what it wants done."""
    if isinstance(event, Received):
        return machine.receive(event.sender, event.message, now_s, draws)
    if isinstance(event, Started):
        return machine.start(now_s, draws)
    if isinstance(event, Excluded):
        return machine.excluded(event.peer, now_s, draws)
    return machine.wake(now_s, draws)
