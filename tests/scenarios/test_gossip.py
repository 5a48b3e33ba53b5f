"""Gossip in worlds with crashes, losses and users who never return: what the ledgers say must add up.

The oracle knows no machine. A user's noised value is what it sent in its first exchange; whatever is late or lost,
the results of all users must add up to the sum of these, and undisturbed rounds must give the matrix products.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.verify import COMPLETE, INCOMPLETE, verify
from p2pdp.core import messages
from p2pdp.core.draws import DITHER, Mechanism
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.values import Source, pair_source
from p2pdp.ledger.records import (
    DRAWN,
    MET,
    OWN,
    PAIRED,
    SALT_BYTES,
    SENT,
    Contents,
    carries_message,
    read,
    whole_message,
)
from p2pdp.mechanisms.sampler import StreamSampler
from p2pdp.protocols.gossip.plan import EXCHANGE, SKIPPED, GossipPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.transcript import replay
from p2pdp.sim.faults import Crash, Partition
from p2pdp.sim.world import World
from p2pdp.topology.graphs import Graph, graph_of_edges
from p2pdp.topology.weights import sparse_weights
from tests.support.fault_worlds import crashed_at_a_fourth, crashed_twice, record_counts, world_of
from tests.support.gossip_specs import LOSSY, PAIRS, RING, evidence_of, gossip, shared
from tests.support.gossip_world import room
from tests.support.outcomes import outcome

FAST = gossip(4, "path", "rounds = 4\naccelerated = true")
PUBLIC = gossip(3, "complete", 'rounds = 3\npublish = "all"')
CHANGING = gossip(5, "erdos_renyi", "rounds = 5\naccelerated = true").replace("[gossip]", "changing = true\n[gossip]")
SHARED = (shared(RING), shared(FAST), shared(PUBLIC), shared(PAIRS))
ALL = (RING, FAST, PUBLIC, PAIRS, CHANGING, *SHARED)


def everybody(*texts: str) -> list[tuple[str, Peer]]:
    nodes = {text: int(text.split("nodes = ")[1].split()[0]) for text in texts}
    return [(text, peer) for text in texts for peer in (BOOTSTRAP, CURATOR, *range(nodes[text]))]


def judged(world: World, text: str) -> dict[Peer, float]:
    """Runs to the end and checks what holds whatever happened; gives the users' results."""
    world.run_to_end()
    for process in world.processes.values():
        process.disk.cut_torn_tails()
    evidence = evidence_of(world, text)
    found = verify(evidence)
    assert found.verified == (INCOMPLETE if world.out else COMPLETE), (world.story, found.problems)  # type: ignore[attr-defined]
    began: dict[Peer, float] = {}
    finals: dict[Peer, float] = {}
    skipped, off = False, room(world.run.plan)
    for peer, data in evidence.views.items():
        if not is_user(peer):
            continue
        sent: dict[int, set[float]] = defaultdict(set)
        records = read(data).records
        drawn = [record.body.mechanism for record in records if record.kind == DRAWN]
        assert sorted(drawn) in ([], ["gaussian"], [DITHER, "gaussian"]), "nothing is drawn twice"
        paired = [(record.body.peer, record.body.number) for record in records if record.kind == PAIRED]
        assert len(paired) == len(set(paired)), "not what is shared either"
        for record in records:
            if not carries_message(record):
                continue
            message = whole_message(record)
            if record.kind == SENT and message.type == EXCHANGE:
                sent[message.fields[0]].add(message.value)
                began.setdefault(peer, message.value)
            elif record.kind == OWN and message.type == messages.FINAL:
                assert peer not in finals
                finals[peer] = message.value
            skipped |= message.type == SKIPPED
        assert all(len(values) == 1 for values in sent.values())
    if not world.out:
        assert sorted(finals) == list(range(world.run.n))
        began = finals | began  # who meets nobody tells nobody, and keeps its value
        assert sum(finals.values()) == pytest.approx(sum(began.values()), abs=world.run.n * off), world.story  # type: ignore[attr-defined]
        if isinstance(world.run.plan, GossipPlan) and not skipped:
            expected = products(world, evidence, [began[user] for user in range(world.run.n)])
            np.testing.assert_allclose([finals[user] for user in range(world.run.n)], expected, rtol=0, atol=off)
    check_forms(world, evidence, finals, began)
    return finals


def products(world: World, evidence: Evidence, values: list[float]) -> Any:
    plan = world.run.plan
    before = now = np.array(values)
    for number in range(plan.rounds):
        moved = sparse_weights(graph_in(world, evidence, number + 1), plan.weights).toarray() @ now
        before, now = now, moved if number == 0 else plan.gamma * moved + (1 - plan.gamma) * before
    return now


