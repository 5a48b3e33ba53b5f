from __future__ import annotations

from dataclasses import replace

import pytest

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import CURATOR
from p2pdp.core.messages import TOTAL
from p2pdp.core.step import Message
from p2pdp.core.values import Source
from p2pdp.ledger.records import PUBLISHED, RECEIVED, Contents, public_message, read
from p2pdp.replay.transcript import UNKNOWN, replay
from p2pdp.sim.faults import Crash
from p2pdp.wire.codec import pack_message
from tests.support.gossips import gossip
from tests.support.runs import HISTOGRAM, Written, quiet, ring, run_of, walk


def test_the_published_form_has_every_contribution_and_every_draw() -> None:
    run = quiet(ring(4, 3))
    published = run.transcript().published
    assert published is not None
    sources = published[0].expand()
    inputs = {source: weight for source, weight in sources.items() if source.kind == "input"}
    assert inputs == {Source("input", user, 0): 3.0 for user in range(4)}
    assert sum(source.kind == "draw" for source in sources) == 4 + 1


def test_a_message_on_its_way_has_what_was_added_until_then() -> None:
    transcript = quiet(ring(3, 1)).transcript()
    (second,), (third,) = transcript.received[1], transcript.received[2]
    assert second.expand() == {Source("input", 0, 0): 1.0, Source("draw", 0, 0): 1.0}
    assert third.expand() == {**second.expand(), Source("input", 1, 0): 1.0}
    assert transcript.received[0] == []


def test_reports_are_sources_of_their_own() -> None:
    published = quiet(ring(3, 2, **HISTOGRAM)).transcript().published
    assert published is not None
    assert sorted(source for source in published[0].expand() if source.kind == "report") == [
        Source("report", user, visit) for user in range(3) for visit in range(2)
    ]


def test_the_order_of_the_views_makes_no_difference() -> None:
    run = quiet(walk(4, 30, tokens=2))
    backwards = dict(reversed(run.contents().items()))
    one, other = run.transcript(), replay(run.plan, backwards)
    for user in range(4):
        assert [form.expand() for form in one.received[user]] == [form.expand() for form in other.received[user]]


def test_values_are_never_looked_at() -> None:
    run = quiet(walk(3, 12))
    bare = {
        peer: Contents([replace(record, value=None) for record in contents.records], True, 0)
        for peer, contents in run.contents().items()
    }
    published, whole = replay(run.plan, bare).published, run.transcript().published
    assert published is not None
    assert whole is not None
    assert published[0].expand() == whole[0].expand()


def test_a_message_received_before_it_was_sent_is_refused() -> None:
    """Two users who each wait for what the other only sends later."""
    run = quiet(ring(3, 1))

    def early(written: list[Written]) -> list[Written]:
        at = next(
            at for at, one in enumerate(written) if one.kind == RECEIVED and one.as_record(at).body.sender in (0, 1, 2)
        )
        return [written[0], written[at], *written[1:at], *written[at + 1 :]]

    views = run.contents()
    begin = read(
        run.rewritten(
            0, lambda w: [*w[:3], Written(RECEIVED, (0.0, 2, pack_message(Message("x")), bytes(16)), b""), *w[3:]]
        )
    )
    with pytest.raises(VerificationFailed, match="received before it was sent"):
        replay(run.plan, views | {0: begin, 2: read(run.rewritten(2, early))})


def curator_writing(change: str) -> dict[int, Contents]:
    run = quiet(ring(3, 1, tokens=2))

    def changed(written: list[Written]) -> list[Written]:
        found = []
        for at, one in enumerate(written):
            record = one.as_record(at)
            total = one.kind == RECEIVED and public_message(record).type == TOTAL
            if (change == "no totals" and total) or (change == "silence" and one.kind == PUBLISHED):
                continue
            found += [one] * (2 if change == "twice" and one.kind == PUBLISHED else 1)
        return found

    return run.contents() | {CURATOR: read(run.rewritten(CURATOR, changed))}


@pytest.mark.parametrize("change", ["no totals", "twice"])
def test_what_the_curator_may_not_publish_is_refused(change: str) -> None:
    with pytest.raises(VerificationFailed, match="node curator, record"):
        replay(quiet(ring(3, 1, tokens=2)).plan, curator_writing(change))


def test_where_nothing_was_published_there_is_no_form_of_it() -> None:
    assert replay(quiet(ring(3, 1, tokens=2)).plan, curator_writing("silence")).published is None


def test_without_the_curator_s_ledger_the_users_tell_what_it_published() -> None:
    run = quiet(ring(3, 2, tokens=2))
    views = run.contents()
    del views[CURATOR]
    found, whole = replay(run.plan, views), run.transcript()
    assert found.totals == []
    assert found.published is not None
    assert whole.published is not None
    assert found.published[0].expand() == whole.published[0].expand()


def test_with_the_last_holder_s_ledger_gone_too_nobody_can_tell() -> None:
    run = quiet(ring(3, 2))
    views = {peer: contents for peer, contents in run.contents().items() if peer not in (CURATOR, 2)}
    assert replay(run.plan, views).published is None


def test_what_follows_an_exclusion_is_all_told() -> None:
    for record in range(5, 25):
        run = run_of(walk(4, 20, seed=record), Crash(peer=2, at_record=record, down_s=None))
        transcript = run.transcript()
        assert transcript.unknown == set()
        assert transcript.published is not None
        inputs = sum(weight for source, weight in transcript.published[0].expand().items() if source.kind == "input")
        assert inputs == 20, "every step has its one contribution"


def test_a_total_that_the_curator_never_recorded_is_kept_apart_from_those_it_has() -> None:
    """User 0 sends its total and is gone before the curator has it; the token goes round and comes in as another."""
    transcript = run_of(walk(4, 6), Crash(peer=0, at_record=17, down_s=None)).transcript()
    (recorded,), (lost,) = transcript.totals, transcript.undelivered
    assert recorded.expand() != lost.expand()
    assert transcript.seen_by_roles == [recorded, lost]
    assert transcript.published is not None
    assert transcript.published[0].expand() == recorded.expand()


def test_nothing_is_undelivered_where_nothing_was_lost() -> None:
    assert quiet(walk(4, 12, tokens=3)).transcript().undelivered == []


@pytest.mark.parametrize("text", [ring(4, 2), gossip(4, "ring", 'rounds = 2\npublish = "all"')])
def test_what_was_sent_to_the_curator_says_what_its_ledger_says(text: str) -> None:
    run = quiet(text)
    views = {peer: contents for peer, contents in run.contents().items() if peer != CURATOR}
    whole, rest = run.transcript().published, replay(run.plan, views).published
    assert whole
    assert rest
    assert [form.expand() for form in rest] == [form.expand() for form in whole]


@pytest.mark.parametrize(("publish", "unknown"), [("one", True), ("none", False)])
def test_what_an_absent_user_handed_in_to_be_published_is_unknown(publish: str, unknown: bool) -> None:
    """It is in every view: a claim about the public that left it out would be wrong."""
    run = run_of(gossip(5, "ring", f'rounds = 2\npublish = "{publish}"'))
    views = {peer: contents for peer, contents in run.contents().items() if peer != 0}
    found = replay(run.plan, views)
    assert found.published is not None
    sources = {source.kind for form in found.published for source in form.expand()}
    assert (UNKNOWN in sources) is unknown
    assert (len(found.published) == 1) is unknown
