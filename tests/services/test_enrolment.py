from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.rows import ROWS, ROWS_MAX, Rows, rows_text
from p2pdp.crypto.enrolment import (
    REFUSED,
    SEAT,
    WAITING,
    Answer,
    Application,
    NotSealedToUs,
    Offer,
    application_frame,
    check_seat,
    hello_frame,
    hello_key,
    read_answer,
    read_offer,
    version_frame,
)
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.roster import Roster, RosterEntry, sign_entry
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import LEDGER_MAGIC, Chain
from p2pdp.services.enrolment import (
    FAULTS_KEPT,
    INVALID_TOKEN,
    REFUSED_ENROLMENT,
    EnrolmentService,
    Quorum,
    Replies,
)
from p2pdp.wire.frames import FRAME_HEADER_BYTES, Kind, decode_frame, encode_frame
from p2pdp.wire.padding import pad
from tests.support.known import cuts, flips
from tests.support.toys import RUN_ID, SPEC_DIGEST, identity, run_key

SECRETS = [bytes([50 + token] * 16) for token in range(5)]
OFFER = Offer(RUN_ID, "spec text", run_key(BOOTSTRAP).public)
KEY = hello_key(run_key(0))
HELLO = hello_frame(2, SECRETS[2], identity(BOOTSTRAP).public, KEY.public)
ENTROPY = SeededEntropy(5, "enrolment")


class Counter:
    """A desk with its disk; a node is known by the number of its identity."""

    def __init__(self, nodes: int = 3, min_nodes: int | None = None, *, rows_max: int | None = None) -> None:
        self.rows_max = rows_max
        self.quorum = Quorum(nodes, nodes if min_nodes is None else min_nodes, 60.0)
        self.files = {VIEW: b"", PRIVATE: b""}
        self.lengths: list[int] = []
        self.now_s = 100.0
        self.replies = self.open()

    def open(self) -> Replies:
        self.enrolment = EnrolmentService(
            identity(BOOTSTRAP),
            run_key(BOOTSTRAP),
            OFFER,
            SPEC_DIGEST,
            "toy",
            sign_entry(identity(CURATOR), RUN_ID, run_key(CURATOR).public),
            SECRETS,
            self.quorum,
            self.prepare,
            Journal(self.files[VIEW], self.files[PRIVATE]),
            SeededEntropy(6, "desk"),
            rows_max=self.rows_max,
        )
        return self.store(self.enrolment.begin(self.now_s))

    @staticmethod
    def prepare(n: int, rows: Rows | None) -> tuple[Callable[[int], list[int]], dict[str, int | str | float]]:
        facts: dict[str, int | str | float] = {"n": n} if rows is None else {"n": n, ROWS: rows_text(rows)}
        return lambda user: [other for other in range(n) if other != user], facts

    def store(self, replies: Replies) -> Replies:
        for name, data in replies.writes:
            self.files[name] += data
            if name == VIEW:
                self.lengths.append(len(self.files[VIEW]))
        self.replies = replace(replies, frames=tuple(replies.frames))
        return self.replies

    def give(self, frame: bytes, origin: Any = "somewhere") -> Replies:
        return self.store(self.enrolment.frame(origin, frame, self.now_s))

    def apply(self, node: int, number: int | None = None, **changes: Any) -> Answer | None:
        """A node applies with a token (its own number's, unless said otherwise); gives the answer it gets."""
        document = replace(application(node, node if number is None else number), **changes)
        replies = self.give(frame(document), node)
        return answer_to(node, replies)

    def kinds(self) -> list[str]:
        return [records.KIND_NAMES[record.kind] for record in records.read(self.files[VIEW]).records]


def application(node: int, token: int, **changes: Any) -> Application:
    entry = sign_entry(identity(node), RUN_ID, run_key(node).public)
    return replace(Application(token, SECRETS[token % len(SECRETS)], entry, SPEC_DIGEST), **changes)


def frame(document: Application) -> bytes:
    return application_frame(document, run_key(BOOTSTRAP).public, ENTROPY.seed())


def answer_to(node: int, replies: Replies) -> Answer | None:
    mine = [data for origin, data in replies.frames if origin == node]
    if not mine:
        return None
    (data,) = mine
    return read_answer(decode_frame(data).body, run_key(node), RUN_ID, identity(BOOTSTRAP).public)


