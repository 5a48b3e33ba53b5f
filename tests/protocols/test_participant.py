from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.step import NOTHING, Custody, Fault, Message, Send, Step
from p2pdp.protocols.participant import Participant
from p2pdp.protocols.shuffle.plan import MESSAGES, RELAY
from tests.support.walk_world import SeededDraws

ME = 3
DRAWS = SeededDraws(0)


def token(step: int, item: int = 0) -> Message:
    return Message(messages.TOKEN, (item, step), 5)


def send(to: Peer, step: int, item: int = 0) -> Send:
    return Send(to, token(step, item), Custody(item, step))


class Inner:
    """A machine that returns what the test put down for it, and notes what it was told."""

    finished = False

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.next = NOTHING

    def _answer(self, *told: Any) -> Step:
        self.told.append(told)
        answer, self.next = self.next, NOTHING
        return answer

    def start(self, now_s: float, draws: Draws) -> Step:
        return self._answer("start", now_s)

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        return self._answer("receive", sender, message.type, now_s)

    def wake(self, now_s: float, draws: Draws) -> Step:
        return self._answer("wake", now_s)

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return self._answer("excluded", peer, now_s)


def pair() -> tuple[Participant, Inner]:
    inner = Inner()
    return Participant(ME, inner, MESSAGES), inner


def told(participant: Participant, sender: Peer, message: Message) -> Step:
    return participant.receive(sender, message, 1.5, DRAWS)


def pass_on(participant: Participant, inner: Inner, received: Message, sender: Peer, sent: Send) -> None:
    inner.next = Step(sends=(sent,))
    assert told(participant, sender, received).sends == (sent,)


def out(peer: Peer) -> Message:
    return Message(messages.OUT, (peer, b"signature"))


def answer(peer: Peer, receipts: list[list[int]], claims: list[list[int]]) -> Send:
    """`receipts` are items that have one number all the time, and their steps."""
    told = [[item, item, at] for item, at in receipts]
    return Send(BOOTSTRAP, Message(messages.SEEN, (peer, told, claims)))


def test_a_user_says_that_it_is_ready_and_waits() -> None:
    participant, inner = pair()
    assert participant.start(0.0, DRAWS) == Step(sends=(Send(BOOTSTRAP, Message(messages.READY)),))
    assert inner.told == []
    assert not participant.finished


def test_go_starts_the_machine() -> None:
    participant, inner = pair()
    inner.next = Step(sends=(send(4, 1),), wake_at_s=9.0)
    assert told(participant, BOOTSTRAP, Message(messages.GO)) == Step(sends=(send(4, 1),), wake_at_s=9.0)
    assert inner.told == [("start", 1.5)]


def test_the_machines_step_is_handed_on_whole() -> None:
    participant, inner = pair()
    whole = Step((send(4, 7),), 8.0, faults=(Fault("late", 2),))
    inner.next = whole
    assert told(participant, 2, token(6)) == whole
    inner.next = whole
    assert participant.wake(2.0, DRAWS) == whole
    assert inner.told == [("receive", 2, "token", 1.5), ("wake", 2.0)]


@pytest.mark.parametrize("kind", [messages.BEGIN, messages.LOST])
def test_orders_about_items_are_the_machines_business(kind: str) -> None:
    participant, inner = pair()
    assert told(participant, BOOTSTRAP, Message(kind, (0, 2))) == NOTHING
    assert inner.told == [("receive", BOOTSTRAP, kind, 1.5)]


def test_a_probe_is_answered() -> None:
    participant, inner = pair()
    expected = Step(sends=(Send(BOOTSTRAP, Message(messages.ALIVE)),))
    assert told(participant, BOOTSTRAP, Message(messages.PROBE)) == expected
    assert inner.told == []


@pytest.mark.parametrize(
    "kind", ["", "hello", messages.TOKEN, messages.SEEN, messages.RESULT, messages.READY, messages.SPARED]
)
def test_other_messages_of_bootstrap_are_faults(kind: str) -> None:
    participant, inner = pair()
    step = told(participant, BOOTSTRAP, Message(kind, (0, 1)))
    assert step == Step(faults=(Fault("unexpected_message", BOOTSTRAP),))
    assert inner.told == []


