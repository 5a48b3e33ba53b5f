from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.errors import Refused
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.crypto.enrolment import (
    REFUSED,
    SEAT,
    WAITING,
    Answer,
    Offer,
    answer_frame,
    hello_frame,
    offer_frame,
    read_application,
)
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import Identity
from p2pdp.peer.enrolment import FAULTS_KEPT, NO_ANSWER, EnrolmentClient
from p2pdp.wire.frames import Kind, decode_frame, encode_frame
from tests.support.known import cuts, flips
from tests.support.toys import RUN_ID, SPEC_DIGEST, identity, roster, run_key

SEED = bytes(range(32))
SECRET = bytes([5] * 16)
OFFER = offer_frame(identity(BOOTSTRAP), Offer(RUN_ID, "spec text", run_key(BOOTSTRAP).public))


def enrolment_client(accept: Any = lambda _text: SPEC_DIGEST) -> EnrolmentClient:
    public = identity(BOOTSTRAP).public
    return EnrolmentClient(identity(1), run_key(1), 4, SECRET, public, accept, SeededEntropy(2, "applicant"))


def with_offer() -> EnrolmentClient:
    node = enrolment_client()
    node.frame(OFFER)
    return node


def answer(content: Answer, signer: Identity | None = None) -> bytes:
    return answer_frame(signer or identity(BOOTSTRAP), RUN_ID, run_key(1).public, content, SEED)


SEATED = Answer(SEAT, user=1, neighbours=(0, 2), roster=roster(3).to_bytes())


def test_it_says_hello_until_there_is_an_offer_and_then_applies_until_there_is_a_seat() -> None:
    node = enrolment_client()
    assert node.ask() == node.ask() == hello_frame()
    first = node.frame(OFFER)
    assert first is not None
    for data in (first, node.ask()):
        application = read_application(decode_frame(data).body, run_key(BOOTSTRAP))
        assert (application.token, application.secret, application.spec_digest) == (4, SECRET, SPEC_DIGEST)
        assert application.entry.is_valid(RUN_ID)
    assert node.frame(answer(Answer(WAITING, "1 of 3 nodes have enrolled"))) is None
    assert node.waiting_for == "1 of 3 nodes have enrolled"
    assert node.frame(answer(SEATED)) is None
    assert node.credentials is not None
    assert (node.credentials.me, node.credentials.neighbours, node.credentials.roster) == (1, (0, 2), roster(3))
    assert node.credentials.run_key is node._run_key


def test_no_two_applications_are_sealed_with_the_same_seed() -> None:
    node = with_offer()
    assert node.ask() != node.ask()


def test_the_owner_sees_the_spec_before_anything_of_the_node_leaves() -> None:
    shown: list[str] = []

    def accept(text: str) -> bytes:
        shown.append(text)
        raise Refused("the owner does not agree")

    node = enrolment_client(accept)
    with pytest.raises(Refused):
        node.frame(OFFER)
    assert shown == ["spec text"]
    assert node.ask() == hello_frame()
    assert node.credentials is None


def test_repeated_and_late_documents_do_no_harm() -> None:
    node = with_offer()
    assert node.frame(OFFER) is None
    node.frame(answer(SEATED))
    credentials = node.credentials
    for data in (OFFER, answer(SEATED), answer(Answer(REFUSED, "why")), answer(Answer(WAITING)), b"rubbish"):
        assert node.frame(data) is None
    assert node.credentials is credentials
    assert node.refused is None


def test_an_answer_before_any_offer_is_not_believed() -> None:
    node = enrolment_client()
    assert node.frame(answer(SEATED)) is None
    assert node.frame(answer(Answer(REFUSED, "why"))) is None
    assert (node.credentials, node.refused) == (None, None)


def test_a_refusal_is_kept_with_its_reason() -> None:
    node = with_offer()
    node.frame(answer(Answer(REFUSED, "this join token is not valid here")))
    assert node.refused == "this join token is not valid here"
    node.frame(answer(SEATED))
    assert node.credentials is None


def test_forged_documents_are_faults() -> None:
    node = enrolment_client()
    forged = offer_frame(identity(0), Offer(RUN_ID, "spec text", run_key(0).public))
    assert node.frame(forged) is None
    assert node.ask() == hello_frame()
    node.frame(OFFER)
    for content in (SEATED, Answer(REFUSED, "why")):
        assert node.frame(answer(content, identity(0))) is None
    assert (node.credentials, node.refused, len(node.faults)) == (None, None, 3)


def test_an_offer_of_another_bootstrap_leaves_a_doubt_and_a_good_one_none() -> None:
    node = enrolment_client()
    assert (node.doubt, node.waiting_for) == (None, NO_ANSWER)
    node.frame(OFFER)
    assert node.doubt is None
    node = enrolment_client()
    node.frame(offer_frame(identity(0), Offer(RUN_ID, "spec text", run_key(0).public)))
    assert node.doubt == "the offer is not signed by the key in the join token"


def test_a_roster_of_another_story_is_a_fault_and_no_seat() -> None:
    for other in (
        roster(3, spec_digest=bytes(32)),
        roster(3, run_id=bytes(16)),
        roster(1),
    ):
        node = with_offer()
        node.frame(answer(Answer(SEAT, user=1, neighbours=(), roster=other.to_bytes())))
        assert (node.credentials, len(node.faults)) == (None, 1)


def test_an_offer_with_a_key_that_nothing_can_be_sealed_to_is_a_fault() -> None:
    node = enrolment_client()
    for key in (bytes(32), b"short"):
        assert node.frame(offer_frame(identity(BOOTSTRAP), Offer(RUN_ID, "spec text", key))) is None
    assert node.ask() == hello_frame()
    assert len(node.faults) == 2


def test_documents_that_are_damaged_anywhere_are_faults_and_faults_are_capped() -> None:
    node = enrolment_client()
    for good in (OFFER, answer(Answer(REFUSED, "why"))):
        damaged = [data for data in flips(good) if data[2:6] == good[2:6]]  # the outer sender protects nothing
        for data in [*damaged, *cuts(good), good + b"\0"]:
            assert node.frame(data) is None
            assert node.refused is None
        node.frame(OFFER)
    assert len(node.faults) == FAULTS_KEPT


def test_frames_that_an_applicant_never_gets_are_passed_over() -> None:
    node = with_offer()
    for kind in (Kind.BOXED, Kind.HELLO, Kind.ENROL):
        assert node.frame(encode_frame(kind, 0, bytes(250))) is None
    assert node.credentials is None