def decode_sender(data: bytes) -> int:
    return int.from_bytes(data[2:6], "big", signed=True)


def kind_of(answer: Answer | None) -> str:
    assert answer is not None
    return answer.kind


def test_an_offer_answers_every_hello() -> None:
    counter = Counter()
    for origin in ("a", "b", "a"):
        ((where, data),) = counter.give(HELLO, origin).frames
        assert where == origin
        assert read_offer(decode_frame(data).body, KEY, identity(BOOTSTRAP).public) == OFFER
    assert counter.kinds() == ["opened"]


def test_the_last_expected_node_closes_the_roster_and_everybody_gets_a_seat() -> None:
    counter = Counter()
    first = counter.apply(2)
    assert first == Answer(WAITING, "1 of 3 nodes have enrolled")
    assert counter.enrolment.enrolled == 1
    assert kind_of(counter.apply(0)) == WAITING
    counter.apply(1)
    answers = [answer_to(node, counter.replies) for node in range(3)]
    for user, answer in enumerate(answers):
        assert answer is not None
        assert (answer.kind, answer.user) == (SEAT, user)
        mine = sign_entry(identity(user), RUN_ID, run_key(user).public)
        roster = check_seat(answer, identity(BOOTSTRAP).public, mine, SPEC_DIGEST, RUN_ID)
        assert (roster.n, dict(roster.facts), roster.protocol) == (3, {"n": 3}, "toy")
    assert counter.kinds() == ["opened", "enrolled", "enrolled", "enrolled", "roster"]
    assert counter.replies.wake_at_s is None


def test_users_are_numbered_in_the_order_of_their_tokens() -> None:
    """Node 7 has token 4, node 8 token 0, node 9 token 2; they come in another order."""
    counter = Counter()
    for node, token in ((9, 2), (7, 4), (8, 0)):
        counter.apply(node, token)
    users = {node: answer_to(node, counter.replies) for node in (8, 9, 7)}
    assert [answer.user for answer in users.values() if answer is not None] == [0, 1, 2]


def test_an_enrolment_is_recorded_in_the_reply_that_answers_it() -> None:
    counter = Counter()
    assert counter.replies.writes[-1][0] in (VIEW, PRIVATE)
    counter.apply(0)
    assert [name for name, _ in counter.replies.writes] == [VIEW]
    assert len(counter.replies.frames) == 1


def test_repeated_applications_get_the_same_answer_and_no_new_record() -> None:
    counter = Counter(2)
    assert counter.apply(0) == counter.apply(0)
    counter.apply(1)
    seats = [counter.apply(0) for _ in range(3)]
    assert kind_of(seats[0]) == SEAT
    assert seats[0] == seats[1] == seats[2]
    assert counter.kinds() == ["opened", "enrolled", "enrolled", "roster"]


def test_an_answer_goes_where_the_last_request_came_from() -> None:
    counter = Counter(2)
    counter.give(frame(application(0, 0)), "old place")
    counter.give(frame(application(0, 0)), "new place")
    replies = counter.give(frame(application(1, 1)), "elsewhere")
    assert [origin for origin, _ in replies.frames] == ["new place", "elsewhere"]


def test_whoever_asks_again_while_seats_go_out_gets_one_seat_where_it_asked_last() -> None:
    counter = Counter(3)
    for node in (0, 1):
        counter.give(frame(application(node, node)), f"place {node}")
    seats = iter(counter.enrolment.frame("place 2", frame(application(2, 2)), counter.now_s).frames)
    assert next(seats)[0] == "place 0"
    asked = counter.enrolment.frame("new place", frame(application(1, 1)), counter.now_s)
    assert list(asked.frames) == []
    assert [origin for origin, _ in seats] == ["new place", "place 2"]
    again = counter.enrolment.frame("newer place", frame(application(1, 1)), counter.now_s)
    assert [origin for origin, _ in again.frames] == ["newer place"]


