"""The oracle of the wire: every frame that any peer sends is opened, and held against the rules of exactly-once.

It has the keys of all peers. Rules of what honest peers send, whoever lies to them:

* a frame opens at its receiver, and its content can be read;
* on a link messages have the numbers 1, 2, 3, ...; a number never carries two contents, however often it is sent;
* noise is never drawn again: what a peer says for an item and a step (for a step on one link, where items are none)
  has one value, to whomever and in whatever life;
* who sends an item of one step to a second honest user was told to, since the first one is out.

The oracle knows no machine: it reads payloads and the protocol's table of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from p2pdp.core.endings import COMPLAINT, STALLED
from p2pdp.core.ids import BOOTSTRAP, Peer, is_user, peer_name
from p2pdp.core.messages import ALIVE, GO, OUT, PROBE, SEEN, SILENT, SPARED, MessageTable
from p2pdp.core.step import Message
from p2pdp.crypto.channel import Channel, ChannelError
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.peer import payloads
from p2pdp.peer.payloads import Piece, parse_payload
from p2pdp.wire.codec import CodecError, unpack_message
from p2pdp.wire.frames import FRAME_HEADER_BYTES

QUIET: Final = frozenset(
    {SILENT, PROBE, ALIVE, SPARED, SEEN, STALLED, COMPLAINT}
)  # messages that bring no run forward by themselves


class Violation(NamedTuple):
    """A rule that was broken: its kind, and what happened, for people."""

    kind: str
    what: str


@dataclass
class Traffic:
    """What crossed the wires, in numbers."""

    frames: int = 0
    messages: int = 0  # each once
    again: int = 0


class WireOracle:
    """`channel(sender, receiver)` is the receiver's end; `liars` may send what they like.

    `took(receiver, sender)` is how many messages the receiver remembers. A disk that was set back is found out by those
    who do and say so, so of what nobody honest remembers a second content breaks no rule (`guide/limits.md`).
    """

    def __init__(
        self,
        table: MessageTable,
        channel: Callable[[Peer, Peer], Channel],
        liars: Collection[Peer] = (),
        took: Callable[[Peer, Peer], int] = lambda _receiver, _sender: 2**32,
    ) -> None:
        self._took = took
        self._table = table
        self._channel = channel
        self._liars = frozenset(liars)
        self._sent: dict[tuple[Peer, Peer], list[tuple[bytes, bytes | None]]] = {}  # None: pieces are still to be sent
        self._forgotten: set[Peer] = set()
        self._pieces: dict[tuple[Peer, Peer, int], dict[int, bytes]] = {}
        self._said: dict[tuple[object, ...], tuple[bytes, Peer, int]] = {}  # first, and to whom as which number
        self._at: dict[tuple[Peer, int, int], dict[Peer, int]] = {}  # sender, item and step -> honest users, numbers
        self.out: set[Peer] = set()  # as honest bootstrap told anybody
        self.set_back: set[Peer] = set()  # whose disk forgot what it had stored
        self.begun = False  # bootstrap has told users to go
        self.violations: list[Violation] = []
        self.traffic = Traffic()

    def sent(self, sender: Peer, receiver: Peer, frame: bytes) -> bool:
        """Look at a frame that leaves its sender; return whether it is a new message that brings the run forward."""
        self.traffic.frames += 1
        if sender in self._liars:
            return False
        try:
            payload = parse_payload(self._channel(sender, receiver).open(frame[FRAME_HEADER_BYTES:]))
        except (ChannelError, CodecError) as error:
            self._say("unreadable", f"{_way(sender, receiver)}: {error}")
            return False
        if payload.piece is not None and payload.flags == payloads.CONTROL | payloads.PIECE:
            self._piece(sender, receiver, payload.piece, payload.value)
        if not payload.flags & payloads.DATA:
            return False
        value = payload.value if payload.piece is None else self._joined(sender, receiver, payload.piece)
        return self._data(sender, receiver, payload.number, payload.message, value)

    def _piece(self, sender: Peer, receiver: Peer, place: Piece, part: bytes) -> None:
        """Keep a piece of a value; a place of it never carries two contents either."""
        if self._pieces.setdefault((sender, receiver, place.number), {}).setdefault(place.at, part) != part:
            self._say("conflict", f"{_way(sender, receiver)}: {place} carries two contents")

    def _joined(self, sender: Peer, receiver: Peer, end: Piece) -> bytes | None:
        """Return the value that was sent in pieces so far; None if some of them were not sent yet."""
        pieces = sorted(self._pieces.get((sender, receiver, end.number), {}).items())
        value = b"".join(part for _, part in pieces)
        return value if len(value) == end.of else None

    def _say(self, kind: str, what: str) -> None:
        self.violations.append(Violation(kind, what))

    def _data(self, sender: Peer, receiver: Peer, number: int, packed: bytes, value: bytes | None) -> bool:
        messages = self._sent.setdefault((sender, receiver), [])
        if number > len(messages) + 1:
            self._say("gap", f"{_way(sender, receiver)}: number {number} comes after {len(messages)}")
            return False
        if number == len(messages) + 1:
            messages.append((packed, None))
        else:
            self.traffic.again += 1
        before, known = messages[number - 1]
        if before != packed or (known is not None and value is not None and known != value):
            if not self._remembered(sender, receiver, number):
                del messages[number - 1 :]  # it forgot what nobody else remembers, or what a liar keeps to itself
                self._forgotten.add(sender)
                return self._data(sender, receiver, number, packed, value)
            self._say("conflict", f"{_way(sender, receiver)}: number {number} carries two contents")
        if known is not None or value is None:
            return False
        messages[number - 1] = packed, value
        self.traffic.messages += 1
        try:
            message = unpack_message(packed, value[SALT_BYTES:])
        except CodecError as error:
            self._say("unreadable", f"{_way(sender, receiver)}: message {number}: {error}")
            return False
        self._message(sender, receiver, message, value[SALT_BYTES:], number)
        return message.type not in QUIET and receiver not in self._liars

    def _remembered(self, sender: Peer, receiver: Peer, number: int) -> bool:
        """Return whether what was sent is known: by its sender, whose disk forgot nothing, or by an honest receiver."""
        honest = receiver not in self._liars
        return sender not in self.set_back or (honest and self._took(receiver, sender) >= number)

    def _message(self, sender: Peer, receiver: Peer, message: Message, value: bytes, number: int) -> None:
        if not self._table.fits(message, has_value=bool(value)):
            self._say("malformed", f"{_way(sender, receiver)}: a message {message.type} that the table does not know")
            return
        self.begun = self.begun or (sender == BOOTSTRAP and message.type == GO)
        if sender == BOOTSTRAP and message.type == OUT:
            self.out.add(message.fields[0])
        item, step = self._table.item_of(message), self._table.step_of(message)
        custody = self._table.custody_of(message)
        if value and step is not None:
            key = (sender, item, step) if custody else (sender, receiver, message.type, item, step)
            before, *place = self._said.setdefault(key, (value, receiver, number))
            if before != value and not self._remembered(sender, *place):
                self._forgotten.add(sender)
            elif before != value and sender not in self._forgotten:
                self._say("redrawn", f"{_way(sender, receiver)}: {message.type} of step {step} has a second value")
        if custody and is_user(sender) and is_user(receiver) and receiver not in self._liars:
            holders = self._at.setdefault((sender, custody.item, custody.step), {})
            others = holders.keys() - {receiver} - self.out
            if any(self._remembered(sender, other, holders[other]) for other in others):
                self._say("doubled", f"{_way(sender, receiver)}: an item of step {step} is with two users")
            holders[receiver] = number


def _way(sender: Peer, receiver: Peer) -> str:
    return f"{peer_name(sender)} -> {peer_name(receiver)}"


@dataclass
class Channels:
    """The receivers' ends of all links, made once each, from the credentials of whoever takes part."""

    end: Callable[[Peer, Peer], Channel]
    _made: dict[tuple[Peer, Peer], Channel] = field(default_factory=dict)

    def __call__(self, sender: Peer, receiver: Peer) -> Channel:
        found = self._made.get((sender, receiver))
        if found is None:
            found = self._made[sender, receiver] = self.end(sender, receiver)
        return found
