"""What a missing user sent, told from what others have, must be what its own ledger would have said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from p2pdp.auditor.exact import ExactAuditor
from p2pdp.core.errors import Refused
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.messages import TOKEN
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm, Source
from p2pdp.ledger.records import Contents
from p2pdp.protocols.walk.analysis.absent import AbsentFromWalk, is_scheduled, scheduled_transcript
from p2pdp.replay.transcript import replay
from p2pdp.sim.faults import Crash
from tests.support import runs
from tests.support.replay_oracle import leaks, seen_by
from tests.support.runs import HISTOGRAM, Run, quiet, ring, run_of, walk


def assert_nobody_else_s_claims_change(run: Run, gone: tuple[int, ...]) -> None:
    """Each observer that is left learns as much about everybody, the missing included, as with all ledgers."""
    views = {peer: contents for peer, contents in run.contents().items() if peer not in gone}
    transcript, n = replay(run.plan, views), run.plan.n
    if transcript.unknown or transcript.published is None:
        return
    whole, found = ExactAuditor(run.transcript(), n), ExactAuditor(transcript, n)
    for user in set(range(n)) - set(gone):
        np.testing.assert_allclose(found.nodes([user]).values, whole.nodes([user]).values, rtol=1e-9)
        np.testing.assert_allclose(
            found.nodes([user]).values, leaks(transcript, n, seen_by(transcript, "node", [user]), [user]), rtol=1e-9
        )
    np.testing.assert_allclose(found.public().values, whole.public().values, rtol=1e-9)


@pytest.mark.parametrize("gone", range(4))
@pytest.mark.parametrize(
    "text",
    [
        ring(4, 2),
        ring(4, 3, tokens=3),
        ring(4, 2, "share = true\n"),
        walk(4, 30),
        walk(4, 20, tokens=3),
        walk(4, 30, "ring"),
    ],
)
def test_one_missing_user_is_made_up_for(text: str, gone: int) -> None:
    run = quiet(text)
    assert_nobody_else_s_claims_change(run, (gone,))
    assert_nobody_else_s_claims_change(run, (gone, CURATOR)) if gone == 0 else None
    views = {peer: contents for peer, contents in run.contents().items() if peer != gone}
    transcript = replay(run.plan, views)
    assert transcript.unknown == set()
    assert transcript.rebuilt == {gone}
    assert_nobody_else_s_claims_change(run, (gone, BOOTSTRAP))


@settings(max_examples=40)
@given(
    st.integers(3, 6),
    st.integers(1, 25),
    st.integers(1, 3),
    st.sets(st.integers(0, 5), min_size=1, max_size=3),
    st.integers(0, 99),
)
def test_several_missing_users_are_made_up_for_or_said_to_be_unknown(
    n: int, hops: int, tokens: int, gone: set[int], seed: int
) -> None:
    assume(max(gone) < n > len(gone))
    assert_nobody_else_s_claims_change(run_of(walk(n, hops, tokens=tokens, seed=seed)), tuple(sorted(gone)))


def test_a_stay_among_several_missing_users_cannot_be_told() -> None:
    """0 passes to 1, and somebody of 1 and 2 passes to 3 two steps later: who contributed in between is not told."""
    found = 0
    for seed in range(30):
        run = quiet(walk(4, 12, seed=seed))
        views = {peer: contents for peer, contents in run.contents().items() if peer not in (1, 2)}
        found += bool(replay(run.plan, views).unknown)
    assert found


@settings(max_examples=40)
@given(st.integers(6, 40), st.integers(0, 99), st.integers(1, 3), st.data())
def test_a_ledger_that_ends_early_is_gone_on_with(record: int, seed: int, tokens: int, data: Any) -> None:
    """Somebody is out for good; cut further, its ledger tells less, and others' make up for it.

    Only what it had sent and nobody recorded is told by its own ledger alone.
    """
    run = run_of(walk(4, 15, tokens=tokens, seed=seed), Crash(peer=2, at_record=record, down_s=None))
    assume(run.world.out == [2])
    contents = run.contents()
    assume(2 in contents and contents[2].records)
    kept = data.draw(st.integers(1, len(contents[2].records)))
    cut = contents | {2: Contents(contents[2].records[:kept], False, 0)}
    transcript, n = replay(run.plan, cut), 4
    assert transcript.unknown == set()
    complete = run.transcript()
    for user in (0, 1, 3):
        kept_forms = len(transcript.received[user])
        assert kept_forms <= len(complete.received[user])
        complete.received[user] = complete.received[user][:kept_forms]
    whole, found = ExactAuditor(complete, n), ExactAuditor(transcript, n)
    for user in (0, 1, 3):
        np.testing.assert_allclose(found.nodes([user]).values, whole.nodes([user]).values, rtol=1e-9)


def test_several_values_of_a_missing_user_count_one_by_one(tmp_path: Any) -> None:
    """Which value it used is not known; letting them all vary is never less."""
    (tmp_path / "rows.csv").write_text("a\n" + "0.5\n" * 9)
    data = f'[data]\nkind = "csv"\npath = "{tmp_path / "rows.csv"}"\nclip = [0.0, 1.0]\n'
    run = run_of(walk(4, 30, data=data))
    assert_nobody_else_s_claims_change(run, (1,))


def test_reports_of_a_missing_user_are_counted() -> None:
    run = quiet(walk(4, 20, **HISTOGRAM))
    views = {peer: contents for peer, contents in run.contents().items() if peer != 2}
    published, whole = replay(run.plan, views).published, run.transcript().published
    assert published is not None
    assert whole is not None
    counts = [
        sum(weight for source, weight in form.expand().items() if source.kind == "report" and source.peer == 2)
        for (form,) in (published, whole)
    ]
    assert counts[0] == counts[1] > 0


def test_the_same_message_sent_twice_is_the_same_form() -> None:
    run = quiet(walk(3, 20))
    views = {peer: contents for peer, contents in run.contents().items() if peer != 1}
    absent = AbsentFromWalk(run.plan, views)
    assert absent.users == {1}
    step = next(one.step for one in absent._handovers[1, 0] if one.step < 20)
    message = Message(TOKEN, (0, step + 1))
    came = absent.origin(1, message)
    assert came is not None
    before = run.transcript().received[0][0]
    assert absent.form(1, message, came, before) is absent.form(1, message, came, before)
    assert absent.contributions[1] == 1


def test_a_token_that_never_came_cannot_have_left() -> None:
    run = quiet(ring(3, 1))
    views = {peer: contents for peer, contents in run.contents().items() if peer != 1}
    absent = AbsentFromWalk(run.plan, views)
    assert absent.origin(1, Message(TOKEN, (7, 3))) is None
    assert absent.origin(1, Message(TOKEN, (0, 2))) is None
    assert absent.origin(1, Message(TOKEN, (0, 3))) is not None


def shape(form: LinearForm) -> list[tuple[str, int, float]]:
    """What a form is made of, whatever its sources are numbered."""
    return sorted((source.kind, source.peer, weight) for source, weight in form.expand().items())


@pytest.mark.parametrize(
    "text",
    [
        runs.ring(4, 3),
        runs.ring(4, 2, "closing = false\n"),
        runs.ring(5, 2, "share = true\n"),
        runs.ring(5, 2, tokens=3),
        runs.ring(1, 2),
        runs.ring(4, 2, **runs.HISTOGRAM),
    ],
)
def test_the_schedule_gives_what_a_replay_of_the_run_gives(text: str) -> None:
    run = runs.quiet(text)
    replayed, planned = run.transcript(), scheduled_transcript(run.plan)
    assert planned.published is not None
    assert replayed.published is not None
    # In the run a user with one value contributes it again and again; beforehand each contribution is a value.
    for user, forms in planned.received.items():
        summed = [sorted({(kind, peer) for kind, peer, _ in shape(form)}) for form in forms]
        seen = [sorted({(kind, peer) for kind, peer, _ in shape(form)}) for form in replayed.received[user]]
        assert sorted(summed) == sorted(seen)
        assert sorted(map(len, planned.own_noise[user])) == sorted(map(len, replayed.own_noise[user]))
        assert sorted(map(str, planned.draws[user])) == sorted(map(str, replayed.draws[user]))
    totals = [sum(weight for _, _, weight in shape(form)) for form in (planned.published[0], replayed.published[0])]
    assert totals[0] == totals[1]
    assert len(planned.totals) == len(replayed.totals)


def test_every_contribution_is_a_value_of_its_own() -> None:
    run = runs.quiet(runs.ring(3, 2)).plan
    published = scheduled_transcript(run).published
    assert published is not None
    inputs = {source for source in published[0].expand() if source.kind == "input"}
    assert inputs == {Source("input", user, lap) for user in range(3) for lap in range(2)}


def test_only_rings_have_a_schedule() -> None:
    assert is_scheduled(runs.quiet(runs.ring(3, 2)).plan)
    assert not is_scheduled(runs.quiet(runs.walk(3, 6)).plan)


def test_a_walk_that_chooses_is_not_driven() -> None:
    with pytest.raises(Refused):
        scheduled_transcript(runs.quiet(runs.walk(4, 8)).plan)
