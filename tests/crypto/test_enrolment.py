from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.ids import BOOTSTRAP
from p2pdp.crypto import enrolment
from p2pdp.crypto.enrolment import (
    REFUSED,
    SEAT,
    WAITING,
    Answer,
    Application,
    EnrolmentError,
    Offer,
    answer_frame,
    application_frame,
    check_seat,
    hello_frame,
    offer_frame,
    read_answer,
    read_application,
    read_offer,
)
from p2pdp.crypto.identity import Identity, RunKey, sign_labelled
from p2pdp.crypto.roster import RosterEntry, sign_entry, sign_roster
from p2pdp.wire.codec import pack
from p2pdp.wire.frames import BOXED, FRAME_HEADER_BYTES, Kind, decode_frame
from p2pdp.wire.padding import FRAME_SIZES, pad
from tests.support.known import cuts, flips

RUN_ID, SPEC_DIGEST = bytes([1] * 16), bytes([3] * 32)
BOOT, NODE, OTHER = (Identity(bytes([number] * 32)) for number in (10, 11, 12))
BOOT_KEY, NODE_KEY, OTHER_KEY = (RunKey(bytes([number] * 32)) for number in (20, 21, 22))
OFFER = Offer(RUN_ID, "[run]\nnodes = 3\n", BOOT_KEY.public)
ENTRY = sign_entry(NODE, RUN_ID, NODE_KEY.public)
APPLICATION = Application(1, bytes([7] * 16), ENTRY, SPEC_DIGEST)
SEED = bytes(range(32))


def roster_bytes(
    entries: tuple[RosterEntry, ...] = (), run_id: bytes = RUN_ID, spec_digest: bytes = SPEC_DIGEST
) -> bytes:
    role = sign_entry(BOOT, run_id, BOOT_KEY.public)
    other = sign_entry(OTHER, run_id, OTHER_KEY.public)
    return sign_roster(
        BOOT,
        run_id=run_id,
        spec_digest=spec_digest,
        protocol="toy",
        facts={"n": 3},
        bootstrap=role,
        curator=other,
        entries=entries or (other, ENTRY, other),
    ).to_bytes()


ANSWER = Answer(SEAT, user=1, neighbours=(0, 2), roster=roster_bytes())


def body(frame: bytes) -> bytes:
    return decode_frame(frame).body


def opened_answer(frame: bytes, key: RunKey = NODE_KEY, run_id: bytes = RUN_ID) -> Answer:
    return read_answer(body(frame), key, run_id, BOOT.public)


def answered(answer: Answer) -> bytes:
    return answer_frame(BOOT, RUN_ID, NODE_KEY.public, answer, SEED)


def test_documents_come_back_as_they_were() -> None:
    assert read_offer(body(offer_frame(BOOT, OFFER)), BOOT.public) == OFFER
    assert read_application(body(application_frame(APPLICATION, BOOT_KEY.public, SEED)), BOOT_KEY) == APPLICATION
    for answer in (
        ANSWER,
        replace(ANSWER, neighbours=None),
        replace(ANSWER, neighbours=()),
        Answer(WAITING, "1 of 3"),
        Answer(REFUSED, "why"),
    ):
        assert opened_answer(answered(answer)) == answer


def test_kinds_senders_and_sizes_of_the_frames() -> None:
    frames = [
        hello_frame(),
        offer_frame(BOOT, OFFER),
        application_frame(APPLICATION, BOOT_KEY.public, SEED),
        answered(ANSWER),
    ]
    assert [decode_frame(frame).kind for frame in frames] == [Kind.HELLO, Kind.OFFER, Kind.ENROL, Kind.ROSTER]
    assert [decode_frame(frame).sender for frame in frames] == [0, BOOTSTRAP, 0, BOOTSTRAP]
    assert {len(frame) for frame in frames} <= set(FRAME_SIZES)
    assert BOXED not in [decode_frame(frame).kind for frame in frames]


def test_the_secret_and_the_identity_are_sealed() -> None:
    frame = application_frame(APPLICATION, BOOT_KEY.public, SEED)
    assert APPLICATION.secret not in frame
    assert NODE.public not in frame
    assert APPLICATION.secret.hex() not in repr(APPLICATION)
    with pytest.raises(EnrolmentError):
        read_application(body(frame), OTHER_KEY)


