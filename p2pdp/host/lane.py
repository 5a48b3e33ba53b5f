"""The common case of a frame in one piece: a user's next message, which makes the machine send one message on.

A process among fifty finds its memory cold whenever a token comes by, and then what costs is how many functions,
tables and objects are touched, more than what they do. So this is `Host.frame` and `Peers.send` written once more
without their parts, for the case that nothing is out of the ordinary. Tests run both and compare every byte.

Guarantee: `take` does all that the long way would have done and says so, or does nothing at all. What the machine
answers may be anything: whatever is not one message for a peer with a warm link goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgpack

from p2pdp.core.draws import Draws
from p2pdp.core.events import Machine
from p2pdp.core.ids import Peer
from p2pdp.core.messages import TOKEN
from p2pdp.core.step import Custody, Message, Send, Step
from p2pdp.crypto.channel import padding_bytes
from p2pdp.host.effects import Entropy
from p2pdp.host.link import DATA, DATA_HEAD, DATA_HEAD_BYTES, SETTLED, Link, reports
from p2pdp.host.peers import Peers
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.messages import packed_type
from p2pdp.ledger.records import RECEIVED, SALT_BYTES, SENT
from p2pdp.wire.codec import INT_MAX, INT_MIN, TAG_INT, TAGGED_INT, CodecError, pack_message

_new: Final = tuple.__new__  # see `link.py`
_unpack: Final = msgpack.unpackb
_TOKEN: Final = packed_type(TOKEN) + b"\x92"  # how a token's message begins that has two fields
_FIELDS_AT: Final = len(_TOKEN) - 1
_TOKEN_BYTES_MAX: Final = len(_TOKEN) + 2 * 9  # for two numbers of 64 bits
_PART_BYTES: Final[int] = SALT_BYTES + TAGGED_INT.size


class Lane:
    __slots__ = (
        "_carry", "_check", "_draws", "_entropy", "_journal", "_machine", "_me", "_peers", "_resend_s",
    )  # fmt: skip

    def __init__(
        self,
        me: Peer,
        machine: Machine,
        journal: Journal,
        peers: Peers,
        draws: Draws,
        entropy: Entropy,
        check: Callable[[Message], str | None],
        carry: Callable[[Step, float], None],
        resend_s: float,
    ) -> None:
        """`carry` is the long way of what a machine answers."""
        self._me = me
        self._machine = machine
        self._journal = journal
        self._peers = peers
        self._draws = draws
        self._entropy = entropy
        self._check = check
        self._carry = carry
        self._resend_s = resend_s

    def take(self, link: Link, content: bytes, now_s: float) -> bool:
        peers, journal, sender = self._peers, self._journal, link.peer
        if sender < 0 or len(content) < DATA_HEAD_BYTES or peers.silent or journal.closed or link.refused:
            return False
        flags, number, acknowledged, length = DATA_HEAD.unpack_from(content)
        if flags & ~SETTLED != DATA or number != link.received + 1 or acknowledged > link.sent:
            return False
        try:
            start, settled = (DATA_HEAD_BYTES, ()) if flags == DATA else reports(content)
            end = start + length
            packed, part = content[start:end], content[end:]
            if len(part) != _PART_BYTES or length > _TOKEN_BYTES_MAX or not packed.startswith(_TOKEN):
                return False
            fields = _unpack(packed[_FIELDS_AT:], use_list=False)
        except (CodecError, ValueError):
            return False
        tag, value = TAGGED_INT.unpack_from(part, SALT_BYTES)
        message = _new(Message, (TOKEN, fields, value))
        if tag != TAG_INT or not type(fields[0]) is type(fields[1]) is int or self._check(message) is not None:
            return False
        peers.fresh = True
        link.last_heard_s = now_s
        if acknowledged > link.acknowledged:
            peers.acknowledged(link, acknowledged, now_s)
        for reported in settled:
            peers.guardian.settled(sender, *reported)
        link.took(packed, part)
        if sender not in peers.dues.since_s:
            peers.dues.owe(sender, now_s)
        journal.bodies.append((RECEIVED, now_s, sender, packed))
        journal.values.append(part)
        peers.guardian.received(_new(Custody, fields), sender)
        step = self._machine.receive(sender, message, now_s, self._draws)
        sends, wake_at_s, _, outputs, faults = step
        if wake_at_s is not None or outputs or faults or len(sends) != 1 or not self._send(sends[0], now_s):
            self._carry(step, now_s)
        return True

    def _send(self, send: Send, now_s: float) -> bool:
        """Whether it was sent; if not, nothing is done."""
        to, (kind, _, value), custody = send
        peers, journal = self._peers, self._journal
        link, channel = peers.links.get(to), peers.channels.get(to)
        if link is None or channel is None or link.refused or kind != TOKEN or type(value) is not int:
            return False
        if not INT_MIN <= value <= INT_MAX:
            return False
        packed = pack_message(send.message)
        part = self._entropy.salt() + TAGGED_INT.pack(TAG_INT, value)
        journal.bodies.append((SENT, to, packed))
        journal.values.append(part)
        item = link.push(packed, part)
        number = link.sent
        peers.waiting.add(to)
        peers.messages_sent += 1
        if link.resend_at_s is None:
            link.resend_at_s = now_s + self._resend_s
        if peers.check_at_s is None:
            peers.check_at_s = now_s + self._resend_s / 2
        if link.settled:
            payload = link.data_with_reports(item, padding_bytes(len(packed) + len(part) + DATA_HEAD_BYTES))
        else:
            payload = DATA_HEAD.pack(DATA, number, link.received, len(packed)) + packed + part
        if not link.settled:
            peers.dues.since_s.pop(to, None)  # the acknowledgement goes along
        peers.frames.append((to, peers.frame_header + channel.seal(payload, self._entropy.nonce())))
        if custody is not None:
            peers.guardian.passed(custody, to, number, now_s)
        return True