@pytest.mark.parametrize("kind", [messages.GO, messages.OUT, messages.PROBE, messages.RESULT, messages.SILENT])
def test_nobody_can_speak_for_bootstrap_or_curator(kind: str) -> None:
    participant, inner = pair()
    inner.next = Step(faults=(Fault("unexpected_message", 4),))
    step = told(participant, 4, Message(kind, (5, b"signature")))
    complaint = Send(BOOTSTRAP, Message("complaint", (4, "unexpected_message")))
    assert step == Step((complaint,), faults=(Fault("unexpected_message", 4),))
    assert told(participant, 4, Message(kind, (5, b"signature"))).sends == (), "bootstrap is told once"
    assert inner.told == [("receive", 4, kind, 1.5)] * 2
    assert not participant.finished
    inner.next = NOTHING
    assert told(participant, 5, token(2)) == NOTHING  # not excluded by what another user says
    assert inner.told[-1] == ("receive", 5, "token", 1.5)


def test_bootstrap_is_told_once_of_each_fault_of_each_peer() -> None:
    participant, _ = pair()
    unproven, malformed = (4, "unproven_rollback"), (4, "malformed")
    for complaint, sends in ((unproven, 1), (malformed, 1), (malformed, 0), ((5, "malformed"), 1), ((-1, "x"), 0)):
        message = Message("complaint", complaint)
        assert told(participant, ME, message).sends == (Send(BOOTSTRAP, message),) * sends


def test_the_result_ends_a_users_part() -> None:
    participant, inner = pair()
    result = Message(messages.RESULT, (), 17)
    assert told(participant, CURATOR, result) == NOTHING
    assert participant.finished
    assert participant.result is result
    assert inner.told == []


# Exclusion (guide/architecture.md, section 4)


def test_an_exclusion_is_told_to_the_machine_and_answered() -> None:
    participant, inner = pair()
    inner.next = Step(sends=(send(5, 7),), wake_at_s=4.0)
    step = told(participant, BOOTSTRAP, out(4))
    assert inner.told == [("excluded", 4, 1.5)]
    assert step == Step(sends=(send(5, 7), answer(4, [], [])), wake_at_s=4.0)


def test_receipts_are_the_highest_step_of_each_item_received_from_the_one_who_is_out() -> None:
    participant, _ = pair()
    for sender, step, item in ((4, 3, 0), (4, 9, 0), (4, 8, 0), (4, 2, 5), (2, 30, 0), (4, 1, 1)):
        assert told(participant, sender, token(step, item)) == NOTHING
    assert participant.excluded(4, 2.0, DRAWS).sends == (answer(4, [[0, 9], [1, 1], [5, 2]], []),)


@settings(max_examples=20)
@given(st.data())
def test_hops_are_known_as_if_they_had_been_messages(data: st.DataObject) -> None:
    inner = Inner()
    participant, hops = Participant(ME, inner, MESSAGES), []
    for step in range(1, 60):
        item, sender, to = step % 3, 1 + step % 2, 5 + step % 2
        if data.draw(st.booleans()):
            participant.hopped(hops)
            hops.clear()
            pass_on(participant, inner, token(step, item), sender, send(to, step + 1, item))
        else:
            hops.append((sender, item, step, to, step + 1))
    participant.hopped(hops)
    expected = answer(1, [[0, 54], [1, 58], [2, 56]], [])
    assert told(participant, BOOTSTRAP, out(1)).sends == (expected,)
    claims = [[item, step + 1] for item, step in ((0, 57), (1, 58), (2, 59)) if step % 2]
    assert told(participant, BOOTSTRAP, out(6)).sends == (answer(6, [], claims),)


def test_what_a_hop_leaves_here_is_claimed_by_nobody() -> None:
    participant = Participant(ME, Inner(), MESSAGES)
    participant.hopped([(4, 0, 3, 6, 5), (4, 1, 3, ME, 4)])
    assert told(participant, BOOTSTRAP, out(6)).sends == (answer(6, [], [[0, 5]]),)


def test_of_reports_it_tells_what_they_were_before_and_claims_each_hop_until_it_is_taken_back() -> None:
    participant, inner = pair()
    relay = Message(RELAY, (70, 71, 3), b"sealed")
    onward = Send(5, Message(RELAY, (71, 72, 4), b"sealed"), Custody(72, 4))
    pass_on(participant, inner, relay, 4, onward)
    expected = Send(BOOTSTRAP, Message(messages.SEEN, (4, [[70, 71, 3]], [])))
    assert told(participant, BOOTSTRAP, out(4)).sends == (expected,)
    assert told(participant, BOOTSTRAP, out(5)).sends == (answer(5, [], [[72, 4]]),)
    told(participant, BOOTSTRAP, Message(messages.LOST, (72, 4)))
    assert told(participant, BOOTSTRAP, out(6)).sends == (answer(6, [], []),)


