"""Bootstrap's machine, driven directly: the barrier, suspicion, exclusion, and the end."""

from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core import messages
from p2pdp.core.endings import COMPLAINT, UNPROVEN
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import BLOCKED, EXCLUDED
from p2pdp.core.step import NOTHING, Fault, Message, Output, Send, Step
from p2pdp.protocols.contract import Start
from p2pdp.protocols.decision import COLLECTED, SURVIVORS, Deciding
from p2pdp.protocols.gossip.plan import ACTIVATIONS
from p2pdp.services.bootstrap import PROGRESS, Bootstrap, Opening
from tests.support.service_steps import DRAWS, PATIENCE_S, READY_S, sent


def made(n: int = 4, *, needed: int = 1, items: int = 1, opening: Opening = lambda _: ()) -> Bootstrap:
    """On a ring of neighbours; all items start at user 0."""
    bootstrap = Bootstrap(
        n,
        lambda user: sorted({(user - 1) % n, (user + 1) % n} - {user}),
        tuple(Start(item, 0, 1) for item in range(items)),
        needed=needed,
        patience_s=PATIENCE_S,
        ready_timeout_s=READY_S,
        sign_exclusion=lambda peer: b"signed %d" % peer,
        opening=opening,
    )
    assert bootstrap.start(0.0, DRAWS) == Step(wake_at_s=READY_S)
    return bootstrap


def going(n: int = 4, *, needed: int = 1, items: int = 1) -> Bootstrap:
    bootstrap = made(n, needed=needed, items=items)
    for peer in (CURATOR, *range(n)):
        hears(bootstrap, peer, messages.READY)
    return bootstrap


def hears(bootstrap: Bootstrap, sender: Peer, kind: str, *fields: Any, now_s: float = 1.0) -> Step:
    return bootstrap.receive(sender, Message(kind, fields), now_s, DRAWS)


def progress(ready: int, *, going: bool) -> Step:
    """Users become ready in the order of their numbers; there are four."""
    return Step(outputs=(Output(PROGRESS, (ready, going, tuple(range(ready, 4))), recorded=False),))


def resolved(step: Step) -> list[tuple[Any, ...]]:
    return [(send.to, *send.message.fields) for send in step.sends if send.message.type == messages.RESOLVED]


def put_out(bootstrap: Bootstrap, peer: Peer, now_s: float = 1.0) -> Step:
    hears(bootstrap, BOOTSTRAP, messages.SILENT, peer, now_s=now_s)
    return bootstrap.wake(now_s + PATIENCE_S, DRAWS)


def test_nobody_goes_before_everybody_is_ready() -> None:
    bootstrap = made()
    for peer, ready in ((0, 1), (1, 2), (2, 3), (2, 3), (CURATOR, 3)):
        assert hears(bootstrap, peer, messages.READY) == progress(ready, going=False)
    step = hears(bootstrap, 3, messages.READY)
    assert sent(step) == [(peer, messages.GO) for peer in (CURATOR, 0, 1, 2, 3)] + [(0, messages.BEGIN, 0, 0)]
    assert step.outputs == progress(4, going=True).outputs
    assert hears(bootstrap, 3, messages.READY) == progress(4, going=True)


def test_what_a_protocol_has_to_tell_at_the_start_follows_the_go() -> None:
    def opening(draws: Any) -> list[Send]:
        return [Send(user, Message(ACTIVATIONS, (0, 1, [[draws.choice(3), user]]))) for user in range(4)]

    bootstrap = made(opening=opening)
    for peer in (CURATOR, 0, 1, 2):
        assert sent(hears(bootstrap, peer, messages.READY)) == []
    told = sent(hears(bootstrap, 3, messages.READY))
    assert [kind for to, kind, *_ in told if to == 2] == [messages.GO, ACTIVATIONS]
    assert (3, ACTIVATIONS, 0, 1, [[2, 3]]) in told