READERS: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    "offer": (body(offer_frame(BOOT, OFFER)), lambda data: read_offer(data, BOOT.public)),
    "application": (
        body(application_frame(APPLICATION, BOOT_KEY.public, SEED)),
        lambda data: read_application(data, BOOT_KEY),
    ),
    "answer": (
        body(answered(Answer(WAITING, "1 of 3"))),
        lambda data: read_answer(data, NODE_KEY, RUN_ID, BOOT.public),
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_a_document_that_is_damaged_anywhere_is_refused(name: str) -> None:
    good, read = READERS[name]
    read(good)
    damaged = [*flips(good), *cuts(good), good + b"\0", good + bytes(len(good))]
    for data in damaged:
        with pytest.raises(EnrolmentError):
            read(data)


@pytest.mark.parametrize("name", READERS)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_refused_in_one_way(name: str, data: bytes) -> None:
    with pytest.raises(EnrolmentError):
        READERS[name][1](data)


def sealed(document: object, box: bytes) -> bytes:
    return body(enrolment._sealed_frame(Kind.ENROL, 0, pack(document), box, SEED))


ENTRY_BYTES = ENTRY.to_bytes()


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        [1, b"secret", ENTRY_BYTES],
        [1, b"secret", ENTRY_BYTES, SPEC_DIGEST, 1],
        ["1", b"secret", ENTRY_BYTES, SPEC_DIGEST],
        [True, b"secret", ENTRY_BYTES, SPEC_DIGEST],
        [1, "secret", ENTRY_BYTES, SPEC_DIGEST],
        [1, b"secret", ENTRY_BYTES[:-1], SPEC_DIGEST],
        [1, b"secret", ENTRY_BYTES + b"\0", SPEC_DIGEST],
        [1, b"secret", ENTRY_BYTES, None],
    ],
)
def test_an_application_of_another_form_is_refused(document: object) -> None:
    with pytest.raises(EnrolmentError):
        read_application(sealed(document, BOOT_KEY.public), BOOT_KEY)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        [SEAT, "", 1, False, [0, 2]],
        ["other", "", 1, False, [0, 2], b""],
        [SEAT, "", True, False, [0, 2], b""],
        [SEAT, "", 1, 0, [0, 2], b""],
        [SEAT, "", 1, False, [0, -2], b""],
        [SEAT, "", 1, False, [0, "2"], b""],
        [SEAT, "", 1, False, [[0]], b""],
        [SEAT, "", 1, False, [True], b""],
        [SEAT, b"", 1, False, [], b""],
    ],
)
def test_an_answer_of_another_form_is_refused_even_when_it_is_signed(content: object) -> None:
    packed = pack(content)
    signature = sign_labelled(BOOT, "p2pdp answer", RUN_ID, NODE_KEY.public, packed)
    with pytest.raises(EnrolmentError):
        read_answer(sealed([packed, signature], NODE_KEY.public), NODE_KEY, RUN_ID, BOOT.public)


def test_an_offer_of_another_form_is_refused_even_when_it_is_signed() -> None:
    def offer(*parts: bytes) -> bytes:
        return pad(pack([*parts, sign_labelled(BOOT, "p2pdp offer", *parts)]), FRAME_HEADER_BYTES)

    read_offer(offer(RUN_ID, b"text", BOOT_KEY.public), BOOT.public)
    for parts in ((RUN_ID[1:], b"text", BOOT_KEY.public), (RUN_ID, b"\xff", BOOT_KEY.public), (RUN_ID, b"text")):
        with pytest.raises(EnrolmentError):
            read_offer(offer(*parts), BOOT.public)


def test_offers_and_answers_of_another_key_are_refused() -> None:
    with pytest.raises(EnrolmentError, match="not signed by the key in the join token"):
        read_offer(body(offer_frame(OTHER, OFFER)), BOOT.public)
    with pytest.raises(EnrolmentError, match="not signed by the key in the join token"):
        opened_answer(answer_frame(OTHER, RUN_ID, NODE_KEY.public, ANSWER, SEED))


def test_an_answer_for_somebody_else_or_another_run_is_refused() -> None:
    with pytest.raises(EnrolmentError, match="not sealed"):
        opened_answer(answered(ANSWER), OTHER_KEY)
    with pytest.raises(EnrolmentError, match="not signed"):
        opened_answer(answered(ANSWER), run_id=bytes(16))


@pytest.mark.parametrize("key", [bytes(32), bytes([1]) + bytes(31), b"short", b""])
def test_a_key_that_nothing_can_be_sealed_to_is_refused_and_not_raised_otherwise(key: bytes) -> None:
    with pytest.raises(EnrolmentError):
        answer_frame(BOOT, RUN_ID, key, ANSWER, SEED)
    with pytest.raises(EnrolmentError):
        application_frame(APPLICATION, key, SEED)


def test_a_seat_is_checked_against_what_was_accepted() -> None:
    roster = check_seat(ANSWER, BOOT.public, ENTRY, SPEC_DIGEST, RUN_ID)
    assert roster.to_bytes() == ANSWER.roster
    elsewhere = sign_entry(NODE, RUN_ID, OTHER_KEY.public)
    for answer, words in (
        (replace(ANSWER, user=0), "own entry"),
        (replace(ANSWER, user=3), "own entry"),
        (replace(ANSWER, user=-1), "own entry"),
        (replace(ANSWER, neighbours=(0, 3)), "neighbours"),
        (replace(ANSWER, neighbours=(1,)), "neighbours"),
        (replace(ANSWER, roster=b""), "malformed"),
        (replace(ANSWER, roster=roster_bytes((elsewhere,) * 3)), "own entry"),
        (replace(ANSWER, roster=roster_bytes(spec_digest=bytes(32))), "another spec"),
        (replace(ANSWER, roster=roster_bytes(run_id=bytes(16))), "another run"),
    ):
        with pytest.raises(EnrolmentError, match=words):
            check_seat(answer, BOOT.public, ENTRY, SPEC_DIGEST, RUN_ID)
    with pytest.raises(EnrolmentError, match="another bootstrap"):
        check_seat(ANSWER, OTHER.public, ENTRY, SPEC_DIGEST, RUN_ID)


def test_an_altered_roster_gives_no_seat() -> None:
    for damaged in flips(ANSWER.roster):
        with pytest.raises(EnrolmentError):
            check_seat(replace(ANSWER, roster=damaged), BOOT.public, ENTRY, SPEC_DIGEST, RUN_ID)
