"""The curator's machine, driven directly: one result, all heads, and who misses."""

from __future__ import annotations

from typing import Any

from p2pdp.core import messages
from p2pdp.core.endings import COMPLAINT
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import RESULT
from p2pdp.core.step import NOTHING, Fault, Message, Step
from p2pdp.protocols.decision import COLLECTED, SURVIVORS
from p2pdp.services.curator import Curator, Reports
from tests.support.service_steps import DRAWS, PATIENCE_S, sent


def made(n: int = 2, items: int | None = 2) -> Curator:
    curator = Curator(n, items, sum, PATIENCE_S)
    assert sent(curator.start(0.0, DRAWS)) == [(BOOTSTRAP, messages.READY)]
    return curator


def hears(curator: Curator, sender: Peer, kind: str, *fields: Any, value: Any = None, now_s: float = 1.0) -> Step:
    return curator.receive(sender, Message(kind, fields, value), now_s, DRAWS)


def published(n: int = 2) -> Curator:
    curator = made(n, 1)
    hears(curator, 0, messages.TOTAL, 0, 5, value=7)
    return curator


def test_it_publishes_once_when_every_total_is_here() -> None:
    curator = made()
    assert hears(curator, 0, messages.TOTAL, 1, 5, value=3) == NOTHING
    step = hears(curator, 1, messages.TOTAL, 0, 5, value=4)
    assert [(output.type, output.fields, output.value) for output in step.outputs] == [(RESULT, (), 7)]
    assert sent(step) == [(0, messages.RESULT), (1, messages.RESULT), (BOOTSTRAP, messages.DONE)]
    assert {send.message.value for send in step.sends[:2]} == {7}
    assert step.wake_at_s == 1.0 + PATIENCE_S
    assert [fault.kind for fault in hears(curator, 1, messages.TOTAL, 0, 5, value=4).faults] == ["unexpected_message"]


def test_a_total_of_somebody_who_is_out_is_not_taken() -> None:
    curator = made()
    assert sent(hears(curator, BOOTSTRAP, messages.OUT, 0, b"")) == [(BOOTSTRAP, messages.SEEN, 0, [], [])]
    assert hears(curator, 0, messages.TOTAL, 0, 5, value=4).faults


def test_it_tells_what_it_has_from_who_is_out() -> None:
    curator = made()
    hears(curator, 0, messages.TOTAL, 1, 5, value=4)
    assert sent(hears(curator, BOOTSTRAP, messages.OUT, 0, b"")) == [(BOOTSTRAP, messages.SEEN, 0, [[1, 1, 5]], [])]


def test_it_tells_bootstrap_once_of_each_fault_of_each_user() -> None:
    curator = made()
    told = [
        hears(curator, CURATOR, COMPLAINT, peer, fault)
        for peer, fault in ((1, "unproven_rollback"), (1, "malformed"), (1, "malformed"), (BOOTSTRAP, "malformed"))
    ]
    assert [[fields for _, _, *fields in sent(step)] for step in told] == [
        [[1, "unproven_rollback"]],
        [[1, "malformed"]],
        [],
        [],
    ]


def test_it_closes_after_all_heads_bootstraps_last() -> None:
    curator = published()
    assert hears(curator, 0, messages.HEAD, b"h") == NOTHING
    assert sent(hears(curator, 1, messages.HEAD, b"h")) == [(BOOTSTRAP, messages.OVER)]
    assert not curator.finished
    assert hears(curator, BOOTSTRAP, messages.HEAD, b"h") == NOTHING
    assert curator.finished


def test_over_is_said_once_also_where_the_last_one_missing_is_put_out() -> None:
    curator = published()
    hears(curator, 0, messages.HEAD, b"h")
    over = hears(curator, BOOTSTRAP, messages.OUT, 1, b"")
    assert sent(over) == [(BOOTSTRAP, messages.SEEN, 1, [], []), (BOOTSTRAP, messages.OVER)]
    assert sent(hears(curator, BOOTSTRAP, messages.OUT, 0, b"")) == [(BOOTSTRAP, messages.SEEN, 0, [[0, 0, 5]], [])]