# Refusals


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "wrong secret": ({"secret": bytes(16)}, "not valid"),
    "empty secret": ({"secret": b""}, "not valid"),
    "secret of another token": ({"secret": SECRETS[1]}, "not valid"),
    "token below zero": ({"token": -1}, "not valid"),
    "token beyond the last": ({"token": 5}, "not valid"),
    "another spec": ({"spec_digest": bytes(32)}, "another spec"),
    "an entry for another run": ({"entry": sign_entry(identity(0), bytes(16), run_key(0).public)}, "not signed"),
    "an entry signed by another": (
        {
            "entry": RosterEntry(
                identity(0).public, run_key(0).public, sign_entry(identity(1), RUN_ID, run_key(0).public).signature
            )
        },
        "not signed",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_refused_with_a_reason_and_not_recorded(name: str) -> None:
    changes, words = BAD[name]
    counter = Counter()
    answer = counter.apply(0, 0, **changes)
    assert answer is not None
    assert answer.kind == REFUSED
    assert words in answer.reason
    assert counter.kinds() == ["opened"]
    assert list(counter.enrolment.faults) == ["refused_enrolment"]
    assert kind_of(counter.apply(0)) == WAITING


def test_a_used_token_serves_nobody_else() -> None:
    counter = Counter()
    counter.apply(0)
    answer = counter.apply(3, 0)
    assert answer is not None
    assert (answer.kind, "another identity" in answer.reason) == (REFUSED, True)


def test_an_identity_has_one_seat() -> None:
    counter = Counter()
    counter.apply(0)
    answer = counter.apply(0, 1)
    assert answer is not None
    assert (answer.kind, "is enrolled already" in answer.reason) == (REFUSED, True)


def test_an_identity_that_lost_its_run_key_is_told_so() -> None:
    counter = Counter()
    counter.apply(0)
    entry = sign_entry(identity(0), RUN_ID, run_key(9).public)
    replies = counter.give(frame(application(0, 0, entry=entry)), 9)
    answer = answer_to(9, replies)
    assert answer is not None
    assert (answer.kind, "another run key" in answer.reason) == (REFUSED, True)


def test_who_comes_late_is_told_so() -> None:
    counter = Counter(2)
    counter.apply(0)
    counter.apply(1)
    answer = counter.apply(2)
    assert answer is not None
    assert (answer.kind, "started without" in answer.reason) == (REFUSED, True)
    assert kind_of(counter.apply(0)) == SEAT


@pytest.mark.parametrize("box", [bytes(32), bytes([1]) + bytes(31)])
@pytest.mark.parametrize("secret", [SECRETS[0], bytes(16)])
def test_a_key_that_nothing_can_be_sealed_to_is_a_fault_and_no_exception(box: bytes, secret: bytes) -> None:
    counter = Counter()
    entry = sign_entry(identity(0), RUN_ID, box)
    assert counter.apply(0, 0, entry=entry, secret=secret) is None
    assert counter.kinds() == ["opened"]
    assert counter.enrolment.faults


def test_documents_that_are_damaged_anywhere_change_nothing() -> None:
    counter = Counter()
    good = frame(application(0, 0))
    damaged = [data for data in flips(good) if decode_sender(data) == 0]  # the outer sender protects nothing
    assert len(damaged) == 8 * (len(good) - 4)
    for data in [*damaged, *cuts(good), good + b"\0", *cuts(HELLO)]:
        assert counter.give(data).frames == ()
        assert counter.replies.writes == ()
    assert len(counter.enrolment.faults) == FAULTS_KEPT
    assert kind_of(counter.apply(0)) == WAITING


def test_who_holds_no_join_token_is_refused_and_sees_no_offer() -> None:
    counter = Counter()
    public = identity(BOOTSTRAP).public
    for token, secret, bootstrap in ((2, bytes(16), public), (2, SECRETS[3], public), (99, SECRETS[2], public),
                                     (-1, SECRETS[2], public), (2, SECRETS[2], identity(0).public)):  # fmt: skip
        ((_, data),) = counter.give(hello_frame(token, secret, bootstrap, KEY.public)).frames
        offer = read_offer(decode_frame(data).body, KEY, public)
        assert offer == Offer(bytes(16), "", b"", INVALID_TOKEN)
    assert counter.enrolment.fault_counts == {REFUSED_ENROLMENT: 5}


def test_a_greeting_that_is_damaged_shows_the_offer_to_nobody() -> None:
    counter = Counter()
    for damaged in flips(HELLO):
        if damaged[2:6] == HELLO[2:6]:  # the outer sender protects nothing
            for _, data in counter.give(damaged).frames:
                assert data == version_frame() or unreadable(data)


def unreadable(data: bytes) -> bool:
    """Whether it is sealed to a key that nobody has."""
    try:
        return read_offer(decode_frame(data).body, KEY, identity(BOOTSTRAP).public).refusal == INVALID_TOKEN
    except NotSealedToUs:
        return True


def test_a_node_of_another_version_is_told_so() -> None:
    counter = Counter()
    ((_, data),) = counter.give(encode_frame(Kind.HELLO, 0, pad(b"", FRAME_HEADER_BYTES))).frames
    assert data == version_frame()


def test_no_identity_or_run_key_enrols_twice_or_belongs_to_a_role() -> None:
    counter = Counter(5)
    assert kind_of(counter.apply(0)) == WAITING
    for node, key in ((1, 0), (1, BOOTSTRAP), (1, CURATOR), (BOOTSTRAP, 1), (CURATOR, 1)):
        entry = sign_entry(identity(node), RUN_ID, run_key(key).public)
        replies = counter.give(frame(application(node, 1, entry=entry)), node)
        ((_, data),) = replies.frames
        answer = read_answer(decode_frame(data).body, run_key(key), RUN_ID, identity(BOOTSTRAP).public)
        assert answer.kind == REFUSED
    assert counter.enrolment.enrolled == 1
    assert kind_of(counter.apply(0)) == WAITING


@pytest.mark.parametrize("kind", [Kind.BOXED, Kind.OFFER, Kind.ROSTER, Kind.HELLO])
def test_frames_of_another_kind_are_no_request(kind: Kind) -> None:
    counter = Counter()
    assert counter.give(encode_frame(kind, 0, decode_frame(frame(application(0, 0))).body)).frames == ()
    assert len(counter.enrolment.faults) == 1


# Quorum


def test_with_enough_nodes_the_roster_closes_after_the_time_to_enrol() -> None:
    counter = Counter(5, 2)
    assert counter.replies.wake_at_s == 160.0
    counter.apply(3)
    counter.apply(1)
    counter.now_s = 159.9
    assert counter.store(counter.enrolment.wake(counter.now_s)).wake_at_s == 160.0
    assert counter.enrolment.roster is None
    replies = counter.store(counter.enrolment.wake(160.0))
    assert replies.wake_at_s is None
    answers = [answer_to(node, replies) for node in (1, 3)]
    assert [(answer.kind, answer.user) for answer in answers if answer is not None] == [(SEAT, 0), (SEAT, 1)]
    assert counter.enrolment.roster is not None
    assert (counter.enrolment.roster.n, dict(counter.enrolment.roster.facts)) == (2, {"n": 2})


def test_with_too_few_the_desk_waits_without_waking_and_closes_when_there_are_enough() -> None:
    counter = Counter(5, 2)
    counter.apply(3)
    counter.now_s = 170.0
    assert counter.store(counter.enrolment.wake(170.0)).wake_at_s is None
    assert counter.enrolment.roster is None
    counter.apply(1)
    assert counter.enrolment.roster is not None
    assert counter.enrolment.roster.n == 2


def test_a_graph_that_does_not_exist_for_so_few_is_said_so() -> None:
    counter = Counter(3, 1)

    def impossible(_n: int, _rows: Rows | None) -> Any:
        raise RunFailed("no graph")

    counter.enrolment._prepare = impossible
    counter.apply(0)
    with pytest.raises(RunFailed):
        counter.enrolment.wake(500.0)


# Restart


def enrolled() -> Counter:
    counter = Counter(3)
    for node, token in ((7, 4), (8, 0), (9, 2)):
        counter.apply(node, token)
    return counter


@pytest.mark.parametrize("kept", range(5))
def test_a_restart_at_any_record_gives_the_same_roster(kept: int) -> None:
    whole = enrolled()
    assert whole.enrolment.roster is not None
    counter = Counter(3)
    counter.files[VIEW] = whole.files[VIEW][: whole.lengths[kept]]
    counter.lengths = whole.lengths[: kept + 1]
    counter.open()
    for node, token in ((9, 2), (8, 0), (7, 4), (9, 2), (8, 0)):
        answer = counter.apply(node, token)
    roster = counter.enrolment.roster
    assert roster is not None
    assert roster.to_bytes() == whole.enrolment.roster.to_bytes()
    assert answer is not None
    assert (answer.kind, answer.user) == (SEAT, 0)
    assert counter.kinds() == ["opened", "enrolled", "enrolled", "enrolled", "roster"]


def test_a_stop_between_the_last_enrolment_and_the_roster_needs_nobody_to_go_on() -> None:
    whole = enrolled()
    counter = Counter(3)
    chain, kept = Chain(), records.read(whole.files[VIEW]).records[:-1]
    counter.files[VIEW] = LEDGER_MAGIC + b"".join(chain.append(one.kind, tuple(one.body)) for one in kept)
    replies = counter.open()
    assert counter.enrolment.roster is not None
    assert counter.kinds()[-1] == "roster"
    assert [name for name, _ in replies.writes] == [PRIVATE, VIEW] or [name for name, _ in replies.writes] == [VIEW]


def test_no_secret_is_in_any_ledger() -> None:
    counter = enrolled()
    stored = counter.files[VIEW] + counter.files[PRIVATE]
    assert identity(7).public in stored
    for secret in (*SECRETS, run_key(BOOTSTRAP).secret, identity(BOOTSTRAP).to_bytes(), run_key(7).secret):
        assert secret not in stored


def test_the_roster_in_the_ledger_is_the_one_that_was_given_out() -> None:
    counter = enrolled()
    last = records.read(counter.files[VIEW]).records[-1]
    answer = answer_to(7, counter.replies) or counter.apply(7, 4)
    assert answer is not None
    assert Roster.from_bytes(last.body.roster).to_bytes() == answer.roster


def stating(node: int, rows: int | None) -> RosterEntry:
    return sign_entry(identity(node), RUN_ID, run_key(node).public, rows)


def test_each_node_states_how_many_rows_it_has_and_the_roster_says_so_of_all() -> None:
    counter = Counter(rows_max=5000)
    for node, rows in enumerate((3, 2000, 1)):
        counter.apply(node, entry=stating(node, rows))
    roster = counter.enrolment.roster
    assert roster is not None
    assert roster.entries.rows == (3, 2000, 1)
    assert dict(roster.facts)[ROWS] == "3,2000,1"
    assert [roster.entry(user).rows for user in range(3)] == [3, 2000, 1]
    again = Counter(rows_max=5000)
    again.files = counter.files  # bootstrap starts again
    again.open()
    assert again.enrolment.roster is not None
    assert again.enrolment.roster.to_bytes() == roster.to_bytes()


def test_enrolments_before_the_roster_keep_what_was_stated_through_a_restart() -> None:
    counter = Counter(rows_max=5000)
    counter.apply(0, entry=stating(0, 7))
    counter.open()
    for node, rows in ((1, 8), (2, 9)):
        counter.apply(node, entry=stating(node, rows))
    assert counter.enrolment.roster is not None
    assert counter.enrolment.roster.entries.rows == (7, 8, 9)


@pytest.mark.parametrize("rows", [None, 0, 5001, ROWS_MAX + 1, 2**63])
def test_a_number_of_rows_that_no_user_can_have_is_refused(rows: int | None) -> None:
    answer = Counter(rows_max=5000).apply(0, entry=stating(0, rows))
    assert answer is not None
    assert answer.kind == REFUSED
    assert "rows" in answer.reason


def test_a_run_that_does_not_ask_takes_no_number_of_rows() -> None:
    answer = Counter().apply(0, entry=stating(0, 5))
    assert answer is not None
    assert answer.kind == REFUSED


def test_nobody_states_another_number_of_rows_later() -> None:
    counter = Counter(rows_max=5000)
    counter.apply(0, entry=stating(0, 5))
    answer = counter.apply(0, entry=stating(0, 6))
    assert answer is not None
    assert (answer.kind, "rows" in answer.reason) == (REFUSED, True)


def test_a_number_of_rows_that_its_user_has_not_signed_is_refused() -> None:
    answer = Counter(rows_max=5000).apply(0, entry=replace(stating(0, 5), rows=6))
    assert answer is not None
    assert (answer.kind, "signed" in answer.reason) == (REFUSED, True)