def test_who_is_not_ready_in_time_is_put_out_and_its_items_start_elsewhere() -> None:
    bootstrap = made(items=2)
    for peer in (CURATOR, 1, 2, 3):
        hears(bootstrap, peer, messages.READY)
    assert bootstrap.wake(READY_S - 0.1, DRAWS).outputs == ()
    step = bootstrap.wake(READY_S, DRAWS)
    assert [output.fields for output in step.outputs if output.recorded] == [(0, b"signed 0")]
    assert sent(step)[-2:] == [(3, messages.BEGIN, 0, 0), (3, messages.BEGIN, 1, 0)]


def test_on_a_ring_and_for_the_curator_the_run_is_blocked_until_they_are_ready() -> None:
    bootstrap = made(needed=4)
    for peer in (1, 2, 3):
        hears(bootstrap, peer, messages.READY)
    step = bootstrap.wake(READY_S, DRAWS)
    assert [(output.type, output.fields) for output in step.outputs if output.recorded] == [
        (BLOCKED, (CURATOR,)),
        (BLOCKED, (0,)),
    ]
    assert step.sends == ()
    assert bootstrap.out == []
    hears(bootstrap, 0, messages.READY)
    assert sent(hears(bootstrap, CURATOR, messages.READY))[-1] == (0, messages.BEGIN, 0, 0)


def test_the_rest_go_at_once_without_whoever_was_put_out_before_it_was_ready() -> None:
    bootstrap = made()
    for peer in (CURATOR, 0, 1, 2):
        assert messages.GO not in sent(hears(bootstrap, peer, messages.READY))
    step = hears(bootstrap, BOOTSTRAP, COMPLAINT, 3, messages.MALFORMED)
    assert bootstrap.out == [3]
    assert [send.to for send in step.sends if send.message.type == messages.GO] == [CURATOR, 0, 1, 2]
    assert progress(3, going=True).outputs[0].fields[:2] in [output.fields[:2] for output in step.outputs]


def test_a_silent_peer_that_answers_is_let_be_and_nobody_hears_of_it() -> None:
    bootstrap = going()
    step = hears(bootstrap, BOOTSTRAP, messages.SILENT, 1)
    assert sent(step) == [(1, messages.PROBE)]
    assert step.wake_at_s == 1.0 + PATIENCE_S
    assert hears(bootstrap, BOOTSTRAP, messages.SILENT, 1) == NOTHING
    assert hears(bootstrap, 1, messages.ALIVE) == NOTHING
    assert bootstrap.wake(99.0, DRAWS) == NOTHING
    assert hears(bootstrap, 1, messages.ALIVE) == NOTHING


def test_all_who_take_part_are_watched_from_the_go_to_the_result() -> None:
    bootstrap = made()
    assert bootstrap.watched == set()
    bootstrap = going()
    assert bootstrap.watched == {CURATOR, 0, 1, 2, 3}
    put_out(bootstrap, 1)
    assert bootstrap.watched == {CURATOR, 0, 2, 3}
    hears(bootstrap, CURATOR, messages.DONE)
    assert bootstrap.watched == set()


def test_a_late_or_early_wake_is_harmless() -> None:
    bootstrap = going()
    assert bootstrap.wake(5.0, DRAWS) == NOTHING
    hears(bootstrap, BOOTSTRAP, messages.SILENT, 1)
    assert bootstrap.wake(5.0, DRAWS) == Step(wake_at_s=1.0 + PATIENCE_S)
    assert bootstrap.out == []


def test_out_is_signed_published_and_told_to_neighbours_curator_and_itself() -> None:
    bootstrap = going()
    step = put_out(bootstrap, 1)
    assert [(output.type, output.fields) for output in step.outputs if output.recorded] == [
        (EXCLUDED, (1, b"signed 1"))
    ]
    assert sent(step) == [(peer, messages.OUT, 1, b"signed 1") for peer in (CURATOR, 0, 2, 1)]
    assert hears(bootstrap, 1, messages.SEEN, 0, [], []) == NOTHING
    assert hears(bootstrap, BOOTSTRAP, messages.SILENT, 1) == NOTHING


