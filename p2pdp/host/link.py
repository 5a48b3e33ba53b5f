"""One peer's side of the exactly-once link with one other peer.

Messages carry numbers from 1 on. The receiver takes them in order, once; its acknowledgement is
cumulative and follows its ledger entry. Both numbers and a running digest of everything sent and
received are derived from the ledger alone, so a restart loses none of it. On each (re)connection
both ends exchange a `Hello` with these numbers: an end that is shown to have sent or acknowledged
more than it remembers has had its disk rolled back, and must stop (see `Verdict`).

Whoever asks adds a number that was never used before, and an answer repeats it. What proves that we forgot something
proves it however old it is; but that the *peer* forgot something is believed of an answer to our question only, since
anything else may be an old hello, which came late or was repeated by somebody.

Digests are worked out when they are asked for, or when much has gathered, since a message on its way need not wait
for them.

A comparison of digests settles who forgot: what a peer proves it received of ours, and we would send otherwise,
we have sent twice; what it would send otherwise than we received, it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from itertools import islice
from struct import Struct
from typing import Any, Final, NamedTuple

from p2pdp.core.ids import Peer
from p2pdp.host.payloads import CONTROL, DATA, DATA_HEAD, HEAD
from p2pdp.wire.codec import CodecError, pack

_REMEMBERED: Final = 32  # messages that are compared with one that comes again
GATHERED_MAX: Final = 2 * _REMEMBERED
_LONG_BYTES: Final = 256  # a value above this is remembered until the next message only
_length: Final = Struct(">I").pack
_DIGEST_BYTES: Final = 16
_new: Final = tuple.__new__  # named tuples take their arguments through a function of Python, and this is a hot place
_START: Final = bytes(_DIGEST_BYTES)


def digest_after(digest: bytes, messages: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The running digest after further messages with their value parts."""
    for message, value in messages:
        digest = blake2b(digest + _length(len(message)) + message + value, digest_size=_DIGEST_BYTES).digest()
    return digest


@dataclass(frozen=True, slots=True)
class Hello:
    """What one end remembers of a link: how much it received and sent, and the digests there."""

    received: int
    received_digest: bytes
    sent: int
    sent_digest: bytes
    acknowledged: int  # of its own messages, by the other end, as far as it knows
    question: bytes = b""  # to be repeated in an answer; empty where none is wanted
    answer: bytes = b""  # the question that this answers, if it does

    def packed(self) -> list[Any]:
        return [
            self.received, self.received_digest, self.sent, self.sent_digest, self.acknowledged, self.question,
            self.answer,
        ]  # fmt: skip

    @staticmethod
    def unpacked(item: Any) -> Hello:
        types = [int, bytes, int, bytes, int, bytes, bytes]
        if not isinstance(item, list) or [type(part) for part in item] != types:
            raise CodecError("malformed hello")
        return Hello(*item)


def question_in(item: Any) -> bytes:
    """What the sender of a hello wants to have repeated, if it is one."""
    try:
        return Hello.unpacked(item).question
    except CodecError:
        return b""


class Asked(NamedTuple):
    """A question that was not answered yet; whoever answers it has at least what it had when it was asked."""

    question: bytes
    acknowledged: int  # by the peer, of ours
    received: int


class Verdict(Enum):
    AGREED = "agreed"
    I_WAS_ROLLED_BACK = "rolled_back"
    THEY_WERE_ROLLED_BACK = "peer_rolled_back"


class Waiting(NamedTuple):
    """A message that the peer has not acknowledged yet."""

    number: int
    message: bytes
    value: bytes


