"""Messages sent, received and acknowledged on the links of one peer, and the times to acknowledge or to send again.

A `PacketSpace` counts the messages of one link, in both directions. Messages carry numbers from 1 on; the receiver
takes them in order, once, and its acknowledgement is cumulative. What is in flight stays until it is acknowledged.
Numbers and running digests follow from the ledger alone, so a restart loses none of them.

`Acknowledgements` has the timers of all links of a peer.

* An acknowledgement that is owed goes along with the next message to that peer. Otherwise it goes out at a moment of
  the clock: these are a quarter of a tick apart, and of those within a tick after the message came the last one is
  taken. So acknowledgements that are owed at about the same time share a wake, and the moment of each follows from
  when its own message came; if it followed from what is owed to others, it would tell when others sent something.
* Messages in flight are sent again after a wait that doubles each time. To it comes twice the time that large values
  in flight take at the rate at which the peer acknowledged such bytes before. Whether a wait is over is looked at on
  moments of the clock too, for the same reason.

The caller owes: a ledger record before a message is counted, and `now_s` that never falls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import floor
from typing import Final, NamedTuple

from p2pdp.core.ids import Peer
from p2pdp.crypto.vouchers import START, digest_after
from p2pdp.ledger.records import digest_of

GATHERED_MAX: Final = 64
_REMEMBERED: Final = GATHERED_MAX // 2  # messages that are compared with one that comes again
_MOMENTS: Final = 4  # in a tick
_LARGE_BYTES: Final = 4096  # a smaller value takes no time on its way
_RATE_FIRST: Final = 128.0 * 1024  # bytes a second, where nothing is known of a link
_RATE_LEAST: Final = 8.0 * 1024
_new: Final = tuple.__new__  # named tuples take their arguments through a function of Python, and this is a hot place


def digest_after_all(digest: bytes, messages: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the running digest after further messages, each with the digest of its value part."""
    for message, value_digest in messages:
        digest = digest_after(digest, message, value_digest)
    return digest


class SentMessage(NamedTuple):
    """A message that the peer has not acknowledged yet."""

    number: int
    message: bytes
    value: bytes
    digest: bytes  # the running one, of all messages up to this one


