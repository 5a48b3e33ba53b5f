"""The common case of a frame in one piece: a user's next token, which the machine passes on.

A process among fifty finds its memory cold whenever a token comes by, and then what costs is how many functions,
tables and objects are touched, more than what they do. So this is `Host.frame` and `Peers.send` written once more
without their parts, for the case that nothing is out of the ordinary; and what those parts would have noted down is
gathered, as far as the next hop need not know it, and told them all at once.

Guarantee: when `catch_up` has been called, `take` has done all that the long way would have done, but for what `left`
tells of a frame that was no passage: nothing but opening it, or all up to what the machine wants sent. The caller owes:
`left` after each such frame, `catch_up` before anything else is asked of the peers or told them, and `clear` only while
nothing is pending from before, messages are taken and the machine is not to be woken. It is of use where the machine
has the usual step in one piece (`core.events.Passer`). Tests run both ways and compare every byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, cast

import msgpack

from p2pdp.core.draws import Draws
from p2pdp.core.events import Hop, Machine, Passer, Received
from p2pdp.core.ids import Peer
from p2pdp.core.messages import TOKEN
from p2pdp.core.step import Custody, Message, Send, Step
from p2pdp.host.acknowledgements import SentMessage
from p2pdp.host.effects import Entropy, Passage
from p2pdp.host.link import Link
from p2pdp.host.payloads import DATA, DATA_HEAD, DATA_HEAD_BYTES
from p2pdp.host.peers import Peers
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.messages import packed_type
from p2pdp.ledger.records import ENTRY_RECORDS_MAX, OWN, RECEIVED, SALT_BYTES, SENT
from p2pdp.wire.codec import TAG_INT, TAGGED_INT, pack_public
from p2pdp.wire.frames import BOXED_HEADER, BOXED_START
from p2pdp.wire.padding import FRAME_SIZES

_new: Final = tuple.__new__  # see `acknowledgements.py`
_unpack: Final = msgpack.unpackb
_FRAME_BYTES: Final = FRAME_SIZES[0]
_TOKEN: Final = packed_type(TOKEN) + b"\x92"  # how a token's message begins that has two fields
_FIELDS_AT: Final = len(_TOKEN) - 1
_TOKEN_BYTES_MAX: Final = len(_TOKEN) + 2 * 9  # for two numbers of 64 bits
_PART_BYTES: Final[int] = SALT_BYTES + TAGGED_INT.size
_ENOUGH: Final = 64  # hops that have gathered, after which a quiet moment is good for telling them
_WAITING_MAX: Final = 4 * _ENOUGH
_STAYS_MAX: Final = ENTRY_RECORDS_MAX - 4  # records that are there already when another step here begins
_read_outer = BOXED_HEADER.unpack_from
_head, _read_head = DATA_HEAD.pack, DATA_HEAD.unpack_from
_pack_int, _read_int = TAGGED_INT.pack, TAGGED_INT.unpack_from

# Of a message that came: when, by which link, how much of ours its sender has, itself with its value part, item, step.
_Came = tuple[float, Link, int, bytes, bytes, int, int]
_PART: Final = 4
_ITEM: Final = 5
# And of the one that went: at which step, by which link, its number, itself with its value part.
_Hop = tuple[_Came, int, Link, int, bytes, bytes]


class Lane:
    __slots__ = (
        "_chain", "_draws", "_hops", "_journal", "_left", "_machine", "_me", "_on_much", "_peers", "_salt",
        "_salt_and_nonce", "_up_to_date", "_wake_at_s", "clear", "useful",
    )  # fmt: skip

    def __init__(
        self,
        me: Peer,
        machine: Machine,
        journal: Journal,
        peers: Peers,
        draws: Draws,
        entropy: Entropy,
        on_much: Callable[[], None],
    ) -> None:
        """`on_much` is called when so much has gathered that a moment with nothing else to do is good for `tell`."""
        self._me = me
        self.useful = hasattr(machine, "hop")
        self._machine = cast("Passer", machine)  # if so
        self._journal = journal
        self._chain = journal.view
        self._peers = peers
        self._draws = draws
        self._salt, self._salt_and_nonce = entropy.salt, entropy.salt_and_nonce
        self._on_much = on_much
        self.clear = False
        self._left: Link | Step | Received | None = None
        self._hops: list[_Hop] = []
        self._up_to_date = True  # nothing was taken since somebody else saw to the peers
        self._wake_at_s: float | None = None  # for as long as only hops are taken

    def take(self, frame: bytes, now_s: float) -> Passage | None:
        """What came of it; or None, and `left` tells the rest. Then `Peers.content` is set if it was opened."""
        if not self.clear or len(frame) != _FRAME_BYTES:
            return None
        peers = self._peers
        start, sender = _read_outer(frame)
        way = peers.ways.get(sender)
        if way is None or start != BOXED_START:
            return None
        link, channel = way
        content = channel.open_smallest(frame)
        if content is None:
            return None
        try:
            flags, number, acknowledged, length = _read_head(content)
            end = DATA_HEAD_BYTES + length
            packed, part = content[DATA_HEAD_BYTES:end], content[end:]
            if (
                flags != DATA or number != link.received + 1 or acknowledged > link.sent or len(part) != _PART_BYTES
                or length > _TOKEN_BYTES_MAX or not packed.startswith(_TOKEN)
            ):  # fmt: skip
                return self._leave(link, content)
            item, step = _unpack(packed[_FIELDS_AT:])
        except (ValueError, struct.error):
            return self._leave(link, content)
        tag, value = _read_int(part, SALT_BYTES)
        if tag != TAG_INT or not type(item) is type(step) is int:
            return self._leave(link, content)
        journal = self._journal
        journal.bodies.append((RECEIVED, now_s, sender, packed))
        journal.parts[0] = part
        moved = self._machine.hop(sender, item, step, value, self._draws)
        if moved is None:
            journal.bodies.clear()
            journal.parts.clear()
            return self._leave(link, content)
        link.received = number
        peers.proved = sender
        peers.fresh = True
        to, value = moved
        came = now_s, link, acknowledged, packed, part, item, step
        return self._keep(value, came) if to == self._me else self._pass_on(to, value, step + 1, came)

    def _leave(self, link: Link, content: bytes) -> Passage | None:
        """The frame is somebody else's, who need not open it again."""
        peers = self._peers
        peers.content, peers.proved, peers.fresh = content, link.peer, False
        self._left = link
        return None

    def _keep(self, value: int, came: _Came) -> Passage | None:
        """It stays here for a step or more, and what is told to oneself is recorded."""
        journal, me = self._journal, self._me
        now_s, item, at = came[0], came[-2], came[-1]
        while not journal.writes and len(journal.bodies) < _STAYS_MAX:
            at += 1
            journal.parts[len(journal.bodies)] = self._salt() + _pack_int(TAG_INT, value)
            journal.bodies.append((OWN, now_s, pack_public((TOKEN, (item, at)))))
            moved = self._machine.hop(me, item, at, value, self._draws)
            if moved is None:
                self._take_in(came, me, at)
                self._left = Received(me, Message(TOKEN, (item, at), value))
                return None
            to, value = moved
            if to != me:
                return self._pass_on(to, value, at + 1, came)
        return self._give_up(me, value, at + 1, came)

    def _pass_on(self, to: Peer, value: int, at: int, came: _Came) -> Passage | None:
        """Sends on what came."""
        peers, journal = self._peers, self._journal
        way = peers.ways.get(to)
        if way is None or journal.writes:  # the latter if a pool was drawn for it
            return self._give_up(to, value, at, came)
        onward, channel = way
        bodies, parts, salt_and_nonce = journal.bodies, journal.parts, self._salt_and_nonce
        after = pack_public((TOKEN, (came[_ITEM], at)))
        salt, nonce = salt_and_nonce()
        passed = salt + _pack_int(TAG_INT, value)
        bodies.append((SENT, to, after))
        if len(parts) == 1:
            entry = self._chain.passage(bodies, came[_PART], passed)
            bodies.clear()
            parts.clear()
        else:  # it stayed here for a while
            parts[len(bodies) - 1] = passed
            ((_, entry),) = journal.take_writes()
        number = onward.sent = onward.sent + 1
        payload = _head(DATA, number, onward.received, len(after)) + after + passed
        frame = peers.frame_header + channel.seal(payload, nonce)
        hops = self._hops
        hops.append((came, at, onward, number, after, passed))
        if self._up_to_date or len(hops) >= _WAITING_MAX:
            self.tell()
        elif len(hops) == _ENOUGH:
            self._on_much()
        return entry, to, frame, self._wake_at_s

    def _give_up(self, to: Peer, value: int, at: int, came: _Came) -> Passage | None:
        """The machine has what came, and what is to be sent goes the long way."""
        self._take_in(came, to, at)
        item = came[_ITEM]
        custody = None if to == self._me else Custody(item, at)
        self._left = Step(sends=(Send(to, Message(TOKEN, (item, at), value), custody),))
        return None

    def _take_in(self, came: _Came, to: Peer, at: int) -> None:
        """As `Peers.read` and `Peers.took`, for a message that is counted already."""
        self.catch_up()
        now_s, link, acknowledged, packed, part, item, step = came
        link.last_heard_s = now_s
        if acknowledged > link.acknowledged:
            self._peers.acknowledgements.learn(link, acknowledged, now_s)
        link.remember(packed, part)
        self._peers.acknowledgements.owe(link.peer, now_s)
        self._machine.hopped([(link.peer, item, step, to, at)])

    def left(self) -> Link | Step | Received | None:
        """What is to be done about a frame that was no passage.

        Its link, if it was opened; or what the machine wants that has its message, or is to be told next of its own.
        """
        self.catch_up()
        left, self._left = self._left, None
        return left

    def catch_up(self) -> None:
        """Tells what was gathered; and of the next hop at once, since what it makes due may be due sooner."""
        self.tell()
        self._up_to_date = True

    def tell(self) -> None:
        """As if each hop had been told at once. Once there is something due, a later hop makes nothing due before."""
        peers, hops = self._peers, self._hops
        if not hops:
            return
        acknowledgements = peers.acknowledgements
        told: list[Hop] = []
        for came, at, onward, number, after, passed in hops:
            now_s, link, acknowledged, packed, part, item, step = came
            sender, to = link.peer, onward.peer
            link.last_heard_s = now_s
            if acknowledged > link.acknowledged:
                acknowledgements.learn(link, acknowledged, now_s)
            link.remember(packed, part)
            acknowledgements.owe(sender, now_s)
            onward.in_flight.append(_new(SentMessage, (number, after, passed)))
            acknowledgements.sent(onward, now_s)
            acknowledgements.went_along(to)
            told.append((sender, item, step, to, at))
        self._machine.hopped(told)
        peers.messages_sent += len(hops)
        self._wake_at_s = acknowledgements.wake_at_s
        self._up_to_date = False
        hops.clear()
