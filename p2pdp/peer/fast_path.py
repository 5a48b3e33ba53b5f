"""The usual frame in one piece: a user's next token, which the machine passes on.

A process among fifty finds its memory cold whenever a token comes by. Then the cost is in the number of functions,
tables and objects that are touched, more than in what they do. So this is `Host.full_frame` and `Peers.send` written
once more without their parts, for the case that nothing is out of the ordinary. What the next hop need not know is
gathered, and reported to `Acknowledgements`, links and machine many hops at a time.

It is installed where the protocol declares a fast hop for the plan (`Protocol.fast_hop`).

Guarantee: after `catch_up`, `take` has done all that the long way would have done, but for what `unfinished` returns of
a frame that it returned None for: then it has done nothing but open the frame, or all up to what the machine wants
sent. The caller owes: `unfinished` after each such frame, `catch_up` before it asks the peers or tells them anything
else, and `clear` only while nothing is pending from before, messages are taken and the machine is not to be woken.
Tests run both ways and compare every byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import blake2b
from typing import Final, NamedTuple

import msgpack

from p2pdp.core.draws import Draws
from p2pdp.core.events import Hop, Passer, Received
from p2pdp.core.ids import Peer
from p2pdp.core.messages import TOKEN
from p2pdp.core.step import Custody, Message, Send, Step
from p2pdp.crypto.channel import ChannelError
from p2pdp.ledger.journal import VIEW, Journal
from p2pdp.ledger.records import (
    ENTRY_RECORDS_MAX,
    HASH_BYTES,
    NO_VALUE_DIGEST,
    OWN,
    RECEIVED,
    SALT_BYTES,
    SENT,
    packed_type,
)
from p2pdp.peer.acknowledgements import SentMessage
from p2pdp.peer.effects import Entropy, HopEffects
from p2pdp.peer.link import Link
from p2pdp.peer.payloads import DATA, DATA_HEAD_BYTES, VOUCHER_AT, VOUCHER_END
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import TAG_INT, TAGGED_INT, pack_public
from p2pdp.wire.frames import BOXED_HEADER, BOXED_START, FRAME_HEADER_BYTES
from p2pdp.wire.padding import FRAME_SIZES

_new: Final = tuple.__new__  # see `acknowledgements.py`
_unpack: Final = msgpack.unpackb
_TOKEN: Final = packed_type(TOKEN) + b"\x92"  # how a token's message begins that has two fields
_FIELDS_AT: Final = len(_TOKEN) - 1
_TOKEN_BYTES_MAX: Final = len(_TOKEN) + 2 * 9  # for two numbers of 64 bits
_FRAME_BYTES: Final = FRAME_SIZES[0]
_read_outer = BOXED_HEADER.unpack_from
_PART_BYTES: Final[int] = SALT_BYTES + TAGGED_INT.size
_ENOUGH: Final = 64  # gathered hops after which an idle moment is good for a report
_WAITING_MAX: Final = 4 * _ENOUGH
_STAYS_MAX: Final = ENTRY_RECORDS_MAX - 4  # records that are there already when another step here begins
_read_head: Final = struct.Struct(">BII12xI").unpack_from  # as `DATA_HEAD`, without the tag
_NO_VALUE, _NO_VALUE_DIGEST = (b"",), (NO_VALUE_DIGEST,)
_value_digest: Final = blake2b(digest_size=HASH_BYTES).copy  # as `digest_of` and `digest_after`, without their calls
_pack_int, _read_int = TAGGED_INT.pack, TAGGED_INT.unpack_from


class _Arrived(NamedTuple):
    """A token that came."""

    now_s: float
    link: Link
    acknowledged: int  # how many of our messages its sender has
    voucher: bytes
    packed: bytes
    part: bytes
    part_digest: bytes
    item: int
    step: int


class _Passed(NamedTuple):
    """A token that came and went on."""

    came: _Arrived
    step: int
    link: Link
    sent: SentMessage


class UsualFrames:
    """The frames from users that are heard as ever, which a fast path opens by itself.

    These are frames of the smallest size, or of any size.
    """

    __slots__ = ("_any_size", "_peers", "_unfinished", "clear")

    def __init__(self, peers: Peers, *, any_size: bool = False) -> None:
        self._peers = peers
        self._any_size = any_size
        self.clear = False
        self._unfinished: Link | Step | Received | None = None

    def _open(self, frame: bytes) -> tuple[Link, bytes] | None:
        """Return the link and content of a frame; None leaves it to `Peers.open`, as it came."""
        smallest = len(frame) == _FRAME_BYTES
        if not (self.clear and (smallest or (self._any_size and len(frame) > _FRAME_BYTES))):
            return None
        peers = self._peers
        start, sender = _read_outer(frame)
        way = peers.ways.get(sender)
        if way is None or start != BOXED_START or sender in peers.limits.wrong:
            return None
        link, channel = way
        if smallest:
            content = channel.open_smallest(frame)
            return None if content is None else (link, content)
        try:
            return link, channel.open(frame, FRAME_HEADER_BYTES)
        except ChannelError:
            return None

    def _leave(self, link: Link, content: bytes) -> HopEffects | None:
        """Leave the frame to the long way, which need not open it again."""
        peers = self._peers
        peers.content, peers.proved, peers.fresh = content, link.peer, False
        self._unfinished = link
        return None


class FastPath(UsualFrames):
    wakes = False  # not taken while the machine is to be woken
    gathers = False

    __slots__ = (
        "_chain", "_draws", "_hop", "_hopped", "_hops", "_journal", "_me", "_on_much", "_salt",
        "_salt_and_nonce", "_up_to_date", "_wake_at_s",
    )  # fmt: skip

    def __init__(
        self,
        me: Peer,
        passer: Passer,
        journal: Journal,
        peers: Peers,
        draws: Draws,
        entropy: Entropy,
        on_much: Callable[[], None],
    ) -> None:
        """`on_much` is called when so much has gathered that an idle moment is good for `report`."""
        super().__init__(peers)
        self._me = me
        self._hop, self._hopped = passer
        self._journal = journal
        self._chain = journal.view
        self._draws = draws
        self._salt, self._salt_and_nonce = entropy.salt, entropy.salt_and_nonce
        self._on_much = on_much
        self._hops: list[_Passed] = []
        self._up_to_date = True  # nothing was taken since somebody else saw to the peers
        self._wake_at_s: float | None = None  # for as long as only hops are taken

    def take(self, frame: bytes, now_s: float) -> HopEffects | None:
        """Return the effects of a token's usual step, or None; then `Peers.content` is set if the frame was opened."""
        opened = self._open(frame)
        if opened is None:
            return None
        link, content = opened
        peers, sender = self._peers, link.peer
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
        voucher = content[VOUCHER_AT:VOUCHER_END]
        journal.bodies.append((RECEIVED, now_s, sender, packed, voucher))
        journal.parts[0] = part
        moved = self._hop(sender, item, step, value, self._draws)
        if moved is None:
            journal.bodies.clear()
            journal.parts.clear()
            return self._leave(link, content)
        link.received = number
        peers.proved = sender
        peers.fresh = True
        to, value = moved
        of_part = _value_digest()
        of_part.update(part)
        came = _new(_Arrived, (now_s, link, acknowledged, voucher, packed, part, of_part.digest(), item, step))
        return self._keep(value, came) if to == self._me else self._pass_on(to, value, step + 1, came)

    def _keep(self, value: int, came: _Arrived) -> HopEffects | None:
        """Keep the token here for a step or more, and record what is told to oneself."""
        journal, me = self._journal, self._me
        now_s, item, at = came.now_s, came.item, came.step
        while not journal.writes and len(journal.bodies) < _STAYS_MAX:
            at += 1
            journal.parts[len(journal.bodies)] = self._salt() + _pack_int(TAG_INT, value)
            journal.bodies.append((OWN, now_s, pack_public((TOKEN, (item, at)))))
            moved = self._hop(me, item, at, value, self._draws)
            if moved is None:
                self._take_in(came, me, at)
                self._unfinished = Received(me, Message(TOKEN, (item, at), value))
                return None
            to, value = moved
            if to != me:
                return self._pass_on(to, value, at + 1, came)
        return self._give_up(me, value, at + 1, came)

    def _pass_on(self, to: Peer, value: int, at: int, came: _Arrived) -> HopEffects | None:
        """Send on what came."""
        peers, journal = self._peers, self._journal
        way = peers.ways.get(to)
        if way is None or journal.writes:  # the latter if a pool was drawn for it
            return self._give_up(to, value, at, came)
        onward, channel = way
        bodies, parts, salt_and_nonce = journal.bodies, journal.parts, self._salt_and_nonce
        after = pack_public((TOKEN, (came.item, at)))
        salt, nonce = salt_and_nonce()
        passed = salt + _pack_int(TAG_INT, value)
        hashed = _value_digest()
        hashed.update(passed)
        of_passed = hashed.digest()
        bodies.append((SENT, to, after))
        if len(parts) == 1:
            between = len(bodies) - 2
            values = came.part, *(_NO_VALUE * between), passed
            digests = came.part_digest, *(_NO_VALUE_DIGEST * between), of_passed
            entry = self._chain.linked(bodies, values, digests)
            bodies.clear()
            parts.clear()
        else:  # it stayed here for a while
            parts[len(bodies) - 1] = passed
            ((_, entry),) = journal.take_writes()
        sent, payload = onward.numbered(after, passed, of_passed)
        frame = peers.frame_header + channel.seal(payload, nonce)
        hops = self._hops
        hops.append(_new(_Passed, (came, at, onward, sent)))
        if self._up_to_date or len(hops) >= _WAITING_MAX:
            self.report()
        elif len(hops) == _ENOUGH:
            self._on_much()
        return ((VIEW, entry),), ((to, frame),), self._wake_at_s

    def _give_up(self, to: Peer, value: int, at: int, came: _Arrived) -> HopEffects | None:
        """Leave what is to be sent to the long way; the machine has what came."""
        self._take_in(came, to, at)
        item = came.item
        custody = None if to == self._me else Custody(item, at)
        self._unfinished = Step(sends=(Send(to, Message(TOKEN, (item, at), value), custody),))
        return None

    def _take_in(self, came: _Arrived, to: Peer, at: int) -> None:
        """Do as `Peers.read` and `Peers.took` do, for a message that is counted already."""
        self.catch_up()
        now_s, link, acknowledged, voucher, packed, _, part_digest, item, step = came
        link.last_heard_s = now_s
        if acknowledged > link.acknowledged:
            self._peers.acknowledgements.learn(link, acknowledged, now_s)
        link.voucher = voucher
        link.remember(packed, part_digest)
        self._peers.acknowledgements.owe(link.peer, now_s)
        self._hopped([(link.peer, item, step, to, at)])

    def unfinished(self) -> Link | Step | Received | None:
        """Return what is still to be done about a frame that was no usual step.

        This is its link, if it was opened; what the machine wants, if it has the message; or a message of the machine
        to itself that it has not got yet.
        """
        self.catch_up()
        unfinished, self._unfinished = self._unfinished, None
        return unfinished

    def catch_up(self) -> None:
        """Report what was gathered, and the next hop at once, since what it makes due may be due sooner."""
        self.report()
        self._up_to_date = True

    def report(self) -> None:
        """Report what was gathered, as if each hop had been reported at once.

        Once there is something due, a later hop makes nothing due before.
        """
        peers, hops = self._peers, self._hops
        if not hops:
            return
        acknowledgements = peers.acknowledgements
        told: list[Hop] = []
        for came, at, onward, sent in hops:
            now_s, link, acknowledged, voucher, packed, _, part_digest, item, step = came
            sender, to = link.peer, onward.peer
            link.last_heard_s = now_s
            if acknowledged > link.acknowledged:
                acknowledgements.learn(link, acknowledged, now_s)
            link.voucher = voucher
            link.remember(packed, part_digest)
            acknowledgements.owe(sender, now_s)
            onward.in_flight.append(sent)
            acknowledgements.sent(onward, now_s)
            acknowledgements.went_along(to)
            told.append((sender, item, step, to, at))
        self._hopped(told)
        peers.messages_sent += len(hops)
        self._wake_at_s = acknowledgements.wake_at_s
        self._up_to_date = False
        hops.clear()
