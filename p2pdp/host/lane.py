"""The common case of a frame in one piece: a user's next message, which makes the machine send one message on.

A process among fifty finds its memory cold whenever a token comes by, and then what costs is how many functions,
tables and objects are touched, more than what they do. So this is `Host.frame` and `Peers.send` written once more
without their parts, for the case that nothing is out of the ordinary. Tests run both and compare every byte.

Guarantee: `take` does all that the long way would have done and gives what came of it, or does nothing at all. The
caller owes: nothing is pending from before, and the machine is not to be woken. What the machine
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
from p2pdp.host.effects import Effects, Entropy, Timing
from p2pdp.host.link import DATA, DATA_HEAD, DATA_HEAD_BYTES, SETTLED, Link, reports
from p2pdp.host.peers import Peers
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.messages import packed_type
from p2pdp.ledger.records import RECEIVED, SALT_BYTES, SENT
from p2pdp.wire.codec import INT_MAX, INT_MIN, TAG_INT, TAGGED_INT, CodecError, pack_public

_new: Final = tuple.__new__  # see `link.py`
_unpack: Final = msgpack.unpackb
_TOKEN: Final = packed_type(TOKEN) + b"\x92"  # how a token's message begins that has two fields
_FIELDS_AT: Final = len(_TOKEN) - 1
_TOKEN_BYTES_MAX: Final = len(_TOKEN) + 2 * 9  # for two numbers of 64 bits
_PART_BYTES: Final[int] = SALT_BYTES + TAGGED_INT.size


class Lane:
    __slots__ = (
        "_carry", "_check", "_draws", "_effects", "_journal", "_machine", "_nonce", "_peers", "_resend_s", "_salt",
    )  # fmt: skip

    def __init__(
        self,
        machine: Machine,
        journal: Journal,
        peers: Peers,
        draws: Draws,
        entropy: Entropy,
        check: Callable[[Message], str | None],
        carry: Callable[[Step, float], None],
        effects: Callable[[float], Effects],
        timing: Timing,
    ) -> None:
        """`carry` is the long way of what a machine answers, and `effects` gives what came of it."""
        self._machine = machine
        self._journal = journal
        self._peers = peers
        self._draws = draws
        self._salt = entropy.salt
        self._nonce = entropy.nonce
        self._check = check
        self._carry = carry
        self._effects = effects
        self._resend_s = timing.resend_s

    def take(self, link: Link, content: bytes, now_s: float) -> Effects | None:
        peers, journal, sender = self._peers, self._journal, link.peer
        if sender < 0 or len(content) < DATA_HEAD_BYTES or peers.silent or journal.closed or link.refused:
            return None
        flags, number, acknowledged, length = DATA_HEAD.unpack_from(content)
        if flags & ~SETTLED != DATA or number != link.received + 1 or acknowledged > link.sent:
            return None
        try:
            start, settled = (DATA_HEAD_BYTES, ()) if flags == DATA else reports(content)
            end = start + length
            packed, part = content[start:end], content[end:]
            if len(part) != _PART_BYTES or length > _TOKEN_BYTES_MAX or not packed.startswith(_TOKEN):
                return None
            fields = _unpack(packed[_FIELDS_AT:], use_list=False)
        except (CodecError, ValueError):
            return None
        tag, value = TAGGED_INT.unpack_from(part, SALT_BYTES)
        message = _new(Message, (TOKEN, fields, value))
        if tag != TAG_INT or not type(fields[0]) is type(fields[1]) is int or self._check(message) is not None:
            return None
        peers.fresh = True
        link.last_heard_s = now_s
        if acknowledged > link.acknowledged or settled:
            peers.learn(link, acknowledged, settled, now_s)
        link.took(packed, part)
        if sender not in peers.dues.since_s:
            peers.dues.owe(sender, now_s)
        journal.bodies.append((RECEIVED, now_s, sender, packed))
        journal.values.append(part)
        custody, step = _new(Custody, fields), self._machine.receive(sender, message, now_s, self._draws)
        sends, wake_at_s, _, outputs, faults = step
        if wake_at_s is None and len(sends) == 1 and not (outputs or faults):
            effects = self._sent(custody, sender, sends[0], now_s)
            if effects is not None:
                return effects
        peers.guardian.received(custody, sender)
        self._carry(step, now_s)
        return self._effects(now_s)

    def _sent(self, custody: Custody, sender: Peer, send: Send, now_s: float) -> Effects | None:
        """What an item came with is sent on; None if that is not to be done here, and then nothing is done."""
        to, (kind, fields, value), given = send
        peers, journal = self._peers, self._journal
        link, channel = peers.links.get(to), peers.channels.get(to)
        if link is None or channel is None or link.refused or given is None or kind != TOKEN or type(value) is not int:
            return None
        if given != fields or given[0] != custody[0] or not INT_MIN <= value <= INT_MAX:
            return None
        packed = pack_public((TOKEN, fields))
        part = self._salt() + TAGGED_INT.pack(TAG_INT, value)
        journal.bodies.append((SENT, to, packed))
        journal.values.append(part)
        item = link.push(packed, part)
        number, dues = item.number, peers.dues
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
            dues.since_s.pop(to, None)  # the acknowledgement goes along
        frame = peers.frame_header + channel.seal(payload, self._nonce())
        peers.guardian.hop((custody, sender, given, to, number, now_s))
        tick_at_s, check_at_s = dues.tick_at_s, peers.check_at_s
        wake_at_s = tick_at_s if tick_at_s is not None and tick_at_s < check_at_s else check_at_s
        return _new(Effects, (tuple(journal.take_writes()), ((to, frame),), wake_at_s, (), ()))
