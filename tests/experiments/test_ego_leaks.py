from __future__ import annotations

import numpy as np

from p2pdp.experiments.contract import Setting
from p2pdp.experiments.ego_leaks import ego_lines, ego_pieces, ego_table, joined


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
