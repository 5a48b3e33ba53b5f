from __future__ import annotations

from random import Random

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.ledger.records import SENT, public_message
from p2pdp.protocols.shuffle.analysis.relay_timing import Timing, laws_with, timing_of
from p2pdp.protocols.shuffle.messages import RELAY
from p2pdp.sim.faults import Crash
from p2pdp.topology.graphs import Graph, complete_graph, make_graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from tests.support.runs import quiet, run_of
from tests.support.shuffle_specs import shuffle

RING = shuffle(5, 'kind = "ring"', terms="rounds = 4\nstay = 0.25")


def walked(graph: Graph, stay: float, rounds: int, timing: Timing, start: int, dice: Random) -> int:
    """One report, by the words of `shuffling.py` and not by its law."""
    place, number = start, 1
    while number <= rounds:
        if dice.random() < stay or not graph.neighbours[place]:
            number += 1
            continue
        to = dice.choice(list(graph.neighbours[place]))
        if (place, to, number) in timing.passed_over:
            number += 1
            continue
        place, number = to, timing.late.get((place, to, number), number + 1)
    return place


@pytest.mark.parametrize("kind", ["ring", "star", "complete"])
def test_in_time_a_report_has_the_law_of_the_walk(kind: str) -> None:
    graph = complete_graph(6) if kind == "complete" else make_graph(GraphPart(kind=kind), 6, 0)
    laws = laws_with(graph, 0.3, 5, Timing())
    np.testing.assert_allclose(laws, all_laws(walk_matrix(graph, 0.3), 5), atol=1e-14)


@pytest.mark.parametrize("passed_over", [set(), {(0, 4, 1), (3, 4, 2), (0, 1, 3)}])
def test_late_ones_skip_rounds(passed_over: set[tuple[int, int, int]]) -> None:
    graph = make_graph(GraphPart(kind="ring"), 5, 0)
    timing = Timing({(0, 1, 1): 4, (2, 1, 2): 5, (1, 0, 3): 5}, passed_over)
    laws = laws_with(graph, 0.2, 4, timing)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0)
    dice = Random(3)  # noqa: S311 - a simulation
    runs = 20_000
    for start in range(5):
        counts = np.zeros(5)
        for _ in range(runs):
            counts[walked(graph, 0.2, 4, timing, start, dice)] += 1
        assert np.all(np.abs(counts / runs - laws[start]) < 5.5 * np.sqrt(laws[start] / runs) + 1e-9)


def test_who_has_no_neighbour_keeps_its_report() -> None:
    assert laws_with(complete_graph(1), 0.0, 3, Timing()).tolist() == [[1.0]]


def test_a_quiet_run_is_in_time() -> None:
    run = quiet(RING)
    timing = timing_of(run.contents(), run.plan.plan.rounds)
    assert (timing.times, timing.late, timing.passed_over) == (0, {}, set())
    assert timing.most_on_edge >= 1


def test_somebody_who_was_away_was_late() -> None:
    """The others' rounds went on without it after their patience."""
    run = run_of(RING, Crash(2, at_record=14, down_s=4.5))
    timing = timing_of(run.contents(), run.plan.plan.rounds)
    assert 2 in {sender for sender, _, _ in timing.late}
    assert all(number + 1 < when <= 5 for (_, _, number), when in timing.late.items())
    assert 2 in {late for _, late, _ in timing.passed_over}
    assert timing.times == len(timing.late) + len(timing.passed_over)


def test_what_happened_fits_the_timing() -> None:
    """No report went to anybody who was passed over, and what came late went on when the timing says."""
    for seed in range(8):
        run = run_of(
            RING.replace("seed = 1", f"seed = {seed}").replace("rounds = 4", "rounds = 9"),
            Crash(2, at_record=20, down_s=4.5),
        )
        timing = timing_of(run.contents(), 9)
        assert timing.times
        for user, contents in run.contents().items():
            for record in contents.records if user >= 0 else ():
                if record.kind == SENT and record.body.receiver >= 0 and public_message(record).type == RELAY:
                    assert (user, record.body.receiver, public_message(record).fields[1]) not in timing.passed_over
