from __future__ import annotations

import math
from pathlib import Path

import pytest

from p2pdp.accounting.contract import account
from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.shuffles import (
    DELTA,
    KAPPA_AUTO,
    looped_users,
    printed_all,
    printed_single,
    rested,
    social_graph,
    sound,
)
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.walk_mixing import mixing_of, mixing_rounds


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
