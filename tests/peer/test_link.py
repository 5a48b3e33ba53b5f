from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.crypto.channel import CONTEXT_BYTES, Channel
from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.vouchers import NO_VOUCHER, NUMBER_BYTES, START, pack_numbers
from p2pdp.peer.link import Hello, Link, Verdict
from p2pdp.peer.peers import QUESTION_BYTES
from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import BOXED, encode_frame
from p2pdp.wire.padding import FRAME_SIZES
from tests.support.toys import link_to

MESSAGES = [(bytes([number]), bytes([number] * number)) for number in range(8)]


def sender_and_receiver(sent: int, received: int, acknowledged: int) -> tuple[Link, Link]:
    mine, theirs = link_to(1), link_to(0)
    for message, value in MESSAGES[:sent]:
        mine.push(message, value)
    for message, value in MESSAGES[:received]:
        theirs.took(message, value)
    assert mine.acknowledge_up_to(acknowledged)
    return mine, theirs


def holding(theirs: Link, came: int = 0) -> Link:
    """With the other end's voucher for all that was received, made when so many messages had come there."""
    numbers = pack_numbers(theirs.received, came)
    theirs.voucher = numbers[NUMBER_BYTES:] + link_to(1).stamp.tag(numbers, theirs.received_digest)
    return theirs


def acknowledged(theirs: Link, came: int) -> Link:
    """With the other end's voucher that so many messages had come."""
    numbers = pack_numbers(0, came)
    theirs.acknowledgement = numbers[NUMBER_BYTES:] + link_to(1).stamp.tag(numbers, START)
    return theirs


def hello(link: Link) -> Hello:
    return link.hello(b"question")


@pytest.mark.parametrize(
    "item",
    [
        None,
        [],
        [bytes(76), b""],
        [bytes(76), b"", b"", b""],
        [bytes(75), b"", b""],
        [bytes(77), b"", b""],
        [bytes(76), "", b""],
        [bytes(76), b"", None],
        [0, b"", b""],
    ],
)
def test_a_malformed_hello_is_refused(item: object) -> None:
    with pytest.raises(CodecError):
        Hello.unpacked(item)


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
def test_ends_that_lost_nothing_agree(sent: int, received: int, acknowledged: int) -> None:
    received = min(received, sent)
    acknowledged = min(acknowledged, received)
    mine, theirs = sender_and_receiver(sent, received, acknowledged)
    assert mine.compare(hello(theirs)) is Verdict.AGREED
    assert theirs.compare(hello(mine)) is Verdict.AGREED


@given(st.integers(1, 8), st.integers(0, 7), st.integers(0, 7))
def test_the_end_that_sent_more_than_it_remembers_was_rolled_back(received: int, kept: int, acknowledged: int) -> None:
    kept, acknowledged = min(kept, received - 1), min(acknowledged, kept, received - 1)
    mine, _ = sender_and_receiver(kept, 0, acknowledged)
    _, theirs = sender_and_receiver(received, received, 0)
    assert mine.compare(hello(theirs)) is Verdict.UNPROVEN
    assert mine.compare(hello(holding(theirs))) is Verdict.I_WAS_ROLLED_BACK
    assert theirs.compare(hello(mine)) is Verdict.THEY_WERE_ROLLED_BACK


@given(st.integers(1, 8), st.integers(0, 7))
def test_the_end_that_acknowledged_more_than_it_remembers_was_rolled_back(count: int, kept: int) -> None:
    mine, _ = sender_and_receiver(8, 0, count)
    _, theirs = sender_and_receiver(8, min(kept, count - 1), 0)
    theirs.stamp = link_to(1).stamp
    assert theirs.compare(hello(mine)) is Verdict.UNPROVEN
    assert theirs.compare(hello(acknowledged(mine, count))) is Verdict.I_WAS_ROLLED_BACK
    theirs.push(*MESSAGES[0])
    mine.took(*MESSAGES[0])
    mine.acknowledgement = NO_VOUCHER
    assert theirs.compare(hello(mine)) is Verdict.UNPROVEN
    assert theirs.compare(hello(holding(mine, count))) is Verdict.I_WAS_ROLLED_BACK
    assert mine.compare(hello(theirs)) is Verdict.THEY_WERE_ROLLED_BACK


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 7), st.integers(0, 7))
def test_who_sent_one_number_twice_is_found_out_by_the_digest(same: int, more: int, others: int, known: int) -> None:
    """The sender was rolled back to `same`, then sent other messages, perhaps more than the receiver has."""
    _, theirs = sender_and_receiver(8, min(8, same + 1 + more), 0)
    mine, _ = sender_and_receiver(same, 0, 0)
    for _ in range(theirs.received - same + others):
        mine.push(b"another", b"")
    assert mine.acknowledge_up_to(min(known, theirs.received))
    assert mine.compare(hello(theirs)) is Verdict.UNPROVEN
    assert mine.compare(hello(holding(theirs))) is Verdict.I_WAS_ROLLED_BACK
    if mine.sent == theirs.received:
        assert theirs.compare(hello(mine)) is Verdict.THEY_WERE_ROLLED_BACK