def test_claims_are_the_items_last_passed_to_anybody_who_is_out() -> None:
    participant, inner = pair()
    pass_on(participant, inner, token(3), 1, send(4, 4))
    pass_on(participant, inner, token(5, 1), 1, send(5, 6, 1))
    pass_on(participant, inner, token(7, 2), 1, send(2, 8, 2))
    assert told(participant, BOOTSTRAP, out(4)).sends == (answer(4, [], [[0, 4]]),)
    assert told(participant, BOOTSTRAP, out(5)).sends == (answer(5, [], [[0, 4], [1, 6]]),)


def test_an_item_that_came_back_and_went_elsewhere_is_not_claimed() -> None:
    participant, inner = pair()
    pass_on(participant, inner, token(3), 1, send(4, 4))
    pass_on(participant, inner, token(9), 2, send(5, 10))
    assert told(participant, BOOTSTRAP, out(4)).sends == (answer(4, [], []),)


def test_an_item_sent_elsewhere_is_claimed_from_there() -> None:
    participant, inner = pair()
    pass_on(participant, inner, token(3), 1, send(4, 4))
    assert told(participant, BOOTSTRAP, out(4)).sends == (answer(4, [], [[0, 4]]),)
    pass_on(participant, inner, Message(messages.LOST, (0, 4)), BOOTSTRAP, send(5, 4))
    assert told(participant, BOOTSTRAP, out(5)).sends == (answer(5, [], [[0, 4]]),)
    pass_on(participant, inner, Message(messages.LOST, (0, 4)), BOOTSTRAP, send(6, 4))
    assert told(participant, BOOTSTRAP, out(7)).sends == (answer(7, [], []),)


def test_what_stays_here_and_what_is_in_nobodys_custody_is_never_claimed() -> None:
    participant, inner = pair()
    inner.next = Step(sends=(Send(ME, token(4)), Send(4, Message("hello"))))
    assert told(participant, 1, token(3)).sends
    assert told(participant, ME, token(4)) == NOTHING
    assert told(participant, BOOTSTRAP, out(4)).sends == (answer(4, [], []),)


@pytest.mark.parametrize(
    "message", [token(8), Message(messages.TOTAL, (0, 9), 5), Message("hello"), Message(messages.TOKEN)], ids=repr
)
def test_whoever_is_out_is_not_listened_to(message: Message) -> None:
    participant, inner = pair()
    assert told(participant, BOOTSTRAP, out(4)).sends
    inner.told.clear()
    assert told(participant, 4, message) == Step(faults=(Fault("excluded_peer", 4),))
    assert inner.told == []
    assert told(participant, BOOTSTRAP, out(4)).sends == (answer(4, [], []),)  # the refused token is no receipt


def test_an_order_that_comes_twice_is_answered_alike() -> None:
    participant, inner = pair()
    pass_on(participant, inner, token(3), 4, send(4, 4))
    first, second = (told(participant, BOOTSTRAP, out(4)) for _ in range(2))
    assert first == second == Step(sends=(answer(4, [[0, 3]], [[0, 4]]),))


def test_a_user_who_is_out_itself_closes_and_says_nothing() -> None:
    participant, inner = pair()
    assert told(participant, BOOTSTRAP, out(ME)) == NOTHING
    assert participant.finished
    assert participant.excluded_myself
    assert participant.result is None
    assert inner.told == []


def test_malformed_items_leave_no_receipt() -> None:
    participant, _ = pair()
    for fields in ((), (0,), ("0", 5), (0, 5, 6)):
        assert told(participant, 4, Message(messages.TOKEN, fields, 5)) == NOTHING
    assert told(participant, BOOTSTRAP, out(4)).sends == (answer(4, [], []),)


def test_an_idle_moment_is_the_machines_if_it_has_a_use_for_it() -> None:
    class Prepared(Inner):
        def prepare(self) -> None:
            self.told.append(("prepare",))

    participant, inner = pair()
    participant.prepare()
    assert inner.told == []
    prepared = Prepared()
    Participant(ME, prepared, MESSAGES).prepare()
    assert prepared.told == [("prepare",)]


def test_the_text_of_a_participant_shows_no_value() -> None:
    participant, _ = pair()
    assert told(participant, CURATOR, Message(messages.RESULT, (), 271828)) == NOTHING
    assert "271828" not in repr(participant)