def graph_in(world: World, evidence: Evidence, number: int) -> Graph:
    """The graph of a round: the run's, or what the ledgers say who met whom."""
    assert world.run.graph is not None
    if world.run.plan.coin is None:
        return world.run.graph
    views = ((user, read(evidence.views[user]).records) for user in range(world.run.n))
    met = [(user, record.body) for user, records in views for record in records if record.kind == MET]
    return graph_of_edges(
        world.run.n, [(user, peer) for user, body in met if body.round == number for peer in body.users]
    )


def check_forms(world: World, evidence: Evidence, finals: dict[Peer, float], began: dict[Peer, float]) -> None:
    """Replayed over symbols, each result is the weighted sum of noised values that it is in numbers.

    Noise of pairs is part of these values, but for what was taken back.
    """
    contents = {peer: read(data) for peer, data in evidence.views.items()}
    transcript = replay(world.run, contents)
    drawn = drawn_together(contents)
    assert transcript.pairs.keys() == drawn.keys()
    for user, form in transcript.finals.items():
        expanded = form.expand()
        weights = {source.peer: weight for source, weight in expanded.items() if source.kind == "input"}
        if weights.keys() <= began.keys():  # a user whose only neighbours were out before it began sent nothing
            step, total = world.run.plan.step, sum(weight * began[peer] for peer, weight in weights.items())
            for one, value in drawn.items():
                of_values = weights.get(one.peer, 0.0) - weights.get(one.other, 0.0)
                total += (expanded.get(one, 0.0) - of_values * step) * value
            assert total == pytest.approx(finals[user], abs=room(world.run.plan))
    found = outcome(world.run, evidence.views, world.out)
    assert found.over
    assert {user: found.finals[user] for user in finals} == finals


def drawn_together(contents: dict[Peer, Contents]) -> dict[Source, int]:
    """What pairs drew, from the keys in their ledgers: the same at both ends."""
    found: dict[Source, int] = {}
    for user, one in contents.items():
        for record in one.records:
            if record.kind == PAIRED:
                assert record.value is not None
                peer, number, name, scale, categories, shape = record.body
                mechanism = Mechanism(name, scale, categories)
                (value,) = StreamSampler(record.value[SALT_BYTES:]).batch(mechanism, tuple(shape), 1)
                assert found.setdefault(pair_source(user, peer, number), value) == value
    return found


@pytest.mark.parametrize("text", ALL)
def test_undisturbed(text: str) -> None:
    assert len(judged(world_of(text, 1), text)) == world_of(text, 1).run.n


@pytest.mark.parametrize(("text", "peer"), everybody(*ALL))
def test_a_crash_at_any_record_loses_no_round_and_draws_nothing_twice(text: str, peer: Peer) -> None:
    for world in crashed_at_a_fourth(text, peer):
        judged(world, text)
        assert world.out == []


@pytest.mark.parametrize("part", range(4))
def test_two_crashes_on_a_bad_network(part: int) -> None:
    for world, text in crashed_twice(ALL, range(25 * part, 25 * part + 25), **LOSSY):
        judged(world, text)


@pytest.mark.parametrize("text", [RING, FAST, PAIRS, CHANGING, gossip(6, "complete", "rounds = 3"), *SHARED])
def test_the_others_go_on_without_somebody_who_never_returns(text: str) -> None:
    counts = record_counts(text)
    for gone in (peer for peer in counts if is_user(peer)):
        for record in range(3, counts[gone] + 1, 7):
            world = world_of(text, 1, Crash(gone, at_record=record, down_s=None))
            finals = judged(world, text)
            assert world.out in ([gone], []), "after the result it is missed by nobody"
            assert set(finals) >= set(range(world.run.n)) - {gone}


@pytest.mark.parametrize("text", [RING, FAST, PAIRS, CHANGING])
@pytest.mark.parametrize("side", [{0}, {3}, {1, 2}])
def test_a_partition_that_heals_in_time_leaves_no_bias(text: str, side: set[Peer]) -> None:
    """The deciders go on without whom they cannot reach only after their patience."""
    for start_s in (0.01, 0.02, 0.04):
        world = world_of(text, 1, partitions=(Partition(start_s, start_s + 2.0, frozenset(side)),))
        judged(world, text)
        assert world.out == []


def test_one_user_and_two() -> None:
    for text in (gossip(1, "complete"), gossip(2, "complete"), gossip(2, "path", "activations = 3", "randomized")):
        judged(world_of(text, 1), text)


def test_message_noise_keeps_states_clean_and_is_in_the_forms() -> None:
    text = gossip(4, "ring", "rounds = 3\nmessage_sigma = 0.5")
    world = world_of(text, 1)
    world.run_to_end()
    evidence = evidence_of(world, text)
    assert verify(evidence).verified == COMPLETE
    found = outcome(world.run, evidence.views, [])
    assert found.variances is not None
    clean = outcome(world_run(RING), evidence_run(RING).views, [])
    assert np.all(np.diag(found.variances) > np.diag(clean.variances))


def world_run(text: str) -> Any:
    return world_of(text, 1).run


def evidence_run(text: str) -> Evidence:
    world = world_of(text, 1)
    world.run_to_end()
    return evidence_of(world, text)