def test_it_complains_once_of_each_missing_head_and_again_if_the_user_lives() -> None:
    curator = published(3)
    assert curator.wake(0.5, DRAWS) is not None
    curator = published(3)
    hears(curator, 0, messages.HEAD, b"h")
    step = curator.wake(11.0, DRAWS)
    assert sent(step) == [(BOOTSTRAP, messages.SILENT, 1), (BOOTSTRAP, messages.SILENT, 2)]
    assert sent(curator.wake(21.0, DRAWS)) == []
    assert hears(curator, BOOTSTRAP, messages.SPARED, 2, now_s=22.0).wake_at_s == 22.0 + PATIENCE_S
    assert sent(curator.wake(32.0, DRAWS)) == [(BOOTSTRAP, messages.SILENT, 2)]
    assert sent(hears(curator, 1, messages.HEAD, b"h")) == [(BOOTSTRAP, messages.SPARED, 1)]


def test_before_the_result_a_wake_does_nothing() -> None:
    assert made().wake(99.0, DRAWS) == NOTHING


def test_it_answers_bootstrap_and_takes_skeletons() -> None:
    curator = made()
    assert sent(hears(curator, BOOTSTRAP, messages.PROBE)) == [(BOOTSTRAP, messages.ALIVE)]
    assert hears(curator, BOOTSTRAP, messages.GO) == NOTHING
    assert hears(curator, 0, messages.SKELETON, 0, 3, value=b"abc") == NOTHING


def test_misplaced_messages_are_faults() -> None:
    curator = made()
    wrong = (0, messages.GO), (0, messages.TOKEN), (BOOTSTRAP, messages.READY), (CURATOR, messages.SILENT)
    for sender, kind in wrong:
        assert [fault.kind for fault in hears(curator, sender, kind).faults] == ["unexpected_message"]


def test_where_each_user_finishes_it_waits_for_all_of_them_and_publishes_what_they_sent() -> None:
    curator = made(3, None)
    assert hears(curator, 2, messages.FINISHED, value=5) == NOTHING
    assert hears(curator, 2, messages.FINISHED, value=5).faults, "twice"
    assert hears(curator, 0, messages.TOTAL, 0, 5, value=5).faults, "no walk"
    hears(curator, 0, messages.FINISHED)
    step = hears(curator, 1, messages.FINISHED, value=2)
    assert [output.value for output in step.outputs] == [7]
    assert len(sent(step)) == 4


def test_of_who_has_not_finished_nobody_complains_and_the_rest_go_on_without_it() -> None:
    curator = made(3, None)
    assert curator.wake(99.0, DRAWS) == NOTHING
    hears(curator, 0, messages.FINISHED)
    hears(curator, 2, messages.FINISHED)
    assert curator.wake(1.0 + PATIENCE_S, DRAWS) == NOTHING
    out = hears(curator, BOOTSTRAP, messages.OUT, 1, b"")
    assert [output.type for output in out.outputs] == [RESULT]
    assert sent(out)[0] == (BOOTSTRAP, messages.SEEN, 1, [], [])
    assert sent(out)[-1] == (BOOTSTRAP, messages.DONE)


def shuffled(n: int = 3) -> Curator:
    """A sealed report is its name and a number."""
    return Curator(
        n, None, list, PATIENCE_S, Reports(lambda sealed: (sealed[0], sealed[1] * 10) if sealed[1] else None)
    )


def hands_in(curator: Curator, sender: Peer, name: int, sealed: int) -> Step:
    """The report, and what the curator tells itself of it."""
    step = hears(curator, sender, messages.REPORT, 100 + name, 5, value=(name, sealed))
    for send in step.sends:
        assert (send.to, send.message.type, send.message.fields) == (CURATOR, messages.OPENED_REPORT, (name,))
        assert send.message.value == sealed * 10
        step = curator.receive(CURATOR, send.message, 1.0, DRAWS)
    return step


