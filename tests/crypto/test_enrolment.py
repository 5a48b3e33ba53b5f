from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.crypto import enrolment
from p2pdp.crypto.enrolment import (
    HANDSHAKE_VERSION,
    REFUSED,
    SEAT,
    WAITING,
    Answer,
    Application,
    EnrolmentError,
    NotSealedToUs,
    Offer,
    OtherVersion,
    answer_frame,
    application_frame,
    check_seat,
    hello_frame,
    hello_key,
    offer_frame,
    read_answer,
    read_application,
    read_hello,
    read_offer,
    seat_size,
    version_frame,
)
from p2pdp.crypto.identity import Identity, RunKey, sign_labelled
from p2pdp.crypto.roster import Roster, RosterEntry, RosterError, sign_entry, sign_roster
from p2pdp.crypto.sealed import seal_to
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
SECRET = bytes([7] * 16)
KEY = hello_key(NODE_KEY)


def entry_of(number: int, run_id: bytes = RUN_ID) -> RosterEntry:
    return sign_entry(Identity(bytes([number] * 32)), run_id, RunKey(bytes([10 + number] * 32)).public)


def roster_bytes(
    entries: tuple[RosterEntry, ...] = (), run_id: bytes = RUN_ID, spec_digest: bytes = SPEC_DIGEST
) -> bytes:
    return roster_of(entries, run_id, spec_digest).to_bytes()


def roster_of(
    entries: tuple[RosterEntry, ...] = (), run_id: bytes = RUN_ID, spec_digest: bytes = SPEC_DIGEST
) -> Roster:
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
        entries=entries or (entry_of(13, run_id), ENTRY, entry_of(14, run_id)),
    )


ANSWER = Answer(SEAT, user=1, neighbours=(0, 2), roster=roster_bytes())


def body(frame: bytes) -> bytes:
    return decode_frame(frame).body


def opened_answer(frame: bytes, key: RunKey = NODE_KEY, run_id: bytes = RUN_ID) -> Answer:
    return read_answer(body(frame), key, run_id, BOOT.public)


HELLO = hello_frame(1, SECRET, BOOT.public, KEY.public)


def offered(offer: Offer = OFFER, signer: Identity = BOOT) -> bytes:
    return offer_frame(signer, offer, KEY.public, BOOT_KEY)


def answered(answer: Answer) -> bytes:
    return answer_frame(BOOT, RUN_ID, NODE_KEY.public, answer, SEED)


def test_documents_come_back_as_they_were() -> None:
    for offer in (OFFER, replace(OFFER, refusal="why")):
        assert read_offer(body(offered(offer)), KEY, BOOT.public) == offer
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
        HELLO,
        offered(),
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
    "offer": (body(offered()), lambda data: read_offer(data, KEY, BOOT.public)),
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
    def offer(content: object) -> bytes:
        packed = pack(content)
        return sealed([packed, sign_labelled(BOOT, "p2pdp offer", KEY.public, packed)], KEY.public)

    read_offer(offer([RUN_ID, "text", BOOT_KEY.public, ""]), KEY, BOOT.public)
    for content in (
        [RUN_ID[1:], "text", BOOT_KEY.public, ""],
        [RUN_ID, b"text", BOOT_KEY.public, ""],
        [RUN_ID, "text", BOOT_KEY.public],
        [RUN_ID, "text", BOOT_KEY.public, "", 1],
        None,
    ):
        with pytest.raises(EnrolmentError) as raised:
            read_offer(offer(content), KEY, BOOT.public)
        assert not isinstance(raised.value, NotSealedToUs)