def test_nothing_is_lost_before_all_have_answered() -> None:
    bootstrap = going()
    put_out(bootstrap, 1)
    assert sent(hears(bootstrap, 0, messages.SEEN, 1, [], [[0, 2]])) == []
    assert sent(hears(bootstrap, CURATOR, messages.SEEN, 1, [], [])) == []
    step = hears(bootstrap, 2, messages.SEEN, 1, [], [])
    assert sent(step) == [(0, messages.LOST, 0, 2)]


def test_of_what_went_on_nobody_is_told() -> None:
    bootstrap = going()
    put_out(bootstrap, 1)
    hears(bootstrap, 0, messages.SEEN, 1, [], [[0, 2]])
    hears(bootstrap, CURATOR, messages.SEEN, 1, [], [])
    assert sent(hears(bootstrap, 2, messages.SEEN, 1, [[0, 0, 3]], [])) == []


def test_what_a_neighbour_owes_that_is_put_out_too_is_not_waited_for() -> None:
    bootstrap = going()
    put_out(bootstrap, 1)
    hears(bootstrap, 0, messages.SEEN, 1, [], [[0, 2]])
    hears(bootstrap, CURATOR, messages.SEEN, 1, [], [])
    step = put_out(bootstrap, 2, now_s=11.0)
    assert bootstrap.out == [1, 2]
    assert sent(step)[:2] == [(CURATOR, messages.OUT, 2, b"signed 2"), (3, messages.OUT, 2, b"signed 2")]
    hears(bootstrap, CURATOR, messages.SEEN, 2, [], [])
    assert sent(hears(bootstrap, 3, messages.SEEN, 2, [], [])) == [(0, messages.LOST, 0, 2)]


def test_the_curator_hears_once_of_each_exclusion_what_comes_again_and_from_whom() -> None:
    bootstrap = going()
    assert resolved(put_out(bootstrap, 1)) == []
    assert resolved(hears(bootstrap, 0, messages.SEEN, 1, [], [[0, 2]])) == []
    assert resolved(hears(bootstrap, CURATOR, messages.SEEN, 1, [], [])) == []
    assert resolved(hears(bootstrap, 2, messages.SEEN, 1, [], [[7, 4]])) == [(CURATOR, [1], [[0, 1], [2, 1]])]
    put_out(bootstrap, 3, now_s=50.0)
    for peer in (0, CURATOR):
        hears(bootstrap, peer, messages.SEEN, 3, [], [])
    assert resolved(hears(bootstrap, 2, messages.SEEN, 3, [], [])) == [(CURATOR, [3], [])]


def test_who_is_no_neighbour_has_no_say() -> None:
    bootstrap = going()
    put_out(bootstrap, 1)
    assert hears(bootstrap, 3, messages.SEEN, 1, [[0, 0, 3]], []).faults
    for peer in (0, CURATOR):
        hears(bootstrap, peer, messages.SEEN, 1, [], [[0, 2]] if peer == 0 else [])
    assert sent(hears(bootstrap, 2, messages.SEEN, 1, [], [])) == [(0, messages.LOST, 0, 2)]


def test_an_item_that_never_left_its_start_begins_elsewhere() -> None:
    bootstrap = going()
    put_out(bootstrap, 0)
    for peer in (CURATOR, 1):
        hears(bootstrap, peer, messages.SEEN, 0, [], [])
    step = hears(bootstrap, 3, messages.SEEN, 0, [], [])
    assert sent(step) == [(3, messages.BEGIN, 0, 0)]


def test_a_ring_is_blocked_and_its_user_stays_in() -> None:
    bootstrap = going(needed=4)
    step = put_out(bootstrap, 1)
    assert [(output.type, output.fields) for output in step.outputs if output.recorded] == [(BLOCKED, (1,))]
    assert step.sends == ()
    assert sent(hears(bootstrap, BOOTSTRAP, messages.SILENT, 1)) == [(1, messages.PROBE)]  # asked anew


def test_the_last_user_is_not_put_out() -> None:
    bootstrap = going(n=1)
    hears(bootstrap, BOOTSTRAP, messages.SILENT, 0)
    assert [output.type for output in bootstrap.wake(50.0, DRAWS).outputs] == [BLOCKED]


