"""One user lies in what it sends: the run ends or goes on by itself, nobody honest is put out, no budget exceeded."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from p2pdp.core.endings import DISPUTE, STANDSTILL
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import REFUSED, SENT, public_message, read
from p2pdp.sim.faults import Crash, Faults
from tests.support.fault_worlds import HISTOGRAM, ring, walk
from tests.support.message_liars import LIES, LyingWorld

_NUMBERS = '[noise]\nmechanism = "gaussian"\nsigma = 1.0\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
_GRAPH = '[graph]\nkind = "regular"\ndegree = 4\n'


def _run(protocol: str, more: str, nodes: int = 6) -> str:
    return f'[run]\nprotocol = "{protocol}"\nnodes = {nodes}\nseed = 1\n{_GRAPH}{more}'


SPECS = {
    "ring": ring(5, 6),
    "walk": walk(6, 60),
    "tokens": walk(6, 30, tokens=2),
    "graph": walk(6, 60, "regular"),
    "histogram": walk(6, 60, task=HISTOGRAM),
    "gossip": _run("gossip.average", f"[gossip]\nrounds = 8\n{_NUMBERS}"),
    "pairs": _run("gossip.randomized", f"[gossip]\nactivations = 30\n{_NUMBERS}"),
    "shuffle": _run(
        "shuffle.all",
        '[shuffle]\nrounds = 5\n[noise]\nmechanism = "randomized_response"\nepsilon = 1.0\n'
        '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 3\n',
    ),
    "pairwise": _run("pairwise.sum", _NUMBERS),
}
LIAR: Peer = 3
PATIENCE_S = 10.0


def lived(name: str, lie: str, seed: int = 1, faults: Faults | None = None) -> tuple[LyingWorld, str]:
    """The world when it has ended, and why it ended without anything published if it is not known from the run."""
    options = {} if faults is None else {"faults": faults}
    world = LyingWorld(SPECS[name], {LIAR: LIES[lie]}, seed, **options)
    try:
        world.run_to_end()
    except RunFailed as error:
        return world, str(error)
    return world, ""


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", SPECS)
def test_the_run_ends_or_goes_on_and_nobody_honest_is_put_out(name: str, lie: str) -> None:
    world, why = lived(name, lie)
    assert why == ""
    assert set(world.out) <= {LIAR}
    n, patient = world.run.n, world.run.plan.starts or name == "gossip"  # which goes on without late ones for a while
    assert world.now_s < (2 * n + 4 if patient else 8) * PATIENCE_S
    if world.stopped is not None:
        concerned = world.stopped.concerned
        assert world.stopped.reason in (DISPUTE, STANDSTILL)
        whole = lie != "double" and name != "pairs"  # of a pair each end tells whom itself it waits for
        assert not concerned or not whole or any(LIAR in named for named in concerned)
        assert concerned or world.run.plan.starts, "only a hidden route leaves nobody to name"


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", SPECS)
def test_no_user_contributes_more_than_was_charged(name: str, lie: str) -> None:
    """Each honest user's machine, by its own count; with the draws of its noise beside it."""
    world, _ = lived(name, lie)
    for user in set(range(world.run.n)) - {LIAR}:
        host = world.processes[user].host
        assert host is not None
        machine: Any = host._machine._machine  # type: ignore[attr-defined]
        if hasattr(machine, "_visits"):
            made = min(machine._visits, machine._visits_max)
            assert made <= world.run.plan.contributions_max
        records = read(bytes(world.processes[user].disk.view)).records
        sent = Counter(
            (public_message(record).type, record.body.receiver)
            for record in records
            if record.kind == SENT and public_message(record).type in ("exchange", "share", "masked", "mark")
        )
        assert all(count <= world.run.plan.length + 1 for count in sent.values())


@pytest.mark.parametrize("lie", ["badvalue", "longtype"])
@pytest.mark.parametrize("name", ["walk", "ring", "gossip", "pairs", "shuffle", "pairwise"])
def test_a_refused_message_takes_its_number_and_both_are_named(name: str, lie: str) -> None:
    world, _ = lived(name, lie)
    refused = [
        (user, record.body.sender)
        for user in (*range(world.run.n), -1, -2)
        for record in read(bytes(world.processes[user].disk.view)).records
        if record.kind == REFUSED
    ]
    assert refused
    assert {sender for _, sender in refused} == {LIAR} or lie == "badvalue"
    assert world.stopped is not None or world.out == [LIAR] or name in ("pairwise", "shuffle")
    if world.stopped is not None and world.stopped.reason == DISPUTE:
        assert {tuple(pair) for pair in world.stopped.concerned} <= set(refused)
    assert world.fault_counts()["refused_message"] >= 1


@pytest.mark.parametrize("lie", ["badvalue", "milk", "double", "total"])
@pytest.mark.parametrize("name", ["walk", "gossip", "shuffle", "pairwise"])
def test_restarts_leave_a_refusal_as_it_is(name: str, lie: str) -> None:
    """Any honest user crashes and comes back while the liar goes on; numbers of links agree with its ledger."""
    for seed, user in ((1, 0), (2, 1), (3, 2)):
        world, why = lived(name, lie, seed, Faults(crashes=(Crash(user, at_s=0.004 * seed + 0.002, down_s=1.0),)))
        assert why == ""
        assert set(world.out) <= {LIAR}
        assert not world.fault_counts().get("rolled_back")
