"""One peer's side of the exactly-once link with one other peer: the comparison of what both ends remember.

On each (re)connection both ends exchange a `Hello` with their numbers and running digests
(`acknowledgements.py`): an end that is shown to have sent or acknowledged more than it remembers has had its disk
rolled back, or there is another copy of it, and it must stop (see `Verdict`).

That we forgot something is believed of nobody without our own voucher (`crypto/vouchers.py`), and with it of anybody,
however old the hello is. A hello has the two vouchers that prove most: that of the last message that we took, which is
in our ledger and so survives our restart, and that of the latest acknowledgement without a message.

Whoever asks adds a number that was never used before, and an answer repeats it. That the *peer* forgot something is
believed of an answer to our question only, since anything else may be an old hello, which came late or was repeated by
somebody.

A comparison of digests settles who forgot: what a peer proves it received of ours, and we would send otherwise,
we have sent twice; what it would send otherwise than we received, it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Any, Final, NamedTuple

from p2pdp.core.endings import UNPROVEN
from p2pdp.core.ids import Peer
from p2pdp.crypto.vouchers import (
    DIGEST_BYTES,
    NO_VOUCHER,
    START,
    VOUCHER_BYTES,
    Stamp,
    begin_digest,
    digest_after,
    pack_numbers,
    received_in,
)
from p2pdp.ledger.records import digest_of
from p2pdp.peer import pieces
from p2pdp.peer.acknowledgements import PacketSpace, SentMessage
from p2pdp.peer.payloads import CONTROL, DATA, PIECE, RESEND, Piece, in_pieces
from p2pdp.peer.pieces import NO_SHELF, Parts, Shelf
from p2pdp.wire.codec import CodecError, pack

STOPPED: Final = (  # what people are told who run a peer that was rolled back
    "a peer showed its own voucher for something that its ledger does not hold, so the ledger was set back to an "
    "earlier state, or a copy of it runs elsewhere; noise would be drawn twice"
)
SETTLED: Final = 0.0  # a time that is over
_new: Final = tuple.__new__  # see `acknowledgements.py`
_DATA: Final = bytes((DATA,))
_PIECED: Final = bytes((DATA | PIECE,))
_length: Final = Struct(">I").pack
_MEMORY: Final = Struct(f">III{DIGEST_BYTES}s{DIGEST_BYTES}s{VOUCHER_BYTES}s{VOUCHER_BYTES}s")  # of one size always


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
    voucher: bytes = NO_VOUCHER  # the other end's, of the last message that was received
    acknowledgement: bytes = NO_VOUCHER  # the other end's, of its last acknowledgement that came without a message

    def packed(self) -> list[Any]:
        numbers = self.received, self.sent, self.acknowledged
        return [
            _MEMORY.pack(*numbers, self.received_digest, self.sent_digest, self.voucher, self.acknowledgement),
            self.question, self.answer,
        ]  # fmt: skip

    @staticmethod
    def unpacked(item: Any) -> Hello:
        if not isinstance(item, list) or [type(part) for part in item] != [bytes, bytes, bytes]:
            raise CodecError("malformed hello")
        memory, question, answer = item
        if len(memory) != _MEMORY.size:
            raise CodecError("malformed hello")
        received, sent, acknowledged, came, went, voucher, acknowledgement = _MEMORY.unpack(memory)
        return Hello(received, came, sent, went, acknowledged, question, answer, voucher, acknowledgement)


class Asked(NamedTuple):
    """A question without an answer so far; an answer proves at least what was known when it was asked."""

    question: bytes
    acknowledged: int  # by the peer, of ours
    received: int


class Verdict(Enum):
    AGREED = "agreed"
    I_WAS_ROLLED_BACK = "rolled_back"
    THEY_WERE_ROLLED_BACK = "peer_rolled_back"
    UNPROVEN = UNPROVEN  # they say that we were, and do not prove it


class Link(PacketSpace):
    """The packet space of one peer, and what comparisons of numbers with it have shown."""

    __slots__ = (
        "_parts", "_run", "_shelf", "acknowledgement", "asked", "doubted_until_s", "gap_after", "gap_at_s",
        "last_heard_s", "passed_over", "stamp", "voucher",
    )  # fmt: skip

    def __init__(self, peer: Peer, stamp: Stamp, shelf: Shelf = NO_SHELF, run: bytes = b"") -> None:
        """Take up what is on the `shelf` of this `run`, once it is asked for."""
        super().__init__(peer)
        self.stamp = stamp
        self.voucher = NO_VOUCHER  # of the last message that was taken
        self.acknowledgement = NO_VOUCHER  # the voucher of the last acknowledgement that came without a message
        self.doubted_until_s: float | None = None  # it is asked for proof until then; None if it never claimed any
        self.last_heard_s = 0.0
        self.gap_after: int | None = None  # what we had received when we last asked for a resend, and when that was
        self.gap_at_s = 0.0
        self.passed_over = False  # the peer has something for us that came before we could take it
        self.asked: Asked | None = None
        self._shelf, self._run = shelf, run
        self._parts: Parts | None = None  # of the value of the next message

    def data(self, item: SentMessage) -> bytes:
        return self.head(item) + item.value

    def head(self, item: SentMessage, flag: bytes = _DATA) -> bytes:
        """Return all of a payload that comes before the value part."""
        numbers, message = pack_numbers(item.number, self.received), item.message
        tag = self.stamp.tag(numbers, item.digest)
        return flag + numbers + tag + _length(len(message)) + message

    def payloads(self, item: SentMessage, there: int | None) -> Iterator[tuple[bytes, bytes | memoryview]]:
        """Yield what precedes a value part, or a piece of one, and that: of all payloads of a message.

        So many bytes of the value part are `there`; None leaves the pieces to be asked for.
        """
        value = item.value
        if len(value) <= pieces.PIECE_BYTES:
            yield self.head(item), value
            return
        if there is not None:
            for place in pieces.places(item.number, len(value), there):
                yield self.place(0, place), memoryview(value)[place.at : place.at + pieces.PIECE_BYTES]
        yield self.head(item, _PIECED), in_pieces(value, item.digest)

    def place(self, flags: int, place: Piece) -> bytes:
        """Return control that is about a place in a value part."""
        numbers = pack_numbers(0, self.received)
        return bytes((CONTROL | PIECE | flags,)) + numbers + self.stamp.tag(numbers, START) + place.packed()

    @property
    def parts(self) -> Parts:
        """Return what has come of the value of the next message, to earlier lives too."""
        if self._parts is None:
            self._parts = Parts(self.received + 1, self.peer, self._shelf, self._run)
        return self._parts

    def came(self, piece: Piece, data: bytes) -> None:
        """Keep a piece if it is the next one of the next message."""
        if piece.number == self.received + 1:
            self.parts.add(piece, data)

    def whole(self, end: Piece, message: bytes) -> bytes:
        """Return the value part of the next message; nothing while some of it is missing.

        Where the pieces are not those of this message, as its sender's disk was set back say, all are asked for again.
        """
        value = self.parts.whole(end)
        if value and value is not self.parts.value:
            digest = digest_of(value)
            if digest_after(self.received_digest, message, digest) != end.digest:
                self.parts.drop()
                return b""
            self.parts.value, self.parts.digest = value, digest
        return value

    def asks_again(self, now_s: float, wait_s: float) -> bool:
        """Return whether to ask for a message that is missing: once, and again after a wait, for questions get lost."""
        if self.gap_after == self.received and now_s < self.gap_at_s + wait_s:
            return False
        self.gap_after, self.gap_at_s = self.received, now_s
        return True

    def missing(self) -> bytes:
        """Return the question for the next message and all behind it; of its value part, for what has not come."""
        number = self.received + 1
        there = self.parts.there(number)
        return self.place(RESEND, Piece(number, there, 0)) if there else self.control(RESEND)

    def took(self, message: bytes, value: bytes, digest: bytes = b"") -> bytes:
        parts = self._parts
        if parts is not None and value is parts.value:
            digest = parts.digest
        digest = super().took(message, value, digest)
        self.drop()
        return digest

    def drop(self) -> None:
        """Forget what has come of the value of the next message."""
        if self._parts is not None:
            self._parts.drop()
            self._parts = None

    def numbered(self, message: bytes, value: bytes, value_digest: bytes) -> tuple[SentMessage, bytes]:
        """Do as `push` and `data` in one piece, but for keeping the message, which is up to the caller."""
        number = self.sent = self.sent + 1
        head = _length(len(message)) + message
        running, tag = begin_digest(), self.stamp.begin()
        running.update(self.sent_digest + head + value_digest)
        digest = self.sent_digest = running.digest()
        numbers = pack_numbers(number, self.received)
        tag.update(numbers + digest)
        return _new(SentMessage, (number, message, value, digest)), _DATA + numbers + tag.digest() + head + value

    def control(self, flags: int, hello: Hello | None = None) -> bytes:
        body: bytes = pack(hello.packed() if hello else [])
        numbers = pack_numbers(0, self.received)
        return bytes((CONTROL | flags,)) + numbers + self.stamp.tag(numbers, START) + body

    def ask(self, question: bytes) -> None:
        """Wait for an answer to this question from now on, and to none that was asked before."""
        self.asked = Asked(question, self.acknowledged, self.received)

    def settle(self) -> None:
        """Wait for no proof any more."""
        if self.doubted_until_s is not None:
            self.doubted_until_s = SETTLED

    def hello(self, question: bytes = b"", answer: bytes = b"") -> Hello:
        digests = self.received_digest, self.sent_digest
        numbers = self.received, digests[0], self.sent, digests[1], self.acknowledged
        return Hello(*numbers, question, answer, self.voucher, self.acknowledgement)

    def answers(self, theirs: Hello) -> bool:
        """Return whether a hello was sent after we asked, and so is neither late nor repeated."""
        return self.asked is not None and theirs.answer == self.asked.question

    def compare(self, theirs: Hello) -> Verdict:
        """Judge the other end's memory against ours; this changes nothing.

        Of a hello that answers no question of ours, that the peer was rolled back is no more than a suspicion.
        """
        known = self.sent_digest_at(theirs.received)
        otherwise = known is not None and known != theirs.received_digest
        if self._proves(theirs, otherwise=otherwise):
            return Verdict.I_WAS_ROLLED_BACK
        if theirs.received > self.sent or theirs.acknowledged > self.received:
            return Verdict.UNPROVEN
        acknowledged, received = self.acknowledged, self.received
        if self.asked is not None and self.answers(theirs):  # later frames may have overtaken the answer
            _, acknowledged, received = self.asked
        if theirs.received < acknowledged or theirs.sent < received:
            return Verdict.THEY_WERE_ROLLED_BACK
        if otherwise:
            return Verdict.UNPROVEN
        if theirs.sent == self.received and theirs.sent_digest != self.received_digest:
            return Verdict.THEY_WERE_ROLLED_BACK
        return Verdict.AGREED

    def _proves(self, theirs: Hello, *, otherwise: bool) -> bool:
        """Return whether vouchers of ours prove that we sent or received more than we remember, or otherwise."""
        took, acknowledgement = theirs.voucher, theirs.acknowledgement
        if self.stamp.fits(theirs.received, theirs.received_digest, took) and (
            theirs.received > self.sent or otherwise or received_in(took) > self.received
        ):
            return True
        return self.stamp.fits(0, START, acknowledgement) and received_in(acknowledgement) > self.received