class Link:
    """Numbers, digests and what waits for an acknowledgement, for one peer."""

    __slots__ = (
        "_acknowledged_digest", "_recent_after", "acknowledged", "asked", "gap_after", "last_heard_s", "passed_over",
        "peer", "received", "recent", "refused", "resend_at_s", "resend_wait_s", "sent", "waiting",
    )  # fmt: skip

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.sent = 0
        self.received = 0
        self.recent: list[tuple[bytes, bytes]] = []  # the last messages that were received
        self._recent_after = _START  # the running digest of those before them
        self.acknowledged = 0  # by the peer, of ours
        self._acknowledged_digest = _START
        self.waiting: deque[Waiting] = deque()
        self.last_heard_s = 0.0
        self.resend_at_s: float | None = None
        self.resend_wait_s = 0.0
        self.refused = False
        self.gap_after: int | None = None  # what we had received when we last asked for a resend
        self.passed_over = False  # the peer has something for us that came before we could take it
        self.asked: Asked | None = None

    def push(self, message: bytes, value: bytes) -> Waiting:
        """Numbers a message; the caller has its ledger record already."""
        number = self.sent = self.sent + 1
        item = _new(Waiting, (number, message, value))
        if not self.refused:
            self.waiting.append(item)
        return item

    def took(self, message: bytes, value: bytes) -> None:
        """Counts a message as received; the caller has its ledger record already."""
        self.received += 1
        self.remember(message, value)

    def remember(self, message: bytes, value: bytes) -> None:
        self.recent.append((message, value))
        if len(value) > _LONG_BYTES:
            self.forget(1)
        elif len(self.recent) >= GATHERED_MAX:
            self.forget()

    def forget(self, but: int = _REMEMBERED) -> None:
        """Of the messages that were received, all but the last few."""
        older = self.recent[:-but]
        self._recent_after = digest_after(self._recent_after, older)
        del self.recent[: len(older)]

    @property
    def received_digest(self) -> bytes:
        return digest_after(self._recent_after, self.recent)

    @property
    def sent_digest(self) -> bytes:
        return self._sent_digest_at(self.sent)

    def repeats(self, number: int, message: bytes, value: bytes) -> bool | None:
        """Whether an old number carries what it carried before; None when that is too long ago."""
        place = number - self.received - 1 + len(self.recent)
        return self.recent[place] == (message, value) if 0 <= place < len(self.recent) else None

    def acknowledge_up_to(self, number: int) -> bool:
        """Drops what the peer has; False if it acknowledges what was never sent."""
        if number > self.sent:
            return False
        waiting, digest = self.waiting, self._acknowledged_digest
        while waiting and waiting[0][0] <= number:
            _, message, value = waiting.popleft()
            digest = blake2b(digest + _length(len(message)) + message + value, digest_size=_DIGEST_BYTES).digest()
        self._acknowledged_digest = digest
        if number > self.acknowledged:
            self.acknowledged = number
            self.resend_wait_s = 0.0
            self.resend_at_s = None  # it answers: what still waits gets its time anew
        return True

    def data(self, item: Waiting) -> bytes:
        head = DATA_HEAD.pack(DATA, item.number, self.received, len(item.message))
        return head + item.message + item.value

    def control(self, flags: int, hello: Hello | None = None) -> bytes:
        body: bytes = pack(hello.packed() if hello else [])
        return HEAD.pack(CONTROL | flags, 0, self.received) + body

    def ask(self, question: bytes) -> None:
        """From now on an answer to this is waited for, and to nothing that was asked before."""
        self.asked = Asked(question, self.acknowledged, self.received)

    def hello(self, question: bytes = b"", answer: bytes = b"") -> Hello:
        digests = self.received_digest, self.sent_digest
        return Hello(self.received, digests[0], self.sent, digests[1], self.acknowledged, question, answer)

    def answers(self, theirs: Hello) -> bool:
        """Whether it was said after we asked, and so is neither late nor repeated."""
        return self.asked is not None and theirs.answer == self.asked.question

    def _sent_digest_at(self, number: int) -> bytes:
        """The digest after a message that the peer has, or that still waits."""
        unacknowledged = islice(self.waiting, number - self.acknowledged)
        return digest_after(self._acknowledged_digest, [item[1:] for item in unacknowledged])

    def compare(self, theirs: Hello) -> Verdict:
        """Judges the other end's memory against ours; changes nothing.

        Of a hello that answers no question of ours, that the peer was rolled back is no more than a suspicion.
        """
        if theirs.received > self.sent or theirs.acknowledged > self.received:
            return Verdict.I_WAS_ROLLED_BACK
        acknowledged, received = self.acknowledged, self.received
        if self.asked is not None and self.answers(theirs):  # later frames may have overtaken the answer
            _, acknowledged, received = self.asked
        if theirs.received < acknowledged or theirs.sent < received:
            return Verdict.THEY_WERE_ROLLED_BACK
        if theirs.received >= self.acknowledged and self._sent_digest_at(theirs.received) != theirs.received_digest:
            return Verdict.I_WAS_ROLLED_BACK
        if theirs.sent == self.received and theirs.sent_digest != self.received_digest:
            return Verdict.THEY_WERE_ROLLED_BACK
        return Verdict.AGREED
