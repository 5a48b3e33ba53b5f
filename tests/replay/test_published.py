"""What was published, as forms: of protocols with a decision; of others `test_transcript.py` tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.messages import FINISHED, TOTAL
from p2pdp.core.step import Message
from p2pdp.core.values import Share
from p2pdp.ledger.records import PUBLISHED, RECEIVED, pack_message, public_message
from p2pdp.protocols.decision import SURVIVORS
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.published import Link, tells, with_curator
from p2pdp.replay.transcript import replay
from p2pdp.sim.faults import Crash
from tests.support.pairwise_runs import Ran, simulated
from tests.support.pairwise_world import pairwise

if TYPE_CHECKING:
    from p2pdp.core.values import LinearForm
    from p2pdp.ledger.records import Contents
    from p2pdp.protocols.run_plan import RunPlan

TEXT = pairwise(6, terms="survivors_min = 3", privacy="colluders_max = 1")
GONE = Crash(2, at_s=0.0075, down_s=None)


def sources_of(ran: Ran, *without: int) -> set[tuple[str, int]] | None:
    """The kinds and users of what is in the published sum, each once."""
    recorded = ran.recorded
    views = {peer: view for peer, view in recorded.views.items() if peer not in without}
    published = replay(ran.run, views).published
    if published is None:
        return None
    ((form),) = published
    weights = form.expand()
    assert set(weights.values()) == {1.0}
    return {(source.kind, source.peer) for source in weights}


@pytest.mark.parametrize(("crashes", "survivors"), [((), (0, 1, 2, 3, 4, 5)), ((GONE,), (0, 1, 3, 4, 5))])
def test_masks_cancel_and_inputs_and_own_noise_of_survivors_stay(
    crashes: tuple[Crash, ...], survivors: tuple[int, ...]
) -> None:
    ran = simulated(TEXT, 1, *crashes)
    expected = {(kind, user) for kind in ("input", "draw") for user in survivors}
    assert sources_of(ran) == expected
    assert sources_of(ran, CURATOR) == expected, "users' ledgers are enough"


def test_who_heard_no_decision_knows_of_no_result() -> None:
    ran = simulated(TEXT, 1)
    assert sources_of(ran, CURATOR, *range(6)) is None


def test_what_a_survivor_sent_whose_ledger_is_not_at_hand_is_rebuilt() -> None:
    ran = simulated(TEXT, 1)
    found = replay(ran.run, {peer: view for peer, view in ran.recorded.views.items() if peer != 3})
    assert found.published is not None
    assert found.published[0].expand() == replay(ran.run, dict(ran.recorded.views)).published[0].expand()  # type: ignore[index]
    assert (found.rebuilt, found.unknown) == ({3}, set())


def test_a_sum_that_was_published_too_early_is_seen() -> None:
    ran = simulated(TEXT, 1)
    curator = ran.recorded.views[CURATOR]
    curator.records[:] = [
        record for record in curator.records if record.kind != RECEIVED or public_message(record).type != SURVIVORS
    ]
    views = dict(ran.recorded.views) | {CURATOR: curator}
    with pytest.raises(VerificationFailed, match="published"):
        replay(ran.run, views)


def test_shares_are_with_those_to_whom_they_were_sent() -> None:
    transcript = Recorded(simulated(TEXT, 1).run, simulated(TEXT, 1).recorded.views).transcript
    for user in range(6):
        assert {share.source.peer for share in transcript.shares[user]} == set(range(6)) - {user}
        assert all(share.threshold == 2 for share in transcript.shares[user])
    assert {source.peer for source in transcript.known_to([CURATOR])} == set(range(6))
    assert transcript.known_to([0]) == set()
    assert {source.peer for source in transcript.known_to([0, 1])} == {2, 3, 4, 5}
    assert BOOTSTRAP not in transcript.shares or transcript.shares[BOOTSTRAP] == []


def test_a_share_is_neither_a_form_nor_a_link() -> None:
    share = Share(("draw", 1, 0, -3))  # type: ignore[arg-type]
    assert not tells(share)
    assert not isinstance(share, Link)


@pytest.mark.parametrize("per_user", [False, True])
def test_what_the_curator_refused_takes_no_place_of_what_it_waited_for(per_user: bool) -> None:
    """A user that says `finished` where totals are waited for, or the reverse, names no item and no user."""
    total, finished = Message(TOTAL, (1, 9)), Message(FINISHED)
    first, second = ((0, total), (1, finished)) if per_user else ((1, finished), (0, total))
    records = [
        SimpleNamespace(kind=RECEIVED, index=at, body=SimpleNamespace(sender=sender, message=pack_message(message)))
        for at, (sender, message) in enumerate((first, second))
    ]
    records.append(SimpleNamespace(kind=PUBLISHED, index=2, body=None))
    run = SimpleNamespace(
        handed_in=FINISHED if per_user else TOTAL,
        completes_per_user=per_user,
        plan=SimpleNamespace(starts=() if per_user else ("a token",)),
        protocol=SimpleNamespace(publish=lambda _plan, told: told),
    )
    forms = {0: 10, 1: 11}
    told = with_curator(
        cast("RunPlan", run),
        cast("Contents", SimpleNamespace(records=records)),
        lambda sender, _to, _number, _record: cast("LinearForm", forms[sender]),
    )
    assert told[1] == [forms[first[0]], forms[second[0]]], "whatever it saw is in its view"
    assert told[2] == ((11,) if per_user else ([10],))
