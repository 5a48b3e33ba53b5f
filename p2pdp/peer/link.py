"""One peer's side of the exactly-once link with one other peer: the comparison of what both ends remember.

On each (re)connection both ends exchange a `Hello` with their numbers and running digests
(`acknowledgements.py`): an end that is shown to have sent or acknowledged more than it remembers has had its disk
rolled back, and must stop (see `Verdict`).

Whoever asks adds a number that was never used before, and an answer repeats it. What proves that we forgot something
proves it however old it is; but that the *peer* forgot something is believed of an answer to our question only, since
anything else may be an old hello, which came late or was repeated by somebody.

A comparison of digests settles who forgot: what a peer proves it received of ours, and we would send otherwise,
we have sent twice; what it would send otherwise than we received, it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from p2pdp.core.ids import Peer
from p2pdp.peer.acknowledgements import PacketSpace, SentMessage
from p2pdp.peer.payloads import CONTROL, DATA, DATA_HEAD, HEAD
from p2pdp.wire.codec import CodecError, pack


@dataclass(frozen=True, slots=True)
class Hello:
    """The memory of one end of a link: how much it received and sent, and the digests there."""

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
    """Return the question of a hello, which its answer repeats; empty if there is none."""
    try:
        return Hello.unpacked(item).question
    except CodecError:
        return b""


class Asked(NamedTuple):
    """A question without an answer so far; an answer proves at least what was known when it was asked."""

    question: bytes
    acknowledged: int  # by the peer, of ours
    received: int


class Verdict(Enum):
    AGREED = "agreed"
    I_WAS_ROLLED_BACK = "rolled_back"
    THEY_WERE_ROLLED_BACK = "peer_rolled_back"


class Link(PacketSpace):
    """The packet space of one peer, and what comparisons of numbers with it have shown."""

    __slots__ = ("asked", "gap_after", "last_heard_s", "passed_over")

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self.last_heard_s = 0.0
        self.gap_after: int | None = None  # what we had received when we last asked for a resend
        self.passed_over = False  # the peer has something for us that came before we could take it
        self.asked: Asked | None = None

    def data(self, item: SentMessage) -> bytes:
        head = DATA_HEAD.pack(DATA, item.number, self.received, len(item.message))
        return head + item.message + item.value

    def control(self, flags: int, hello: Hello | None = None) -> bytes:
        body: bytes = pack(hello.packed() if hello else [])
        return HEAD.pack(CONTROL | flags, 0, self.received) + body

    def ask(self, question: bytes) -> None:
        """Wait for an answer to this question from now on, and to none that was asked before."""
        self.asked = Asked(question, self.acknowledged, self.received)

    def hello(self, question: bytes = b"", answer: bytes = b"") -> Hello:
        digests = self.received_digest, self.sent_digest
        return Hello(self.received, digests[0], self.sent, digests[1], self.acknowledged, question, answer)

    def answers(self, theirs: Hello) -> bool:
        """Return whether a hello was sent after we asked, and so is neither late nor repeated."""
        return self.asked is not None and theirs.answer == self.asked.question

    def compare(self, theirs: Hello) -> Verdict:
        """Judge the other end's memory against ours; this changes nothing.

        Of a hello that answers no question of ours, that the peer was rolled back is no more than a suspicion.
        """
        if theirs.received > self.sent or theirs.acknowledged > self.received:
            return Verdict.I_WAS_ROLLED_BACK
        acknowledged, received = self.acknowledged, self.received
        if self.asked is not None and self.answers(theirs):  # later frames may have overtaken the answer
            _, acknowledged, received = self.asked
        if theirs.received < acknowledged or theirs.sent < received:
            return Verdict.THEY_WERE_ROLLED_BACK
        if theirs.received >= self.acknowledged and self.sent_digest_at(theirs.received) != theirs.received_digest:
            return Verdict.I_WAS_ROLLED_BACK
        if theirs.sent == self.received and theirs.sent_digest != self.received_digest:
            return Verdict.THEY_WERE_ROLLED_BACK
        return Verdict.AGREED
