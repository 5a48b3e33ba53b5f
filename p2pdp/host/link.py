"""One peer's side of the exactly-once link with one other peer.

Messages carry numbers from 1 on. The receiver takes them in order, once; its acknowledgement is
cumulative and follows its ledger entry. Both numbers and a running digest of everything sent and
received are derived from the ledger alone, so a restart loses none of it. On each (re)connection
both ends exchange a `Hello` with these numbers: an end that is shown to have sent or acknowledged
more than it remembers has had its disk rolled back, and must stop (see `Verdict`).

A comparison of digests settles who forgot: what a peer proves it received of ours, and we would send otherwise,
we have sent twice; what it would send otherwise than we received, it has.

A payload inside the channel is: flags (1), number (8), acknowledged number (8), then for data
the length of the packed message (4), the packed message and its value part; for control a packed
[settled, hello].
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from struct import Struct
from typing import Any, Final

from p2pdp.core.ids import Peer
from p2pdp.wire.codec import CodecError, pack, unpack

DATA: Final = 1
CONTROL: Final = 2
RESEND: Final = 4  # control: "send again what I have not acknowledged"
POKE: Final = 8  # control: "answer me, and say what has settled"

_REMEMBERED_DIGESTS: Final = 64
_HEAD: Final = Struct(">BQQ")
_LENGTH: Final = Struct(">I")
_DATA_HEAD: Final = Struct(">BQQI")
_START: Final = bytes(16)


def running_digest(before: bytes, message: bytes, value: bytes) -> bytes:
    hashed = blake2b(before, digest_size=16)
    hashed.update(_LENGTH.pack(len(message)))
    hashed.update(message)
    hashed.update(value)
    return hashed.digest()


@dataclass(frozen=True, slots=True)
class Hello:
    """What one end remembers of a link: how much it received and sent, and the digests there."""

    received: int
    received_digest: bytes
    sent: int
    sent_digest: bytes
    acknowledged: int  # of its own messages, by the other end, as far as it knows
    wants_answer: bool

    def packed(self) -> list[Any]:
        return [
            self.received, self.received_digest, self.sent, self.sent_digest, self.acknowledged, self.wants_answer,
        ]  # fmt: skip

    @staticmethod
    def unpacked(item: Any) -> Hello:
        types = [int, bytes, int, bytes, int, bool]
        if not isinstance(item, list) or [type(part) for part in item] != types:
            raise CodecError("malformed hello")
        return Hello(*item)


class Verdict(Enum):
    AGREED = "agreed"
    I_WAS_ROLLED_BACK = "rolled_back"
    THEY_WERE_ROLLED_BACK = "peer_rolled_back"


@dataclass(frozen=True, slots=True)
class Waiting:
    number: int
    message: bytes
    value: bytes
    digest: bytes  # running digest of what was sent, up to and with this one


@dataclass(frozen=True, slots=True)
class Payload:
    flags: int
    number: int
    acknowledged: int
    message: bytes
    value: bytes
    control: list[Any]


def parse_payload(data: bytes) -> Payload:
    try:
        flags, number, acknowledged = _HEAD.unpack_from(data)
        if flags == DATA:
            (length,) = _LENGTH.unpack_from(data, _HEAD.size)
            start = _DATA_HEAD.size
            if number == 0 or start + length > len(data):
                raise CodecError("a message without a number, or shorter than it says")
            return Payload(flags, number, acknowledged, data[start : start + length], data[start + length :], [])
    except struct.error as error:
        raise CodecError("truncated payload") from error
    if flags & ~(RESEND | POKE) != CONTROL or number != 0:
        raise CodecError("neither data nor control")
    control = unpack(data[_HEAD.size :])
    if not isinstance(control, list) or len(control) != 2 or not isinstance(control[0], list):
        raise CodecError("malformed control payload")
    return Payload(flags, number, acknowledged, b"", b"", control)


class Link:
    """Numbers, digests and what waits for an acknowledgement, for one peer."""

    __slots__ = (
        "ack_due", "acknowledged", "acknowledged_digest", "doubted", "gap_after", "last_heard_s", "passed_over", "peer",
        "received", "received_digest", "recent", "refused", "resend_at_s", "resend_wait_s", "sent", "sent_digest",
        "settled", "waiting",
    )  # fmt: skip

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.sent = 0
        self.sent_digest = _START
        self.received = 0
        self.received_digest = _START
        self.acknowledged = 0  # by the peer, of ours
        self.acknowledged_digest = _START
        self.waiting: deque[Waiting] = deque()
        self.recent: deque[tuple[int, bytes]] = deque(maxlen=_REMEMBERED_DIGESTS)
        self.ack_due = False
        self.settled: dict[int, int] = {}  # item -> step, to be told to this peer
        self.last_heard_s = 0.0
        self.resend_at_s: float | None = None
        self.resend_wait_s = 0.0
        self.refused = False
        self.gap_after: int | None = None  # what we had received when we last asked for a resend
        self.passed_over = False  # the peer has something for us that came before we could take it
        self.doubted = False  # the peer seemed to have forgotten something, and was asked again

    def push(self, message: bytes, value: bytes) -> Waiting:
        """Numbers a message; the caller has its ledger record already."""
        self.sent += 1
        self.sent_digest = running_digest(self.sent_digest, message, value)
        item = Waiting(self.sent, message, value, self.sent_digest)
        if not self.refused:
            self.waiting.append(item)
        return item

    def took(self, message: bytes, value: bytes) -> None:
        """Counts a message as received; the caller has its ledger record already."""
        self.received += 1
        self.received_digest = running_digest(self.received_digest, message, value)
        self.recent.append((self.received, self.received_digest))

    def repeats(self, number: int, message: bytes, value: bytes) -> bool | None:
        """Whether an old number carries what it carried before; None when that is too long ago."""
        digests = dict(self.recent)
        if number not in digests:
            return None
        before = _START if number == 1 else digests.get(number - 1)
        return None if before is None else running_digest(before, message, value) == digests[number]

    def acknowledge_up_to(self, number: int) -> bool:
        """Drops what the peer has; False if it acknowledges what was never sent."""
        if number > self.sent:
            return False
        while self.waiting and self.waiting[0].number <= number:
            self.acknowledged_digest = self.waiting.popleft().digest
        if number > self.acknowledged:
            self.acknowledged = number
            self.resend_wait_s = 0.0
        if not self.waiting:
            self.resend_at_s = None
        return True

    def data(self, item: Waiting) -> bytes:
        head = _DATA_HEAD.pack(DATA, item.number, self.received, len(item.message))
        return head + item.message + item.value

    def control(self, flags: int, hello: Hello | None = None) -> bytes:
        settled = [list(pair) for pair in sorted(self.settled.items())]
        body: bytes = pack([settled, hello.packed() if hello else []])
        return _HEAD.pack(CONTROL | flags, 0, self.received) + body

    def hello(self, *, wants_answer: bool) -> Hello:
        return Hello(self.received, self.received_digest, self.sent, self.sent_digest, self.acknowledged, wants_answer)

    def _sent_digest_at(self, number: int) -> bytes:
        """The digest after a message that the peer has, or that still waits."""
        behind = number - self.acknowledged
        return self.waiting[behind - 1].digest if behind else self.acknowledged_digest

    def compare(self, theirs: Hello) -> Verdict:
        """Judges the other end's memory against ours; changes nothing.

        That the peer was rolled back may also mean that its hello is old, overtaken by later frames.
        """
        if theirs.received > self.sent or theirs.acknowledged > self.received:
            return Verdict.I_WAS_ROLLED_BACK
        if theirs.received < self.acknowledged or theirs.sent < self.received:
            return Verdict.THEY_WERE_ROLLED_BACK
        if self._sent_digest_at(theirs.received) != theirs.received_digest:
            return Verdict.I_WAS_ROLLED_BACK
        if theirs.sent == self.received and theirs.sent_digest != self.received_digest:
            return Verdict.THEY_WERE_ROLLED_BACK
        return Verdict.AGREED
