from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from p2pdp.auditor.once import doubled
from p2pdp.core.ids import Peer
from p2pdp.core.messages import COMMON, TOKEN
from p2pdp.core.step import Message
from p2pdp.ledger.records import CLOSED, RECEIVED, SENT, Contents, Record, public_message, read
from p2pdp.protocols import protocol
from p2pdp.protocols.gossip.plan import EXCHANGE
from p2pdp.replay.findings import Finding
from p2pdp.sim.faults import Crash
from p2pdp.wire.codec import pack_message
from tests.support.gossips import gossip
from tests.support.runs import Run, Written, quiet, ring, run_of, walk
from tests.support.shuffle_specs import shuffle


def found_in(run: Run, views: dict[Peer, Contents]) -> list[Finding]:
    return list(doubled(views, protocol(run.evidence.spec.run.protocol).messages, run.world.out))


def is_sent(kind: str, record: Record) -> bool:
    return record.kind == SENT and public_message(record).type == kind


def again(run: Run, sender: Peer, kind: str) -> dict[Peer, Contents]:
    """The views, with the first such message of a sender at the end of its ledger and its receiver's once more."""
    views = run.contents()
    sent = next(filter(partial(is_sent, kind), views[sender].records))
    to = sent.body.receiver

    def sends(written: list[Written]) -> list[Written]:
        return [*written[:-1], Written(SENT, tuple(sent.body), sent.value or b""), written[-1]]

    def takes(written: list[Written]) -> list[Written]:
        return [*written[:-1], Written(RECEIVED, (1.0, sender, sent.body.message), sent.value or b""), written[-1]]

    return views | {sender: read(run.rewritten(sender, sends)), to: read(run.rewritten(to, takes))}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (ring(4, 2), TOKEN),
        (walk(4, 20), TOKEN),
        (gossip(5, "ring"), EXCHANGE),
        (shuffle(5), "relay"),
        (shuffle(5), "report"),
    ],
)
def test_what_is_sent_twice_is_found_with_its_sender_and_its_record(text: str, kind: str) -> None:
    run = quiet(text)
    assert found_in(run, run.contents()) == []
    sender = next(user for user in range(run.plan.n) if any(map(partial(is_sent, kind), run.contents()[user].records)))
    views = again(run, sender, kind)
    last = views[sender].records[-2]
    assert (last.kind, views[sender].records[-1].kind) == (SENT, CLOSED)
    assert [(one.peer, one.at) for one in found_in(run, views)] == [(sender, last.index)]


def test_a_sender_whose_ledger_is_not_there_is_named_all_the_same() -> None:
    run = quiet(walk(4, 20))
    views = again(run, 1, TOKEN)
    del views[1]
    (one,) = found_in(run, views)
    assert (one.peer, one.at) == (1, None)


def test_a_token_with_two_holders_is_its_forger_s_whose_ledger_is_not_there() -> None:
    run = quiet(walk(4, 20))
    views = run.contents()
    step, holder = next(
        (public_message(one).fields[1], peer)
        for peer in (0, 2, 3)
        for one in views[peer].records
        if one.kind == RECEIVED and public_message(one).type == TOKEN and one.body.sender != 1
    )
    other = next(peer for peer in (0, 2, 3) if peer != holder)
    forged = Written(RECEIVED, (1.0, 1, pack_message(Message(TOKEN, (0, step)))), bytes(25))
    views[other] = read(run.rewritten(other, lambda written: [*written[:-1], forged, written[-1]]))
    del views[1]
    assert [(one.peer, one.at) for one in found_in(run, views)] == [(1, None)]


@pytest.mark.parametrize("record", range(5, 25, 4))
def test_what_goes_round_the_gone_counts_once(record: int) -> None:
    run = run_of(walk(4, 20, seed=record), Crash(peer=2, at_record=record, down_s=None))
    assert run.world.out == [2]
    assert found_in(run, run.contents()) == []


def test_it_is_the_record_that_counts_and_no_value() -> None:
    run = quiet(walk(4, 20))
    views = again(run, 1, TOKEN)
    bare = {peer: Contents([_bare(one) for one in view.records], True, 0) for peer, view in views.items()}
    assert found_in(run, bare) == found_in(run, views)
    assert COMMON.get(TOKEN) is not None


def _bare(record: Record) -> Record:
    return replace(record, value=None)
