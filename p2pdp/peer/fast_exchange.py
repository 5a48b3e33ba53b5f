"""The usual message of an exchange in one piece: a neighbour's next state, and the states that are sent for it.

As `fast_path.py` is for tokens, this is `Host.full_frame` and `Peers.send` written once more without their parts, for
protocols that declare a fast exchange (`Protocol.fast_exchange`). Most messages of a round lead to nothing but their
record. Such a record is not written at once, but with the first frame that leaves afterwards, whichever way that
takes: nobody was told yet that the message came, so after a crash its sender sends it again. So there is one entry for
all that a round brings and one write for it, however many wake-ups it took. Large values are written at once, while
the processor has them at hand. Where states are vectors, what they cost is in their numbers, and `Outbox` sends them.

Guarantee: `take` has done all that the long way would have done, and records are in the same order, but for what
`unfinished` returns of a frame that it returned None for: then it has done nothing but open the frame, or all up to
what the machine wants. The caller owes: `unfinished` after each such frame, what the journal holds before any other
frame leaves, and `clear` only while messages are taken. Tests run both ways and compare.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct, error
from typing import Any, Final

import msgpack

from p2pdp.core.draws import Draws
from p2pdp.core.events import Exchanger, Received
from p2pdp.core.step import Message, Send, Step
from p2pdp.ledger.entries import LARGE_BYTES
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import ENTRY_RECORDS_MAX, HASH_BYTES, RECEIVED, SALT_BYTES, SENT, packed_type
from p2pdp.peer.effects import Entropy, HopEffects
from p2pdp.peer.fast_path import UsualFrames
from p2pdp.peer.link import Link
from p2pdp.peer.payloads import DATA, DATA_HEAD_BYTES, VOUCHER_AT, VOUCHER_END
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import TAG_FLOAT, TAGGED_FLOAT, CodecError, pack_message, pack_value, unpack_value

_unpack: Final = msgpack.unpackb
_PART_BYTES: Final[int] = SALT_BYTES + TAGGED_FLOAT.size
_FLOAT_AT: Final = SALT_BYTES + 1
_NUMBER_BYTES_MAX: Final = 9
_KNOWN_MAX: Final = 16
_GATHERED_MAX: Final = ENTRY_RECORDS_MAX // 2  # records that are not written yet
_read_head: Final = Struct(">BII12xI").unpack_from  # as `DATA_HEAD`, without the tag
_value_digest: Final = blake2b(digest_size=HASH_BYTES).copy  # as `digest_of`, without its call
_read_float: Final = Struct("<d").unpack_from  # as `TAGGED_FLOAT`, without the tag


class FastExchange(UsualFrames):
    wakes = True  # also taken while the machine is to be woken

    __slots__ = (
        "_begins", "_bytes_max", "_carry_out", "_draws", "_exchange", "_fields_at", "_journal", "_known",
        "_on_wake", "_salt_and_nonce", "_type", "_vectors",
    )  # fmt: skip

    def __init__(
        self,
        exchanger: Exchanger,
        journal: Journal,
        peers: Peers,
        draws: Draws,
        entropy: Entropy,
        on_wake: Callable[[float], None],
        carry_out: Callable[[Step, float], list[Send]],
    ) -> None:
        """`on_wake` is told when the machine wants to be woken, and `carry_out` is that of the outbox."""
        super().__init__(peers, any_size=exchanger.vectors)
        self._type, fields, self._exchange, self._vectors, _ = exchanger
        self._carry_out = carry_out
        self._begins = packed_type(self._type) + bytes((0x90 | fields,))  # how a message begins that has its fields
        self._fields_at = len(self._begins) - 1
        self._bytes_max = len(self._begins) + _NUMBER_BYTES_MAX * fields
        self._known: dict[bytes, tuple[int, ...]] = {}  # fields of messages, since those of a round are often the same
        self._journal = journal
        self._draws = draws
        self._salt_and_nonce = entropy.salt_and_nonce
        self._on_wake = on_wake

    @property
    def gathers(self) -> bool:
        """Return whether frames wait for others: large ones leave at once, since their receivers have much to do."""
        return not self._vectors

    def take(self, frame: bytes, now_s: float) -> HopEffects | None:
        """Return the effects of a usual message, or None; then `Peers.content` is set if the frame was opened."""
        opened = self._open(frame)
        if opened is None:
            return None
        link, content = opened
        try:
            flags, number, acknowledged, length = _read_head(content)
            end = DATA_HEAD_BYTES + length
            packed: bytes = content[DATA_HEAD_BYTES:end]
            part = memoryview(content)[end:] if self._vectors else content[end:]
            if (
                flags != DATA or number != link.received + 1 or acknowledged > link.sent
                or not (self._vectors or len(part) == _PART_BYTES)
                or (packed not in self._known and not self._read(packed))
            ):  # fmt: skip
                return self._leave(link, content)
        except error:
            return self._leave(link, content)
        if self._vectors:
            value = _vector_in(part)
            if value is None:
                return self._leave(link, content)
        elif part[SALT_BYTES] != TAG_FLOAT:
            return self._leave(link, content)
        else:
            (value,) = _read_float(part, _FLOAT_AT)
        return self._tell(link, content, acknowledged, packed, part, value, now_s)

    def _tell(
        self,
        link: Link,
        content: bytes,
        acknowledged: int,
        packed: bytes,
        part: bytes | memoryview,
        value: Any,
        now_s: float,
    ) -> HopEffects | None:
        """Record a message and tell the machine, as `Peers.took` and `Host._tell` do."""
        peers, sender = self._peers, link.peer
        journal, voucher = self._journal, content[VOUCHER_AT:VOUCHER_END]
        hashed, bodies = _value_digest(), journal.bodies
        hashed.update(part)
        place, digest = len(bodies), hashed.digest()
        bodies.append((RECEIVED, now_s, sender, packed, voucher))
        journal.parts[place], journal.digests[place] = part, digest
        step = self._exchange(sender, self._known[packed], value, now_s, self._draws)
        if step is None:
            del bodies[place], journal.parts[place], journal.digests[place]
            return self._leave(link, content)
        peers.proved, peers.fresh = sender, True
        peers.acknowledgements.learn(link, acknowledged, now_s)
        link.received += 1
        link.last_heard_s = now_s
        link.voucher = voucher
        link.remember(packed, digest)
        peers.acknowledgements.owe(sender, now_s)
        sends, wake_at_s, outputs, faults = step
        if wake_at_s is not None:
            self._on_wake(wake_at_s)
        if outputs or faults or journal.writes:  # the latter if a pool was drawn
            return self._give_up(step)
        if sends:
            return self._send_vectors(step, now_s) if self._vectors else self._send(step, now_s)
        enough = len(bodies) >= _GATHERED_MAX or len(part) >= LARGE_BYTES  # which is quicker while memory is warm
        writes = journal.take_writes() if enough else ()
        return writes, (), _sooner(peers.acknowledgements.ack_at_s, wake_at_s)

    def _read(self, packed: bytes) -> bool:
        """Read the fields of a message, if it is of the type and has as many whole numbers as it should."""
        if not packed.startswith(self._begins) or len(packed) > self._bytes_max:
            return False
        try:
            fields = tuple(_unpack(packed[self._fields_at :]))
        except ValueError:
            return False
        if any(type(field) is not int for field in fields):
            return False
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[packed] = fields
        return True

    def _send(self, step: Step, now_s: float) -> HopEffects | None:
        """Send messages as they usually are, all of one type with floats as values, to users that are heard."""
        peers, journal, type_ = self._peers, self._journal, self._type
        ways, bodies, parts, digests = peers.ways, journal.bodies, journal.parts, journal.digests
        for to, message, _ in step.sends:
            if to not in ways or message.type != type_ or type(message.value) is not float:
                return self._give_up(step)
        acknowledgements, header, salt_and_nonce = peers.acknowledgements, peers.frame_header, self._salt_and_nonce
        told: Message | None = None
        packed = value = b""
        frames = []
        for to, message, _ in step.sends:
            if message is not told:  # one state goes to all neighbours
                told, packed, value = message, pack_message(message), pack_value(message.value)
            salt, nonce = salt_and_nonce()
            part = salt + value
            hashed, place = _value_digest(), len(bodies)
            hashed.update(part)
            digest = hashed.digest()
            bodies.append((SENT, to, packed))
            parts[place], digests[place] = part, digest
            link, channel = ways[to]
            item, payload = link.numbered(packed, part, digest)
            link.in_flight.append(item)
            frames.append((to, header + channel.seal(payload, nonce)))
            acknowledgements.sent(link, now_s)
            acknowledgements.went_along(to)
        peers.messages_sent += len(frames)
        return (), frames, _sooner(acknowledgements.wake_at_s, step.wake_at_s)

    def _send_vectors(self, step: Step, now_s: float) -> HopEffects | None:
        """Write all, and send whatever it is to users that are heard, as the long way does."""
        peers = self._peers
        if any(send.to not in peers.ways for send in step.sends):
            return self._give_up(step)
        self._carry_out(step, now_s)
        frames, peers.frames = peers.frames, []
        return self._journal.take_writes(), frames, _sooner(peers.acknowledgements.wake_at_s, step.wake_at_s)

    def _give_up(self, step: Step) -> HopEffects | None:
        """Leave what the machine wants to the long way."""
        self._unfinished = step
        return None

    def unfinished(self) -> Link | Step | Received | None:
        """Return what is still to be done about a frame that was not usual: its link, or what the machine wants."""
        unfinished, self._unfinished = self._unfinished, None
        return unfinished

    def catch_up(self) -> None:
        """Do nothing: links and timers know everything at once."""

    report = catch_up


def _vector_in(part: bytes | memoryview) -> Any:
    """Return the vector that a value part holds; None where it holds anything else."""
    try:
        value = unpack_value(memoryview(part)[SALT_BYTES:])
    except CodecError:
        return None
    return value if getattr(value, "ndim", 0) else None


def _sooner(one_s: float | None, other_s: float | None) -> float | None:
    return other_s if one_s is None or (other_s is not None and other_s < one_s) else one_s
