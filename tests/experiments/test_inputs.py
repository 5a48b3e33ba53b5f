from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.experiments import inputs
from p2pdp.experiments.contract import Caption, Experiment, Made, Setting
from p2pdp.files.paper_data import GRAPHS
from p2pdp.topology.graphs import graph_of_edges

QUICK = Setting(quick=True)


CAPTION = Caption("Curves.", "One with the other.", "A gap.", "None.")


def _needing(*files: str) -> Experiment:
    return Experiment("x-fig1", "t", lambda _setting: [], lambda _setting, _answers: Made((), (), ()), CAPTION, files)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_stand_in_graph_is_connected_and_has_few_with_many_friends(name: str) -> None:
    found = inputs.graph(QUICK, name)
    graph = graph_of_edges(found.n, found.edges)
    degrees = sorted(graph.degree(user) for user in range(graph.n))
    assert len(graph.components) == 1
    assert degrees[-1] > 4 * degrees[len(degrees) // 2]
    assert np.array_equal(found.edges, inputs.graph(QUICK, name).edges)


def test_stand_ins_differ_from_each_other() -> None:
    assert not np.array_equal(inputs.graph(QUICK, "facebook").edges, inputs.graph(QUICK, "twitch").edges)
    egos = inputs.egos(QUICK)
    assert len({len(one.edges) for one in egos.values()}) == len(egos) == 3


@pytest.mark.parametrize(("name", "columns"), [("houses", 8), ("spambase", 57), ("cardio", 11)])
def test_a_stand_in_table_has_two_classes(name: str, columns: int) -> None:
    found = inputs.table(QUICK, name)
    assert found.features.shape[1] == columns
    assert 0.3 < (found.labels == 1.0).mean() < 0.7
    assert set(found.labels.tolist()) == {-1.0, 1.0}


def test_real_tables_have_the_papers_classes(data_dir: Path) -> None:
    setting = Setting(data=data_dir)
    shares = {"houses": 8_914 / 20_640, "spambase": 1_813 / 4_601, "cardio": 34_979 / 70_000}
    for name, columns in (("houses", 8), ("spambase", 57), ("cardio", 11)):
        found = inputs.table(setting, name)
        assert found.features.shape[1] == columns
        assert (found.labels == 1.0).mean() == pytest.approx(shares[name], abs=1e-12)


def test_missing_data_is_said_before_anything_begins(tmp_path: Path) -> None:
    needing = _needing(inputs.table_file("spambase"))
    inputs.check_data([needing], QUICK)
    assert inputs.digests(needing, QUICK) == {"spambase.data": "stand-in"}
    with pytest.raises(UsageError, match=r"x-fig1: needs spambase\.data"):
        inputs.check_data([needing], Setting())
    with pytest.raises(UsageError, match=r"spambase\.data"):
        inputs.check_data([needing], Setting(quick=True, data=tmp_path))
    (tmp_path / "spambase.data").write_text("1,0\n")
    inputs.check_data([needing], Setting(data=tmp_path))
    assert len(inputs.digests(needing, Setting(data=tmp_path))["spambase.data"]) == 64
