"""The common case of a frame in one piece: a user's next token, which the machine passes on to another user.

A process among fifty finds its memory cold whenever a token comes by, and then what costs is how many functions,
tables and objects are touched, more than what they do. So this is `Host.frame` and `Peers.send` written once more
without their parts, for the case that nothing is out of the ordinary; and what those parts would have noted down is
gathered, as far as the next hop need not know it, and told them all at once.

Guarantee: when `catch_up` has been called, `take` has done all that the long way would have done; of a frame that it
did not take it did nothing but open it. The caller owes: `catch_up` before anything else is asked of the peers or told
them, and `clear` only while nothing is pending from before, messages are taken and the machine is not to be woken.
Tests run both and compare every byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgpack

from p2pdp.core.draws import Draws
from p2pdp.core.events import Hop, Machine
from p2pdp.core.ids import Peer
from p2pdp.core.messages import TOKEN
from p2pdp.core.step import Custody, Message, Send, Step
from p2pdp.crypto.channel import ChannelError, padding_bytes
from p2pdp.host.custody import HOPS_MAX
from p2pdp.host.effects import Effects, Entropy
from p2pdp.host.link import GATHERED_MAX, Link, Waiting
from p2pdp.host.payloads import DATA, DATA_HEAD, DATA_HEAD_BYTES, SETTLED, reports
from p2pdp.host.peers import Peers
from p2pdp.ledger.journal import VIEW, Journal
from p2pdp.ledger.messages import packed_type
from p2pdp.ledger.records import RECEIVED, SALT_BYTES, SENT
from p2pdp.wire.codec import TAG_INT, TAGGED_INT, CodecError, pack_public
from p2pdp.wire.frames import BOXED_HEADER, BOXED_START, FRAME_HEADER_BYTES
from p2pdp.wire.padding import FRAME_SIZES

_new: Final = tuple.__new__  # see `link.py`
_unpack: Final = msgpack.unpackb
_FRAME_BYTES: Final = FRAME_SIZES[0]
_TOKEN: Final = packed_type(TOKEN) + b"\x92"  # how a token's message begins that has two fields
_FIELDS_AT: Final = len(_TOKEN) - 1
_TOKEN_BYTES_MAX: Final = len(_TOKEN) + 2 * 9  # for two numbers of 64 bits
_PART_BYTES: Final[int] = SALT_BYTES + TAGGED_INT.size
_DATA_SETTLED: Final = DATA | SETTLED
_NONE: Final[list[tuple[int, int]]] = []
_read_outer = BOXED_HEADER.unpack_from
_head, _read_head = DATA_HEAD.pack, DATA_HEAD.unpack_from
_pack_int, _read_int = TAGGED_INT.pack, TAGGED_INT.unpack_from

Reports = list[tuple[int, int]]
# Of a message that came: when, by which link, up to what and about what its sender told us more, itself with its
# value part, item and step.
_Came = tuple[float, Link, int, Reports, bytes, bytes, int, int]
# And of the one that went: by which link, its number, itself with its value part, whether nothing more is to be told.
_Hop = tuple[float, Link, int, Reports, bytes, bytes, int, int, Link, int, bytes, bytes, bool]


class Lane:
    __slots__ = (
        "_carry", "_chain", "_draws", "_effects", "_hop", "_hops", "_journal", "_me", "_peers", "_salt_and_nonce",
        "_up_to_date", "_wake_at_s", "clear",
    )  # fmt: skip

    def __init__(
        self,
        me: Peer,
        machine: Machine,
        journal: Journal,
        peers: Peers,
        draws: Draws,
        entropy: Entropy,
        carry: Callable[[Step, float], None],
        effects: Callable[[float], Effects],
    ) -> None:
        """`carry` is the long way of what a machine answers, and `effects` gives what came of it."""
        self._me = me
        self._hop: Hop | None = getattr(machine, "hop", None)
        self._journal = journal
        self._chain = journal.view
        self._peers = peers
        self._draws = draws
        self._salt_and_nonce = entropy.salt_and_nonce
        self._carry = carry
        self._effects = effects
        self.clear = False
        self._hops: list[_Hop] = []
        self._up_to_date = True  # nothing was taken since somebody else saw to the peers
        self._wake_at_s: float | None = None  # for as long as only hops are taken

    def take(self, frame: bytes, now_s: float) -> Effects | Link | None:  # noqa: C901  (see above)
        """What came of it; or else the link of an authentic frame, with `Peers.content` set; or else None."""
        hop = self._hop
        if hop is None or len(frame) != _FRAME_BYTES:
            return None
        start, sender = _read_outer(frame)
        peers = self._peers
        way = peers.ways.get(sender)
        if way is None or start != BOXED_START:
            return None
        link, channel = way
        try:
            content = peers.content = channel.open(frame[FRAME_HEADER_BYTES:])
        except ChannelError:
            return None
        peers.proved, peers.fresh = sender, False
        if len(content) < DATA_HEAD_BYTES:
            return link
        flags, number, acknowledged, length = _read_head(content)
        start, settled = DATA_HEAD_BYTES, _NONE
        try:
            if flags != DATA:
                if flags != _DATA_SETTLED:
                    return link
                start, settled = reports(content)
            end = start + length
            packed, part = content[start:end], content[end:]
            if (
                len(part) != _PART_BYTES or length > _TOKEN_BYTES_MAX or not packed.startswith(_TOKEN)
                or number != link.received + 1 or acknowledged > link.sent
            ):  # fmt: skip
                return link
            item, step = _unpack(packed[_FIELDS_AT:])
        except (CodecError, ValueError):
            return link
        tag, value = _read_int(part, SALT_BYTES)
        if tag != TAG_INT or not type(item) is type(step) is int:
            return link
        journal = self._journal
        bodies, parts = journal.bodies, journal.parts
        bodies.append((RECEIVED, now_s, sender, packed))
        parts[0] = part
        moved = hop(sender, item, step, value, self._draws)
        if moved is None:
            bodies.clear()
            parts.clear()
            return link
        peers.fresh = True
        link.received = number
        return self._pass_on(moved, (now_s, link, acknowledged, settled, packed, part, item, step))

    def _pass_on(self, moved: tuple[Peer, int], came: _Came) -> Effects:
        """Sends on what came."""
        to, value = moved
        peers, journal = self._peers, self._journal
        way = peers.ways.get(to)
        if way is None or journal.writes:  # the latter if a pool was drawn for it
            return self._long(moved, came)
        onward, channel = way
        _, _, _, _, _, part_before, item, step = came
        bodies, parts = journal.bodies, journal.parts
        packed = pack_public((TOKEN, (item, step + 1)))
        salt, nonce = self._salt_and_nonce()
        part = salt + _pack_int(TAG_INT, value)
        bodies.append((SENT, to, packed))
        entry = self._chain.passage(bodies, part_before, part)
        bodies.clear()
        parts.clear()
        number = onward.sent = onward.sent + 1
        if onward.settled:
            room_bytes = padding_bytes(DATA_HEAD_BYTES + len(packed) + len(part))
            payload = onward.data_with_reports(Waiting(number, packed, part), room_bytes)
        else:
            payload = _head(DATA, number, onward.received, len(packed)) + packed + part
        frame = peers.frame_header + channel.seal(payload, nonce)
        hops = self._hops
        hops.append((*came, onward, number, packed, part, not onward.settled))
        if self._up_to_date or len(hops) >= HOPS_MAX:
            self._tell()
        return _new(Effects, (((VIEW, entry),), ((to, frame),), self._wake_at_s, (), ()))

    def _long(self, moved: tuple[Peer, int], came: _Came) -> Effects:
        """The message was taken, but what the machine answered goes the long way."""
        to, value = moved
        now_s, link, acknowledged, settled, packed, part, item, step = came
        peers = self._peers
        self.catch_up()
        link.last_heard_s = now_s
        if acknowledged > link.acknowledged or settled:
            peers.learn(link, acknowledged, settled, now_s)
        link.remember(packed, part)
        peers.owe(link, now_s)
        peers.guardian.received(Custody(item, step), link.peer)
        custody = None if to == self._me else Custody(item, step + 1)
        self._carry(Step(sends=(Send(to, Message(TOKEN, (item, step + 1), value), custody),)), now_s)
        return self._effects(now_s)

    def catch_up(self) -> None:
        """Tells what was gathered; and of the next hop at once, since what it makes due may be due sooner."""
        if self._hops:
            self._tell()
        self._up_to_date = True

    def _tell(self) -> None:
        """As if each hop had been told at once. What the first makes due is due before what later ones do."""
        peers, hops = self._peers, self._hops
        dues, guardian, resend_s = peers.dues, peers.guardian, peers.resend_s
        since_s = dues.since_s
        for now_s, link, acknowledged, settled, packed, part, item, step, onward, number, after, passed, told in hops:
            sender, to = link.peer, onward.peer
            link.last_heard_s = now_s
            if acknowledged > link.acknowledged or settled:
                peers.learn(link, acknowledged, settled, now_s)
            recent = link.recent
            recent.append((packed, part))
            if len(recent) >= GATHERED_MAX:
                link.forget()
            if sender not in since_s:
                dues.owe(sender, now_s)
            onward.waiting.append(_new(Waiting, (number, after, passed)))
            if onward.resend_at_s is None:
                onward.resend_at_s = now_s + resend_s
            if told:
                since_s.pop(to, None)
            guardian.hops.append(((item, step), sender, (item, step + 1), to, number, now_s))
        peers.waiting.update([hop[8].peer for hop in hops])
        peers.messages_sent += len(hops)
        if peers.check_at_s is None:
            peers.check_at_s = hops[0][0] + resend_s / 2
        self._wake_at_s = peers.wake_at_s(hops[-1][0])
        self._up_to_date = False
        hops.clear()
        if len(guardian.hops) >= HOPS_MAX:
            guardian.catch_up()