def test_reports_are_opened_and_published_in_the_order_of_their_names() -> None:
    curator = shuffled()
    assert hands_in(curator, 2, 9, 4) == NOTHING
    assert hands_in(curator, 0, 3, 5) == NOTHING
    assert [fault.kind for fault in hands_in(curator, 0, 9, 4).faults] == ["doubled_report"]
    assert [fault.kind for fault in hands_in(curator, 1, 1, 0).faults] == ["bad_report"]
    for user in range(2):
        assert hears(curator, user, messages.FINISHED).outputs == ()
    assert [output.value for output in hears(curator, 2, messages.FINISHED).outputs] == [[50, 40]]
    assert hears(made(3, None), 0, messages.REPORT, 1, 5, value=1).faults, "gossip has none"
    assert hears(made(3, None), 0, messages.HEEDED).faults


def test_a_report_that_comes_again_is_waited_for() -> None:
    curator = shuffled()
    hands_in(curator, 0, 3, 5)
    for user in range(2):
        hears(curator, user, messages.FINISHED)
    out = hears(curator, BOOTSTRAP, messages.OUT, 2, b"")
    assert sent(out) == [(BOOTSTRAP, messages.SEEN, 2, [], [])]
    assert hears(curator, BOOTSTRAP, messages.RESOLVED, [2], [[0, 1]]).outputs == ()
    assert hands_in(curator, 0, 9, 1).outputs == ()
    assert [output.value for output in hears(curator, 0, messages.HEEDED).outputs] == [[50, 10]]


def test_who_does_not_heed_an_order_is_waited_for_by_name() -> None:
    curator = shuffled()
    for user in range(2):
        hears(curator, user, messages.FINISHED)
    assert curator.waits_for == [2]
    hears(curator, BOOTSTRAP, messages.OUT, 2, bytes(64))
    hears(curator, BOOTSTRAP, messages.RESOLVED, [2], [[0, 1], [1, 1]])
    assert curator.waits_for == [0, 1]
    hears(curator, 0, messages.HEEDED)
    assert curator.waits_for == [1]
    hears(curator, 1, messages.HEEDED)
    assert curator.waits_for == []
    assert curator.published is not None


def test_what_its_sender_took_along_is_not_waited_for() -> None:
    curator = shuffled()
    hands_in(curator, 0, 3, 5)
    hears(curator, 0, messages.FINISHED)
    hears(curator, BOOTSTRAP, messages.OUT, 2, b"")
    hears(curator, BOOTSTRAP, messages.RESOLVED, [2], [[1, 1]])
    assert sent(hears(curator, BOOTSTRAP, messages.OUT, 1, b""))[0] == (BOOTSTRAP, messages.SEEN, 1, [], [])
    assert len(hears(curator, BOOTSTRAP, messages.RESOLVED, [1], []).outputs) == 1


def test_what_it_has_from_who_is_out_is_told_with_its_round() -> None:
    curator = shuffled()
    hands_in(curator, 2, 9, 4)
    assert sent(hears(curator, BOOTSTRAP, messages.OUT, 2, b"")) == [(BOOTSTRAP, messages.SEEN, 2, [[109, 109, 5]], [])]


def test_a_walk_has_no_users_who_finish() -> None:
    assert hears(made(), 0, messages.FINISHED).faults


def report(name: int, value: int = 1) -> Message:
    return Message("report", (100 + name, 5), (name, value))


def made_reports() -> Reports:
    return Reports(lambda sealed: sealed if sealed[1] else None)


def test_a_name_counts_once_whoever_brings_it() -> None:
    reports = made_reports()
    assert reports.take(4, report(7)) == 7
    assert reports.take(2, report(3, 2)) == 3
    assert reports.take(2, report(7)) == Fault("doubled_report", 2)
    assert reports.take(1, report(1, 0)) == Fault("bad_report", 1)
    assert reports.values() == [2, 1]
    assert reports.report(3) == 2
    assert reports.receipts_from(4) == [[107, 107, 5]]
    assert reports.receipts_from(1) == []


def test_after_an_exclusion_nobody_is_blamed_for_what_comes_again() -> None:
    reports = made_reports()
    reports.take(4, report(7))
    reports.out(3)
    assert reports.take(2, report(7)) is None
    assert reports.values() == [1]


