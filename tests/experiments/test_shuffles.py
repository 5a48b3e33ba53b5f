from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.shuffles import (
    DELTA,
    KAPPA_AUTO,
    gamma,
    gamma_printed,
    looped_users,
    printed_all,
    printed_single,
    rested,
    social_graph,
    sound,
    spread_bound,
)
from p2pdp.files.tables import read_edge_list
from p2pdp.privacy.contract import account
from p2pdp.topology.graphs import complete_graph, graph_of_edges, make_graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from p2pdp.topology.report_walks.mixing import mixing_of, mixing_rounds
from tests.support.spreads import spreads_from


def test_printed_epsilons_are_those_of_the_named_theorems() -> None:
    n, sum_p2 = 22_470, 4.0 / 22_470
    asked = {"epsilon0": 0.5, "n": n, "sum_p2": sum_p2, "delta": DELTA / 2.0, "delta2": DELTA / 2.0}
    found = account("network_shuffle_all", asked).outputs
    assert printed_all(0.5, n, sum_p2) == found["epsilon"]
    assert printed_all(0.5, n, sum_p2, corrected=True) == found["epsilon_corrected"]
    single = account("network_shuffle_single", {**asked, "delta": DELTA}).outputs
    assert printed_single(0.5, sum_p2) == single["epsilon"]
    assert printed_all(0.5, 10_000, 1e-4) == pytest.approx(0.460404, abs=1e-6)  # guide/accounting.md, section 6


def test_sound_epsilon_is_that_of_the_report_where_walks_do_not_overlap() -> None:
    assert sound(0.7, 1000, 0.0) == 0.7
    assert sound(1.0, 22_470, 1.0) == pytest.approx(0.034, abs=5e-4)
    assert sound(1.0, 22_470, KAPPA_AUTO) == pytest.approx(0.038, abs=5e-4)
    assert math.isclose(KAPPA_AUTO, 0.9 / 1.1)


def test_a_stand_in_is_connected_and_has_no_loops() -> None:
    setting = Setting(quick=True)
    assert social_graph(setting, "twitch").connected
    assert len(looped_users(setting, "facebook")) == 0


def test_a_regular_graph_rests_evenly() -> None:
    graph = make_graph(GraphPart("regular", degree=6), 60, 1)
    found, mixing = rested(graph), mixing_of(graph)
    assert found.rounds == mixing_rounds(mixing)
    assert found.sum_p2 == pytest.approx(1.0 / 60 + (1.0 - mixing.alpha) ** (2 * found.rounds))
    assert found.kappa >= 0.9 / 1.1 * (1.0 - 1e-9)


def test_facebook_has_loops(data_dir: Path) -> None:
    assert len(looped_users(Setting(quick=True, data=data_dir), "facebook")) == 179


SIX_REGULAR = make_graph(GraphPart("regular", degree=6), 60, 2)


def test_spreads_are_sums_of_squares_of_laws() -> None:
    walk = walk_matrix(make_graph(GraphPart("erdos_renyi", probability=0.4), 15, 3), 0.1)
    found = spreads_from(walk, np.arange(15), 6)
    for t in range(7):
        np.testing.assert_allclose(found[t], (all_laws(walk, t) ** 2).sum(axis=1), rtol=1e-12)


def test_figure_5_on_a_6_regular_graph() -> None:
    """S falls in every round; rho^2 S, what Theorem 5.4 takes, rises and falls early and converges."""
    walk = walk_matrix(SIX_REGULAR)
    laws = [all_laws(walk, t)[0] for t in range(61)]
    spread = spreads_from(walk, np.array([0]), 60)[:, 0]
    ratio = np.array([law.max() / law[law > 0.0].min() for law in laws])
    back = [laws[2 * t][0] for t in range(7)]
    np.testing.assert_allclose(spread[:7], back, rtol=1e-12)
    assert np.all(np.diff(spread) < 1e-15)
    early = np.sign(np.diff(ratio[:6] ** 2 * spread[:6]))
    assert {-1.0, 1.0} <= set(early.tolist())
    assert (spread[60], ratio[60]) == pytest.approx((1 / 60, 1.0), rel=1e-5)


def test_the_bound_holds_for_every_start_and_equation_7_does_not() -> None:
    graph = make_graph(GraphPart("star"), 30, 0)
    walk, alpha = walk_matrix(graph, 0.3), mixing_of(graph, 0.3).alpha
    exceeded = 0
    for t in range(12):
        worst = (all_laws(walk, t) ** 2).sum(axis=1).max()
        bound, printed = spread_bound(walk, alpha, t)
        assert worst <= bound * (1 + 1e-12)
        exceeded += worst > printed
    assert exceeded


def test_gamma_is_1_on_regular_graphs() -> None:
    assert gamma(SIX_REGULAR) == pytest.approx(1.0)
    assert gamma(complete_graph(1)) == 1.0
    assert gamma(make_graph(GraphPart("star"), 4, 0)) == pytest.approx(4 * (9 + 3) / 36)


def test_the_printed_gamma_counts_edges_at_one_end() -> None:
    edges = np.array([[0, 1], [0, 2], [1, 2]])
    assert gamma_printed(3, edges) == pytest.approx(3 * (4 + 1) / 9)
    assert gamma_printed(3, edges, loops=np.array([2])) == pytest.approx(3 * (4 + 1 + 1) / 16)


@pytest.mark.parametrize(
    ("name", "defined", "printed"),
    [("twitch_de", 7.9152, 7.5840), ("deezer_europe", 2.4675, 3.5633), ("facebook_pages", 4.0181, 5.0064)],
)
def test_table_4(name: str, defined: float, printed: float, data_dir: Path) -> None:
    """[LTT22, Table 4]."""
    path = data_dir / f"{name}_edges.csv.gz"
    edges = read_edge_list(path)
    with gzip.open(path, "rt") as lines:
        pairs = [line.strip().split(",") for line in lines]
    place = {label: number for number, label in enumerate(edges.labels)}
    loops = np.array([place[a] for a, b in pairs if a == b and a in place], dtype=np.int64)
    assert gamma(graph_of_edges(edges.n, edges.edges)) == pytest.approx(defined, abs=5.1e-5)
    assert gamma_printed(edges.n, edges.edges, loops) == pytest.approx(printed, abs=5.1e-5)