def test_after_the_result_nobody_is_asked_and_only_the_curator_may_complain() -> None:
    bootstrap = going(needed=4)
    hears(bootstrap, BOOTSTRAP, messages.SILENT, 1)
    assert hears(bootstrap, CURATOR, messages.DONE) == NOTHING
    assert bootstrap.wake(50.0, DRAWS) == NOTHING  # 1 may have closed before it could answer
    assert hears(bootstrap, BOOTSTRAP, messages.SILENT, 1) == NOTHING
    assert sent(hears(bootstrap, CURATOR, messages.SILENT, 1)) == [(1, messages.PROBE)]
    step = bootstrap.wake(50.0, DRAWS)
    assert sent(step) == [(CURATOR, messages.OUT, 1, b"signed 1"), (1, messages.OUT, 1, b"signed 1")]
    assert hears(bootstrap, CURATOR, messages.SEEN, 1, [], []) == NOTHING


def test_a_head_that_comes_after_all_saves_its_user() -> None:
    bootstrap = going()
    hears(bootstrap, CURATOR, messages.DONE)
    hears(bootstrap, CURATOR, messages.SILENT, 1)
    assert hears(bootstrap, CURATOR, messages.SPARED, 1) == NOTHING
    assert bootstrap.wake(50.0, DRAWS) == NOTHING
    assert bootstrap.out == []


def test_who_is_heard_again_before_its_time_is_over_is_spared_and_may_fall_silent_again() -> None:
    bootstrap = going()
    hears(bootstrap, BOOTSTRAP, messages.SILENT, 1)
    assert hears(bootstrap, BOOTSTRAP, messages.SPARED, 1) == NOTHING
    assert bootstrap.wake(50.0, DRAWS) == NOTHING
    assert hears(bootstrap, 2, messages.SPARED, 1).faults, "users have no say"
    assert put_out(bootstrap, 1, 60.0).sends
    assert bootstrap.out == [1]


def test_who_answers_a_probe_and_withholds_what_it_was_asked_before_is_put_out() -> None:
    bootstrap = going()
    put_out(bootstrap, 1, now_s=0.0)
    hears(bootstrap, CURATOR, messages.SEEN, 1, [], [])
    hears(bootstrap, 0, messages.SEEN, 1, [], [])
    assert sent(bootstrap.wake(3 * PATIENCE_S, DRAWS)) == [(2, messages.PROBE)]
    assert hears(bootstrap, BOOTSTRAP, messages.SPARED, 2, now_s=3 * PATIENCE_S) == NOTHING, "to be heard is no answer"
    hears(bootstrap, 2, messages.ALIVE, now_s=3 * PATIENCE_S)
    assert bootstrap.out == [1, 2]


def test_who_answers_nothing_of_what_it_is_asked_is_out_after_three_patiences() -> None:
    bootstrap = going()
    put_out(bootstrap, 1, now_s=0.0)
    assert sent(bootstrap.wake(3 * PATIENCE_S, DRAWS)) == [(0, messages.PROBE), (2, messages.PROBE)]
    for user in (0, CURATOR):
        hears(bootstrap, user, messages.SEEN, 1, [], [], now_s=3 * PATIENCE_S)
    assert bootstrap.wake(4 * PATIENCE_S - 0.1, DRAWS).outputs == ()
    assert sent(bootstrap.wake(4 * PATIENCE_S, DRAWS))[-1] == (2, messages.OUT, 2, b"signed 2")
    assert bootstrap.out == [1, 2]