def test_it_is_complete_when_exclusions_are_settled_and_every_order_was_heeded() -> None:
    reports = made_reports()
    assert reports.complete
    reports.out(3)
    assert not reports.complete
    reports.resolved([3], [[2, 2]])
    assert not reports.complete
    reports.heeded(2)
    assert not reports.complete
    reports.heeded(2)
    assert reports.complete


def test_an_order_may_be_heeded_before_the_curator_hears_of_it() -> None:
    reports = made_reports()
    reports.heeded(2)
    assert reports.complete
    reports.out(3)
    reports.resolved([3], [[2, 1]])
    assert reports.complete
    reports.resolved([], [[2, 1]])
    assert not reports.complete


def test_of_somebody_who_is_out_nothing_is_expected_any_more() -> None:
    reports = made_reports()
    reports.out(3)
    reports.resolved([3], [[2, 1]])
    reports.out(2)
    reports.resolved([2], [])
    assert reports.complete


class Counting:
    """A collector that needs one `part` of everybody who is in, and then one `key` of anybody."""

    def __init__(self, n: int) -> None:
        self.lacking, self.out, self.parts = set(range(n)), list[Peer](), list[int]()
        self.key: int | None = None
        self.survivors: bool = False

    def take(self, sender: Peer, message: Message) -> str | None:
        if message.type == "key":
            self.key = message.value
            return None
        if message.type != "part" or sender not in self.lacking:
            return "unexpected_message"
        self.lacking.discard(sender)
        self.parts.append(message.value)
        return None

    def excluded(self, user: Peer) -> None:
        self.lacking.discard(user)
        self.out.append(user)

    @property
    def collected(self) -> list[Peer] | None:
        return None if self.lacking or self.survivors else sorted(self.out)

    def decided(self, absent: Any) -> str | None:
        if absent != self.collected:
            return "contradiction"
        self.survivors = True
        return None

    @property
    def complete(self) -> bool:
        return self.survivors and self.key is not None

    def result(self) -> int:
        return sum(self.parts) + (self.key or 0)


def collecting(n: int = 3) -> Curator:
    curator = Curator(n, None, lambda totals: totals[0], PATIENCE_S, collector=Counting(n))
    assert sent(curator.start(0.0, DRAWS)) == [(BOOTSTRAP, messages.READY)]
    return curator


def test_a_collector_asks_once_for_the_same_decision_and_again_if_somebody_is_out() -> None:
    curator = collecting()
    for user in (0, 1):
        assert hears(curator, user, "part", value=user + 1) == NOTHING
    assert sent(hears(curator, 2, "part", value=3)) == [(BOOTSTRAP, COLLECTED, [])]
    assert hears(curator, 1, "key", value=10) == NOTHING
    assert sent(hears(curator, BOOTSTRAP, messages.OUT, 2, b"")) == [
        (BOOTSTRAP, messages.SEEN, 2, [], []),
        (BOOTSTRAP, COLLECTED, [2]),
    ]


def test_it_publishes_when_its_collector_has_what_the_decision_takes() -> None:
    curator = collecting()
    for user in range(3):
        hears(curator, user, "part", value=user + 1)
    assert [fault.peer for fault in hears(curator, BOOTSTRAP, SURVIVORS, [1], b"").faults] == [BOOTSTRAP]
    assert hears(curator, BOOTSTRAP, SURVIVORS, [], b"") == NOTHING
    step = hears(curator, 1, "key", value=10)
    assert [(output.type, output.value) for output in step.outputs] == [(RESULT, 16)]
    assert hears(curator, 1, "key", value=11) == NOTHING
    assert curator.published == 16


def test_whatever_else_users_say_to_a_collector_is_its_fault_to_find() -> None:
    curator = collecting()
    for kind, fields in ((messages.TOTAL, (0, 1)), (messages.FINISHED, ()), (messages.HEEDED, ())):
        assert [fault.peer for fault in hears(curator, 1, kind, *fields, value=5).faults] == [1]
    assert hears(curator, BOOTSTRAP, messages.OUT, 1, b"").sends
    assert hears(curator, 1, "part", value=5).faults
    assert hears(made(), 1, "part", value=5).faults