def test_an_offer_is_for_one_key_and_shows_nothing_to_others() -> None:
    text = "[data]\npath = '/srv/somebody/rows.csv'\n"
    frame = offered(replace(OFFER, spec_text=text))
    for secret in (b"somebody", b"[data]", RUN_ID, BOOT_KEY.public, BOOT.public):
        assert secret not in frame
    for key in (NODE_KEY, OTHER_KEY, hello_key(OTHER_KEY)):
        with pytest.raises(NotSealedToUs):
            read_offer(body(frame), key, BOOT.public)
    other = hello_key(OTHER_KEY)
    moved = offer_frame(BOOT, OFFER, KEY.public, BOOT_KEY)
    content = enrolment._opened(body(moved), KEY)
    with pytest.raises(EnrolmentError, match="not signed"):  # sealed anew by somebody who read it
        read_offer(sealed(content, other.public), other, BOOT.public)


def test_no_two_texts_are_sealed_with_the_same_seed() -> None:
    ephemerals = {body(offered(replace(OFFER, spec_text=str(number))))[:32] for number in range(9)}
    ephemerals |= {body(offer_frame(BOOT, OFFER, entry_of(n).box, BOOT_KEY))[:32] for n in range(9)}
    assert len(ephemerals) == 18
    assert offered() == offered()


def test_a_greeting_proves_its_token_for_its_key_and_this_bootstrap() -> None:
    hello = read_hello(body(HELLO))
    assert (hello.token, hello.key) == (1, KEY.public)
    assert hello.knows(SECRET, BOOT.public)
    assert SECRET not in HELLO
    for changed in (replace(hello, token=2), replace(hello, key=OTHER_KEY.public), replace(hello, proof=bytes(32))):
        assert not changed.knows(SECRET, BOOT.public)
    assert not hello.knows(SECRET, OTHER.public)
    assert not hello.knows(bytes(16), BOOT.public)
    assert hello_key(NODE_KEY).public == KEY.public != NODE_KEY.public


@pytest.mark.parametrize(
    "document",
    [
        [],
        [HANDSHAKE_VERSION],
        [HANDSHAKE_VERSION, 1, bytes(31), bytes(32)],
        [HANDSHAKE_VERSION, 1, bytes(32), bytes(33)],
        [HANDSHAKE_VERSION, "1", bytes(32), bytes(32)],
        [HANDSHAKE_VERSION, True, bytes(32), bytes(32)],
        ["2", 1, bytes(32), bytes(32)],
        None,
        7,
    ],
)
def test_a_greeting_of_another_form_is_refused(document: object) -> None:
    with pytest.raises(EnrolmentError) as raised:
        read_hello(pad(pack(document), FRAME_HEADER_BYTES))
    assert not isinstance(raised.value, OtherVersion)


def test_other_versions_are_told_apart_on_both_sides() -> None:
    for document, version in ((b"", 1), (pack([2, 1, bytes(32), bytes(32)]), 2), (pack([9, "of", "a later form"]), 9)):
        with pytest.raises(OtherVersion) as raised:
            read_hello(pad(document, FRAME_HEADER_BYTES))
        assert raised.value.version == version
    with pytest.raises(OtherVersion) as raised:
        read_offer(body(version_frame()), KEY, BOOT.public)
    assert raised.value.version == HANDSHAKE_VERSION
    for data in cuts(body(version_frame())):
        with pytest.raises(NotSealedToUs):
            read_offer(data, KEY, BOOT.public)


