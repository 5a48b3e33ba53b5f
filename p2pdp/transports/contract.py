"""What the shell of a node and a transport are to each other.

A frame comes from an *origin*: a connection, a topic, whatever an answer can be sent back through. Who a
frame claims to be from proves nothing, so a transport uses an origin for a peer only after the shell has
said so (`belongs`), which it does when a frame from there proved authentic.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Protocol

from p2pdp.core.ids import Peer

Origin = Hashable


class Shell(Protocol):
    """What a transport calls, always from its event loop and never while it is being called.

    None of these may raise: an event loop would report it and go on.
    """

    def arrived(self, origin: Origin, frame: bytes) -> None: ...

    def lost(self, peer: Peer) -> None:
        """The way to the peer broke, and what was under way may be lost with it.

        Of a role it is told within seconds of its coming back, though nobody sends: it does not know where users are.
        """

    def connected(self, peer: Peer) -> None:
        """There is a way to the peer again, after one was lost."""

    def fail(self, error: BaseException) -> None:
        """There will be no ways any more, for a reason that a person has to mend."""


class Transport(Protocol):
    """Frames may be lost, doubled and reordered where a connection breaks; the link above repairs that."""

    @property
    def strangers(self) -> Collection[Origin]:
        """Origins that belong to nobody yet: of others `belongs` has nothing to say."""

    def send(self, peer: Peer, frame: bytes) -> None:
        """Sends when there is a way; drops what a bounded queue cannot hold."""

    def answer(self, origin: Origin, frame: bytes) -> None:
        """Sends back to where a frame came from; drops it where that is no more."""

    def belongs(self, origin: Origin, peer: Peer) -> None:
        """The peer proved to be there: what is for it may go there. To be called while a frame arrives.

        An authentic frame alone is no proof: it may have been recorded and repeated by somebody else.
        """

    async def close(self) -> None:
        """Ends every way after what was written has left; the shell hears of nothing from then on."""