def test_while_the_curator_is_silent_nobody_is_out_for_an_answer_since_the_result_may_be_out() -> None:
    bootstrap = going()
    put_out(bootstrap, 1, now_s=0.0)
    for user in (0, CURATOR):
        hears(bootstrap, user, messages.SEEN, 1, [], [], now_s=PATIENCE_S)
    assert sent(bootstrap.wake(3 * PATIENCE_S, DRAWS)) == [(2, messages.PROBE)]
    hears(bootstrap, BOOTSTRAP, messages.SILENT, CURATOR, now_s=3.5 * PATIENCE_S)
    assert bootstrap.wake(4 * PATIENCE_S, DRAWS).outputs == ()
    assert bootstrap.wake(4.5 * PATIENCE_S, DRAWS).outputs == (Output(messages.BLOCKED, (CURATOR,)),)
    assert bootstrap.wake(5 * PATIENCE_S, DRAWS) == Step(wake_at_s=6 * PATIENCE_S)
    hears(bootstrap, BOOTSTRAP, messages.SPARED, CURATOR, now_s=5.5 * PATIENCE_S)
    assert bootstrap.wake(6 * PATIENCE_S - 0.1, DRAWS).outputs == ()
    assert sent(bootstrap.wake(6 * PATIENCE_S, DRAWS))[-1] == (2, messages.OUT, 2, b"signed 2"), "it was not done"


def test_who_answers_late_but_in_order_stays() -> None:
    bootstrap = going()
    put_out(bootstrap, 1, now_s=0.0)
    assert sent(bootstrap.wake(3 * PATIENCE_S, DRAWS)) == [(0, messages.PROBE), (2, messages.PROBE)]
    for user in (0, 2):
        hears(bootstrap, user, messages.SEEN, 1, [], [], now_s=3.9 * PATIENCE_S)
        assert hears(bootstrap, user, messages.ALIVE, now_s=3.9 * PATIENCE_S) == NOTHING
    assert bootstrap.wake(9 * PATIENCE_S, DRAWS) == NOTHING
    assert bootstrap.out == [1]


def test_who_lives_and_keeps_its_head_is_spared_twice() -> None:
    bootstrap = going()
    hears(bootstrap, CURATOR, messages.DONE)
    for number in (1, 2):
        hears(bootstrap, CURATOR, messages.SILENT, 3, now_s=number * PATIENCE_S)
        assert sent(hears(bootstrap, 3, messages.ALIVE)) == [(CURATOR, messages.SPARED, 3)]
    hears(bootstrap, CURATOR, messages.SILENT, 3, now_s=3 * PATIENCE_S)
    assert bootstrap.out == [3]


@pytest.mark.parametrize("sender", [0, BOOTSTRAP, CURATOR])
def test_of_an_unproven_claim_it_takes_note_and_nothing_else(sender: Peer) -> None:
    bootstrap = going()
    step = hears(bootstrap, sender, COMPLAINT, 2, UNPROVEN)
    assert step == Step(faults=(Fault(UNPROVEN, 2),))
    assert bootstrap.wake(99 * PATIENCE_S, DRAWS) == NOTHING


def test_it_is_finished_when_all_heads_are_in() -> None:
    bootstrap = going()
    hears(bootstrap, CURATOR, messages.DONE)
    assert not bootstrap.finished
    hears(bootstrap, CURATOR, messages.OVER)
    assert bootstrap.finished


def test_misplaced_messages_are_faults() -> None:
    bootstrap = going()
    nobody_asked = (2, messages.SEEN, 1, [[0, 0, 3]], [])
    strange = (1, messages.TOKEN, 0, 1), (2, "?")
    for sender, kind, *fields in ((0, messages.DONE), (0, messages.OVER), *strange, nobody_asked):
        assert [fault.peer for fault in hears(bootstrap, sender, kind, *fields).faults] == [sender]
    assert hears(bootstrap, 0, messages.SILENT, 1).faults, "users have no say"
    assert hears(bootstrap, CURATOR, messages.SILENT, CURATOR).faults
    assert hears(bootstrap, CURATOR, messages.SILENT, 1) == NOTHING, "before the result"
    assert hears(bootstrap, BOOTSTRAP, messages.SILENT, 9) == NOTHING
    assert bootstrap.excluded(0, 1.0, DRAWS) == NOTHING


def test_the_curator_cannot_end_what_has_not_begun() -> None:
    bootstrap = made()
    for kind in (messages.DONE, messages.OVER):
        assert [fault.kind for fault in hears(bootstrap, CURATOR, kind).faults] == ["unexpected_message"]
    assert not bootstrap.finished
    assert hears(going(), CURATOR, messages.OVER).faults