def test_offers_and_answers_of_another_key_are_refused() -> None:
    with pytest.raises(EnrolmentError, match="not signed by the key in the join token"):
        read_offer(body(offered(signer=OTHER)), KEY, BOOT.public)
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
    elsewhere = sign_entry(NODE, RUN_ID, RunKey(bytes([30] * 32)).public)
    for answer, words in (
        (replace(ANSWER, user=0), "own entry"),
        (replace(ANSWER, user=3), "own entry"),
        (replace(ANSWER, user=-1), "own entry"),
        (replace(ANSWER, neighbours=(0, 3)), "neighbours"),
        (replace(ANSWER, neighbours=(1,)), "neighbours"),
        (replace(ANSWER, roster=b""), "malformed"),
        (replace(ANSWER, roster=roster_bytes((entry_of(13), elsewhere, entry_of(14)))), "own entry"),
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


LARGE = roster_of(
    (
        entry_of(13),
        ENTRY,
        *(
            RosterEntry(bytes(28) + number.to_bytes(4, "big"), bytes(28) + number.to_bytes(4, "big"), bytes(64))
            for number in range(2, 10_000)
        ),
    )
)
AROUND = (0, 17, 900, 2222, 2999, 4001, 5678, 6543, 8191, 9998)


def large(users: Iterable[Peer], neighbours: tuple[Peer, ...] | None = AROUND) -> Answer:
    return Answer(SEAT, user=1, neighbours=neighbours, roster=LARGE.part(users))


def test_a_seat_comes_with_the_entries_of_those_to_whom_the_node_talks() -> None:
    answer = large((1, *AROUND))
    frame = answered(answer)
    assert len(frame) == 8192, "of ten thousand users"
    roster = check_seat(opened_answer(frame), BOOT.public, ENTRY, SPEC_DIGEST, RUN_ID)
    assert (roster.n, roster.digest) == (10_000, LARGE.digest)
    assert roster.entry(0) == entry_of(13)
    for user in (2, 9999):
        with pytest.raises(RosterError, match=f"no entry of user {user}"):
            roster.entry(user)
    with pytest.raises(RosterError, match="no user 10000"):
        roster.entry(10_000)
    with pytest.raises(RosterError, match="entry of 17 has no valid signature"):
        roster.entry(17)


@pytest.mark.parametrize(
    ("users", "neighbours"),
    [
        ((1, *AROUND[1:]), AROUND),
        ((1, 3, *AROUND), AROUND),
        ((1,), AROUND),
        ((1, *AROUND), AROUND[1:]),
        ((1, *AROUND), None),
    ],
)
def test_a_seat_with_too_few_or_too_many_entries_is_refused(
    users: tuple[Peer, ...], neighbours: tuple[Peer, ...]
) -> None:
    with pytest.raises(EnrolmentError, match="other entries than those of this node and its neighbours"):
        check_seat(large(users, neighbours), BOOT.public, ENTRY, SPEC_DIGEST, RUN_ID)


def test_a_seat_without_the_entry_of_its_own_node_is_refused() -> None:
    for answer in (large(AROUND), replace(large((1, *AROUND)), user=17), replace(large((1, *AROUND)), user=3)):
        with pytest.raises(EnrolmentError, match="own entry"):
            check_seat(answer, BOOT.public, ENTRY, SPEC_DIGEST, RUN_ID)


@given(st.integers(0, 40_000), st.integers(0, 2))
def test_sealed_documents_have_a_few_sizes_and_come_back(length: int, zeros: int) -> None:
    answer = Answer(SEAT, user=1, neighbours=None, roster=b"\x80" * length + bytes(zeros))
    frame = answered(answer)
    assert len(frame) in {*FRAME_SIZES, 8192, 12288}
    assert opened_answer(frame) == answer


def test_padding_that_nobody_makes_is_refused() -> None:
    document = pack([b"content", b"signature"])
    for padding in (b"\x80" + bytes(8000), b"\x80" + bytes(300), b"", bytes(16)):
        sealed = seal_to(NODE_KEY.public, document + padding, SEED)
        with pytest.raises(EnrolmentError, match="malformed document"):
            read_answer(sealed, NODE_KEY, RUN_ID, BOOT.public)


@pytest.mark.parametrize("degree", [1, 4, 10, 40, 200])
def test_the_size_of_a_seat_is_known_before(degree: int) -> None:
    neighbours = tuple(range(2, 9999, 9999 // degree))[:degree]
    frame = answered(large((1, *neighbours), neighbours))
    assert len(frame) == pytest.approx(seat_size(LARGE.n, 1 + degree), rel=0.15, abs=4096)
    assert seat_size(3, 3) == 4096, "with the facts of a run; they are fewer here"
