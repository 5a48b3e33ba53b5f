from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.shuffle_graphs import looped_users, rested, social_graph
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.walk_mixing import mixing_of, mixing_rounds


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