class PacketSpace:
    """Numbers and running digests of one link, what is in flight on it, and the last messages that came.

    The digest of what was sent goes along with each message, in its voucher. That of what was received is worked out
    when it is asked for, or when much has gathered, since a message on its way need not wait for it.
    """

    __slots__ = (
        "_acknowledged_digest", "_recent_after", "acknowledged", "in_flight", "large_bytes", "moved_at_s", "peer",
        "rate", "received", "recent", "refused", "resend_at_s", "resend_wait_s", "sent", "sent_digest",
    )  # fmt: skip

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.sent = 0
        self.received = 0
        self.acknowledged = 0  # by the peer, of ours
        self.in_flight: deque[SentMessage] = deque()
        self.recent: list[tuple[bytes, bytes]] = []  # the last messages that were received, with digests of values
        self.sent_digest = START
        self.resend_at_s: float | None = None
        self.resend_wait_s = 0.0
        self.large_bytes = 0  # of large values in flight
        self.moved_at_s = 0.0  # when the first of them was sent, or something of them was acknowledged last
        self.rate = _RATE_FIRST
        self.refused = False  # nothing is kept for the peer any more
        self._recent_after = START  # the running digest of those before the recent ones
        self._acknowledged_digest = START

    def push(self, message: bytes, value: bytes, value_digest: bytes | None = None) -> SentMessage:
        """Number a message, and keep it until it is acknowledged."""
        number = self.sent = self.sent + 1
        digest = self.sent_digest = digest_after(self.sent_digest, message, value_digest or digest_of(value))
        item = _new(SentMessage, (number, message, value, digest))
        if not self.refused:
            self.in_flight.append(item)
            if len(value) >= _LARGE_BYTES:
                self.large_bytes += len(value)
        return item

    def took(self, message: bytes, value: bytes, digest: bytes = b"") -> bytes:
        """Count a message as received, and return the digest of its value part, which may be known."""
        self.received += 1
        digest = digest or digest_of(value)
        self.remember(message, digest)
        return digest

    def remember(self, message: bytes, value_digest: bytes) -> None:
        """Keep a message that was counted, to compare it with one that comes again."""
        recent = self.recent
        recent.append((message, value_digest))
        if len(recent) >= GATHERED_MAX:
            older = recent[:-_REMEMBERED]
            self._recent_after = digest_after_all(self._recent_after, older)
            del recent[: len(older)]

    def repeats(self, number: int, message: bytes, value: bytes) -> bool | None:
        """Return whether an old number carries what it carried before; None when that is too long ago."""
        place = number - self.received - 1 + len(self.recent)
        return self.recent[place] == (message, digest_of(value)) if 0 <= place < len(self.recent) else None

    def acknowledge_up_to(self, number: int) -> bool:
        """Drop what the peer has; False if it acknowledges what was never sent."""
        if number > self.sent:
            return False
        in_flight = self.in_flight
        while in_flight and in_flight[0][0] <= number:
            _, _, value, self._acknowledged_digest = in_flight.popleft()
            if len(value) >= _LARGE_BYTES:
                self.large_bytes -= len(value)
        if number > self.acknowledged:
            self.acknowledged = number
            self.resend_wait_s = 0.0
            self.resend_at_s = None  # the peer answers: what is still in flight gets its time anew
        return True

    @property
    def received_digest(self) -> bytes:
        return digest_after_all(self._recent_after, self.recent)

    def sent_digest_at(self, number: int) -> bytes | None:
        """Return the digest after the last message that the peer has acknowledged, or one in flight; else None."""
        if number == self.acknowledged:
            return self._acknowledged_digest
        place = number - self.acknowledged - 1
        return self.in_flight[place].digest if 0 <= place < len(self.in_flight) else None


