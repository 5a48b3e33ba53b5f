"""Protocols in which the curator needs something from those who are left before there is a result.

The curator's part is a `Collector`, made by `Protocol.collector`: it takes what users send to the curator, numbers in a
run and forms and shares in a replay. When it has all that the users who are in can give before it is known whose values
count, the curator says so (`COLLECTED`). If nobody else is gone by then, bootstrap decides: it signs and publishes the
survivors, once and for all (`SURVIVORS`), and tells the curator and all of them. What survivors reveal then makes the
result. Both messages name who is absent, since that is short.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from p2pdp.core.ids import Peer
from p2pdp.core.messages import MessageType, Signature, Users
from p2pdp.core.step import Message


class Absent(NamedTuple):
    absent: Users


class Survivors(NamedTuple):
    absent: Users
    signature: Signature


COLLECTED: Final = "collected"
SURVIVORS: Final = "survivors"
DECISION: Final = (
    MessageType(
        name=COLLECTED,
        routes="curator -> bootstrap",
        meaning="all that the result needs before the decision is here, from everybody but these",
        fields=Absent,
    ),
    MessageType(
        name=SURVIVORS,
        routes="bootstrap -> user, bootstrap -> curator, bootstrap publishes",
        meaning="the one decision whose values count: everybody's but theirs",
        fields=Survivors,
        droppable=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Deciding:
    """The signature of the decision, and what has to hold when somebody is put out.

    Before it those who are live have to hide each other; after it there has to be a result for the survivors with
    those who are live.
    """

    sign: Callable[[Sequence[Peer]], bytes]
    hides: Callable[[AbstractSet[Peer]], bool]
    recoverable: Callable[[AbstractSet[Peer], AbstractSet[Peer]], bool]


class Collector(Protocol):
    """The curator's part of a protocol. It neither draws nor sends, and a replay comes to the same state."""

    def take(self, sender: Peer, message: Message) -> str | None:
        """Take a message of a user who is in; return the kind of its fault, or None if it is accepted."""

    def excluded(self, user: Peer) -> None: ...

    @property
    def waits_for(self) -> Collection[Peer]:
        """Return who owes what others have handed in before the decision; nobody after it."""

    @property
    def collected(self) -> list[Peer] | None:
        """Return who is absent, if nothing more is to come from the others before the decision; else None."""

    def decided(self, absent: Sequence[Peer]) -> str | None:
        """Take the decision; return the kind of its fault, or None if it is accepted."""

    @property
    def complete(self) -> bool:
        """Return whether the result can be computed."""

    def result(self) -> Any:
        """Return what `Protocol.publish` gets, once it is complete."""


def survivors_bytes(absent: Sequence[Peer]) -> bytes:
    """Return what bootstrap signs of a decision besides the run."""
    return b"".join(user.to_bytes(4, "big") for user in absent)