def test_a_digest_is_still_known_after_its_message_was_acknowledged() -> None:
    mine, theirs = sender_and_receiver(5, 3, 3)
    assert mine.compare(hello(theirs)) is Verdict.AGREED
    _, other = sender_and_receiver(0, 0, 0)
    for _ in range(3):
        other.took(b"another", b"")
    assert mine.compare(hello(other)) is Verdict.UNPROVEN
    assert mine.compare(hello(holding(other))) is Verdict.I_WAS_ROLLED_BACK


def test_an_old_hello_does_not_accuse_oneself() -> None:
    mine, theirs = sender_and_receiver(5, 2, 2)
    old = hello(theirs)
    for message in MESSAGES[2:5]:
        theirs.took(*message)
    mine.acknowledge_up_to(5)
    assert mine.compare(old) is Verdict.THEY_WERE_ROLLED_BACK  # a suspicion, about which `Peers` asks
    assert mine.compare(hello(theirs)) is Verdict.AGREED


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
def test_an_answer_that_was_overtaken_is_judged_by_what_was_known_when_it_was_asked_for(
    before: int, then: int, after: int, kept: int
) -> None:
    """Received and acknowledged before the question, then until the answer, then until the answer arrived."""
    before, then, after = sorted((before, then, after))
    mine, theirs = sender_and_receiver(8, before, before)
    mine.ask(b"question")
    for message in MESSAGES[before:then]:
        theirs.took(*message)
    answer = theirs.hello(answer=b"question")
    assert mine.acknowledge_up_to(after)
    assert mine.answers(answer)
    assert mine.compare(answer) is Verdict.AGREED
    _, forgetful = sender_and_receiver(8, min(kept, before), 0)
    verdict = mine.compare(forgetful.hello(answer=b"question"))
    assert verdict is (Verdict.AGREED if kept >= before else Verdict.THEY_WERE_ROLLED_BACK)
    assert not mine.answers(theirs.hello(answer=b"another"))
    assert not mine.answers(theirs.hello())


def test_every_hello_has_a_frame_of_the_same_size() -> None:
    channel = Channel(RunKey(bytes(32)), RunKey(bytes([1] * 32)).public, bytes(CONTEXT_BYTES), 0, 1)
    for numbers, question in ((0, b""), (2**32 - 1, bytes(QUESTION_BYTES))):
        said = Hello(numbers, bytes(16), numbers, bytes(16), numbers, question, question, NO_VOUCHER, NO_VOUCHER)
        sealed = channel.seal(link_to(0).control(0, said), bytes(24))
        assert len(encode_frame(1, BOXED, sealed)) == FRAME_SIZES[0]


def test_numbers_below_zero_are_no_agreement() -> None:
    mine, _ = sender_and_receiver(3, 0, 0)
    for numbers in ((-1, 0, 0), (0, -1, 0)):
        received, sent, acknowledged = numbers
        other = Hello(received, bytes(16), sent, bytes(16), acknowledged, b"question")
        assert mine.compare(other) is Verdict.THEY_WERE_ROLLED_BACK


def test_a_repeated_number_must_carry_what_it_carried() -> None:
    _, link = sender_and_receiver(0, 5, 0)
    for number in range(1, 6):
        assert link.repeats(number, *MESSAGES[number - 1]) is True
        assert link.repeats(number, b"another", b"") is False
        assert link.repeats(number, MESSAGES[number - 1][0], b"another") is False