def deciding(
    n: int = 4, needed: int = 2, unrecoverable: frozenset[Peer] = frozenset(), hiding: frozenset[Peer] = frozenset()
) -> Bootstrap:
    """Those in `hiding` are needed until it is decided, and those in `unrecoverable` from then on."""
    bootstrap = Bootstrap(
        n,
        lambda user: [peer for peer in range(n) if peer != user],
        (),
        needed=needed,
        patience_s=PATIENCE_S,
        ready_timeout_s=READY_S,
        sign_exclusion=lambda peer: b"signed %d" % peer,
        deciding=Deciding(
            lambda absent: b"decided %d" % len(absent),
            lambda live: hiding <= live,
            lambda _, live: unrecoverable <= live,
        ),
    )
    assert bootstrap.start(0.0, DRAWS) == Step(wake_at_s=READY_S)
    for peer in (CURATOR, *range(n)):
        hears(bootstrap, peer, messages.READY)
    return bootstrap


def excludes(bootstrap: Bootstrap, peer: Peer, now_s: float) -> list[str]:
    """What bootstrap says of a peer that stays silent from then on."""
    hears(bootstrap, BOOTSTRAP, messages.SILENT, peer, now_s=now_s)
    told = [output.type for output in bootstrap.wake(now_s + PATIENCE_S, DRAWS).outputs]
    for user in range(4):
        hears(bootstrap, user, messages.SEEN, peer, [], [], now_s=now_s + PATIENCE_S)
    return told


def test_it_decides_once_and_tells_everybody_the_same() -> None:
    bootstrap = deciding()
    assert excludes(bootstrap, 1, 2.0) == [EXCLUDED]
    assert hears(bootstrap, CURATOR, COLLECTED, []) == NOTHING  # it does not know of user 1 yet
    step = hears(bootstrap, CURATOR, COLLECTED, [1])
    decision = ([1], b"decided 1")
    assert [(output.type, output.fields) for output in step.outputs] == [(SURVIVORS, decision)]
    assert [(send.to, send.message) for send in step.sends] == [
        (peer, Message(SURVIVORS, decision)) for peer in (CURATOR, 0, 2, 3)
    ]
    assert hears(bootstrap, CURATOR, COLLECTED, [1]) == NOTHING


def test_only_the_curator_asks_for_a_decision_and_only_where_there_is_one() -> None:
    assert hears(deciding(), 2, COLLECTED, []).faults
    assert hears(going(), CURATOR, COLLECTED, []).faults


def test_before_the_decision_as_many_are_needed_as_the_plan_says() -> None:
    bootstrap = deciding(needed=3)
    assert excludes(bootstrap, 1, 2.0) == [EXCLUDED]
    assert excludes(bootstrap, 2, 20.0) == [BLOCKED]
    assert bootstrap.out == [1]


def test_before_the_decision_nobody_is_put_out_who_hides_others() -> None:
    bootstrap = deciding(needed=1, hiding=frozenset({2}))
    assert excludes(bootstrap, 1, 2.0) == [EXCLUDED]
    assert excludes(bootstrap, 2, 20.0) == [BLOCKED]
    assert hears(bootstrap, CURATOR, COLLECTED, [1]).outputs
    assert excludes(bootstrap, 2, 60.0) == [EXCLUDED], "its mask cancelled before it was gone"


def test_after_it_nobody_is_put_out_without_whom_there_is_no_result() -> None:
    bootstrap = deciding(needed=4, unrecoverable=frozenset({0, 2}))
    assert hears(bootstrap, CURATOR, COLLECTED, []).outputs
    assert excludes(bootstrap, 1, 2.0) == [EXCLUDED]
    assert excludes(bootstrap, 2, 20.0) == [BLOCKED]
    assert excludes(bootstrap, 3, 40.0) == [EXCLUDED]
    assert bootstrap.out == [1, 3]


def test_a_decision_that_is_asked_for_after_the_result_is_none() -> None:
    bootstrap = deciding()
    assert hears(bootstrap, CURATOR, messages.DONE) == NOTHING
    assert hears(bootstrap, CURATOR, COLLECTED, []) == NOTHING
