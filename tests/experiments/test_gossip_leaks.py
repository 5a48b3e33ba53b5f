from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import Line, Setting
from p2pdp.experiments.gossip_leaks import (
    UNREACHED,
    by_distance,
    distances_from,
    ego_lines,
    ego_pieces,
    ego_table,
    evenly,
    gossip_on,
    joined,
    printed_leaks,
    proved_ranks,
    sized,
    spans,
)
from p2pdp.topology.graphs import complete_graph, graph_of_edges, make_graph


def test_a_hypercube_leaks_as_its_closed_form_says() -> None:
    on = gossip_on(make_graph(GraphPart("hypercube"), 64, 0))
    found = spans(on, [0, 9])
    exact = np.stack([span.leaks for span in found], axis=1)
    grouped = by_distance(on, [0, 9], exact, printed_leaks(on, [0, 9]))
    known = [6 / math.comb(6, k) for k in range(1, 6)] + [1.0]
    assert grouped["exact_mean"] == pytest.approx(known, abs=1e-9)
    assert grouped["pairs"] == [2 * math.comb(6, k) for k in range(1, 7)]
    assert [span.rank for span in found] == proved_ranks(on, [0, 9], found) == [6 * 5 + 2] * 2
    assert grouped["exceeded"] > 0


def test_printed_leaks_add_up_to_the_number_of_messages() -> None:
    on = gossip_on(make_graph(GraphPart("ring"), 12, 0))
    assert printed_leaks(on, [3])[:, 0].sum() == pytest.approx(2 * on.rounds)


def test_observers_are_spread_evenly() -> None:
    assert evenly(10, 3) == [0, 4, 9]
    assert evenly(4, 9) == [0, 1, 2, 3]


def test_smaller_graphs_than_the_papers_settle_nothing() -> None:
    lines = [Line("a", 1.0, 2.0, "differs", "w"), Line("b", 1.0, None, "cannot be known", "")]
    assert sized(Setting(quick=False), lines) == lines
    assert [line.verdict for line in sized(Setting(quick=True), lines)] == ["cannot be known", "cannot be known"]


def test_parts_of_a_graph_come_together() -> None:
    setting = Setting(quick=True)
    (piece,) = ego_pieces(setting, [348])
    found = joined({piece.key: piece.work()})
    one = found[348]
    assert not np.isnan(one["exact"]).any()
    assert one["exact"][one["user"]] == 1.0
    near = np.array(one["distance"]) == 1
    np.testing.assert_allclose(one["exact"][near], 1.0, atol=1e-9)  # a first message is the noised value
    assert np.all(np.array(one["proved"]) <= np.array(one["checked"]))
    assert len(ego_table(found).rows) == one["n"] - 1
    assert [line.verdict for line in ego_lines(setting, found)] == ["cannot be known"]


def test_on_a_ring_they_go_either_way_round() -> None:
    assert distances_from(make_graph(GraphPart(kind="ring"), 6, 0), 1) == [1, 0, 1, 2, 3, 2]


def test_on_a_hypercube_they_count_bits() -> None:
    graph = make_graph(GraphPart(kind="hypercube"), 16, 0)
    found = [distances_from(graph, node) for node in range(16)]
    expected = [[(u ^ v).bit_count() for v in range(16)] for u in range(16)]
    assert found == expected


def test_everybody_is_next_to_everybody_on_a_complete_graph() -> None:
    assert [distances_from(complete_graph(4), node)[node] for node in range(4)] == [0, 0, 0, 0]
    assert distances_from(complete_graph(4), 1) == [1, 0, 1, 1]


def test_where_there_is_no_path() -> None:
    assert distances_from(graph_of_edges(3, [[0, 1]]), 0) == [0, 1, UNREACHED]
