from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from p2pdp.core.errors import Refused
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.crypto.enrolment import (
    HANDSHAKE_VERSION,
    REFUSED,
    SEAT,
    WAITING,
    Answer,
    Offer,
    answer_frame,
    hello_frame,
    hello_key,
    offer_frame,
    read_application,
    version_frame,
)
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import Identity
from p2pdp.crypto.roster import Roster, RosterEntry, sign_entry, sign_roster
from p2pdp.files.spec import parse_spec
from p2pdp.peer.enrolment import (
    FAULTS_KEPT,
    HELLO_EVERY,
    NO_ANSWER,
    RETRY_MAX_S,
    RETRY_S,
    EnrolmentClient,
    first_wait_s,
)
from p2pdp.wire.frames import Kind, decode_frame, encode_frame
from tests.support.known import cuts, flips
from tests.support.local import SPEC
from tests.support.toys import RUN_ID, SPEC_DIGEST, identity, roster, run_key

SEED = bytes(range(32))
SECRET = bytes([5] * 16)
KEY = hello_key(run_key(1))
HELLO = hello_frame(4, SECRET, identity(BOOTSTRAP).public, KEY.public)


def offered(signer: Identity | None = None, **changes: Any) -> bytes:
    offer = replace(Offer(RUN_ID, "spec text", run_key(BOOTSTRAP).public), **changes)
    return offer_frame(signer or identity(BOOTSTRAP), offer, KEY.public, run_key(BOOTSTRAP))


OFFER = offered()


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
    assert node.ask() == node.ask() == HELLO
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
    assert node.ask() == HELLO
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
    forged = offered(identity(0), box=run_key(0).public)
    assert node.frame(forged) is None
    assert node.ask() == HELLO
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
    node.frame(offered(identity(0), box=run_key(0).public))
    assert node.doubt == "the offer is not signed by the key in the join token"


def entries(*peers: int, **changed: RosterEntry) -> Roster:
    """A roster of these users, in which some entries are another's."""
    known = roster(3)
    return sign_roster(
        identity(BOOTSTRAP),
        run_id=RUN_ID,
        spec_digest=SPEC_DIGEST,
        protocol="toy",
        facts={"n": len(peers)},
        bootstrap=known.bootstrap,
        curator=known.curator,
        entries=[changed.get(f"u{place}", known.entry(peer)) for place, peer in enumerate(peers)],
    )


@pytest.mark.parametrize(
    ("user", "story", "words"),
    [
        (1, roster(3, spec_digest=bytes(32)), "another spec"),
        (1, roster(3, run_id=bytes(16)), "another run"),
        (1, roster(1), "own entry"),
        (0, roster(3), "own entry"),
        (-1, roster(3), "own entry"),
        (1, entries(0, 1, 1), "user 1 and user 2 the same identity"),
        (1, entries(0, 1, 0), "user 0 and user 2 the same identity"),
        (1, entries(BOOTSTRAP, 1, 2), "bootstrap and user 0 the same identity"),
        (1, entries(0, 1, CURATOR), "curator and user 2 the same identity"),
        (1, entries(0, 1, 2, u2=sign_entry(identity(2), RUN_ID, run_key(0).public)), "the same run key"),
        (1, entries(0, 1, 2, u2=sign_entry(identity(2), RUN_ID, run_key(CURATOR).public)), "the same run key"),
    ],
)
def test_a_seat_that_does_not_fit_ends_the_node_with_its_reason(user: int, story: Roster, words: str) -> None:
    node = with_offer()
    with pytest.raises(Refused, match=words):
        node.frame(answer(Answer(SEAT, user=user, neighbours=(), roster=story.to_bytes())))
    assert node.credentials is None


def test_an_offer_of_another_run_ends_a_node_that_applied_already() -> None:
    node = with_offer()
    for changes in ({"run_id": bytes(16)}, {"box": run_key(2).public}, {"spec_text": "another"}):
        with pytest.raises(Refused, match="another run"):
            node.frame(offered(**changes))
    assert [node.ask() == HELLO for _ in range(2 * HELLO_EVERY)].count(True) == 2  # so it hears of one


def test_bootstrap_can_refuse_a_greeting() -> None:
    node = enrolment_client()
    assert node.frame(offered(refusal="this join token is not valid here", box=b"", spec_text="")) is None
    assert node.refused == "this join token is not valid here"


def test_what_anybody_could_have_sent_is_told_and_ends_nothing() -> None:
    node = enrolment_client()
    for data, words in (
        (version_frame(), f"version {HANDSHAKE_VERSION}"),
        (offer_frame(identity(BOOTSTRAP), Offer(RUN_ID, "", b""), run_key(1).public, run_key(0)), "not sealed"),
        (b"rubbish", "frame"),
    ):
        assert node.frame(data) is None
        assert words in node.waiting
        assert node.waiting.startswith(NO_ANSWER)
    assert (node.doubt, node.refused, node.fault_count) == (None, None, 3)


def test_an_offer_with_a_key_that_nothing_can_be_sealed_to_is_a_fault() -> None:
    node = enrolment_client()
    for key in (bytes(32), b"short"):
        assert node.frame(offered(box=key)) is None
    assert node.ask() == HELLO
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


def test_the_more_ask_at_once_the_longer_each_waits_before_it_asks_again() -> None:
    run = parse_spec(SPEC, None).run
    waits = [first_wait_s(replace(run, nodes=nodes)) for nodes in (1, 333, 1000, 5000, 100_000)]
    assert waits == [RETRY_S, RETRY_S, 3.0, 15.0, RETRY_MAX_S]
    assert first_wait_s(None) == RETRY_S