class Acknowledgements:
    """The acknowledgements that one peer owes, and the timers of what it has in flight, on all its links."""

    __slots__ = (
        "_in_flight", "_moment_s", "_resend_max_s", "_tick_s", "ack_at_s", "check_at_s", "now_s", "owed_since_s",
        "resend_s",
    )  # fmt: skip

    def __init__(self, tick_s: float, resend_s: float, resend_max_s: float) -> None:
        self.resend_s = resend_s
        self.now_s = 0.0  # nothing is sent before; for who may be told an earlier time
        self._resend_max_s = resend_max_s
        self._tick_s = tick_s
        self._moment_s = tick_s / _MOMENTS
        self.owed_since_s: dict[Peer, float] = {}
        self.ack_at_s: float | None = None  # when `due` has something to give
        self._in_flight: dict[Peer, PacketSpace] = {}  # links with messages in flight, and some whose last one arrived
        self.check_at_s: float | None = None  # when `overdue` is to be asked

    @property
    def wake_at_s(self) -> float | None:
        """Return when `due` or `overdue` is to be asked next."""
        ack_at_s, check_at_s = self.ack_at_s, self.check_at_s
        return ack_at_s if check_at_s is None or (ack_at_s is not None and ack_at_s < check_at_s) else check_at_s

    # Acknowledgements that we owe

    def owe(self, peer: Peer, now_s: float) -> None:
        """Take note that the peer sent something. What is owed already is due no later than this."""
        self.owed_since_s.setdefault(peer, now_s)
        if self.ack_at_s is None:
            self.ack_at_s = self._due_s(now_s)

    def went_along(self, peer: Peer) -> None:
        """Take note that a message to this peer acknowledged all that it had sent."""
        self.owed_since_s.pop(peer, None)

    def due(self, now_s: float) -> list[Peer]:
        """Return who is to get an acknowledgement by now; it is not owed any more."""
        if self.ack_at_s is None or now_s < self.ack_at_s:
            return []
        owed = self.owed_since_s
        peers = sorted(peer for peer, since_s in owed.items() if self._due_s(since_s) <= now_s)
        for peer in peers:
            del owed[peer]
        self.ack_at_s = self._due_s(min(owed.values())) if owed else None
        return peers

    def due_at_the_end(self) -> list[Peer]:
        """Return everybody to whom an acknowledgement is owed; none is owed any more."""
        peers = sorted(self.owed_since_s)
        self.owed_since_s.clear()
        self.ack_at_s = None
        return peers

    def _due_s(self, since_s: float) -> float:
        return floor((since_s + self._tick_s) / self._moment_s) * self._moment_s

    # Messages that we have in flight

    def sent(self, space: PacketSpace, now_s: float) -> None:
        """Take note that a message was put in flight on this link."""
        self._in_flight[space.peer] = space
        if now_s < self.now_s:  # noqa: PLR1730  (each hop asks, and `max` takes twice as long)
            now_s = self.now_s
        if space.resend_at_s is None:
            space.moved_at_s = now_s
            space.resend_at_s = now_s + self.resend_s + (_on_its_way_s(space) if space.large_bytes else 0.0)
        elif space.large_bytes:
            space.resend_at_s = max(space.resend_at_s, space.moved_at_s + self.resend_s + _on_its_way_s(space))
        if self.check_at_s is None:
            self.check_at_s = self._check_after(now_s)

    def learn(self, space: PacketSpace, acknowledged: int, now_s: float) -> None:
        """Take note of what the peer has; if that is news, what is still in flight gets its time anew."""
        if acknowledged <= space.acknowledged:
            return
        large_bytes = space.large_bytes
        if space.acknowledge_up_to(acknowledged):
            if large_bytes:
                _learn_rate(space, large_bytes - space.large_bytes, now_s)
            if space.in_flight:
                space.resend_at_s = now_s + self.resend_s + _on_its_way_s(space)

    def overdue(self, now_s: float) -> list[PacketSpace]:
        """Return the links whose messages in flight are to be sent again by now."""
        if self.check_at_s is None or now_s < self.check_at_s:
            return []
        self._in_flight = {peer: space for peer, space in sorted(self._in_flight.items()) if space.in_flight}
        self.check_at_s = self._check_after(now_s) if self._in_flight else None
        spaces = self._in_flight.values()
        return [space for space in spaces if space.resend_at_s is not None and now_s >= space.resend_at_s]

    def sent_again(self, space: PacketSpace, now_s: float) -> None:
        """Take note that what is in flight was sent once more: the next wait is twice as long."""
        space.resend_wait_s = min(max(self.resend_s, 2 * space.resend_wait_s), self._resend_max_s)
        space.resend_at_s = now_s + space.resend_wait_s + _on_its_way_s(space)
        self._in_flight[space.peer] = space
        if self.check_at_s is None:
            self.check_at_s = self._check_after(now_s)

    def hurry(self, space: PacketSpace) -> None:
        """Begin with the shortest wait again, when something is to be sent once more."""
        space.resend_wait_s = 0.0

    def refuse(self, space: PacketSpace) -> None:
        """Keep nothing for a peer that is out, and owe it nothing."""
        space.refused = True
        space.in_flight.clear()
        space.large_bytes = 0
        self._in_flight.pop(space.peer, None)
        self.owed_since_s.pop(space.peer, None)

    def _check_after(self, now_s: float) -> float:
        every_s = self.resend_s / 2
        number = floor(now_s / every_s) + 1
        return number * every_s if number * every_s > now_s else (number + 1) * every_s  # rounding may lead back to now


def _on_its_way_s(space: PacketSpace) -> float:
    """Return the time that large values in flight are given beside that of any message."""
    return 2.0 * space.large_bytes / space.rate if space.large_bytes else 0.0


def _learn_rate(space: PacketSpace, acknowledged_bytes: int, now_s: float) -> None:
    """Take note of how long it took until so many bytes of large values were acknowledged."""
    took_s = now_s - space.moved_at_s
    space.moved_at_s = now_s
    if acknowledged_bytes and took_s > 0.0:
        space.rate = max(_RATE_LEAST, (space.rate + acknowledged_bytes / took_s) / 2.0)
