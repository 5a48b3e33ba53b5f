"""A model learned across machines: each owner's own table, and what only its owner is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.runs.prepared import MODEL_FILE
from tests.support.across import SHARED, Across
from tests.support.learners import RANGES, TABLE, learning


def test_owners_learn_together_from_their_own_tables(tmp_path: Path) -> None:
    lines = TABLE.read_text().splitlines()
    task = 'kind = "logistic_regression"\nclip = 1.0\nrate = 0.2\ntest = 0.2'
    columns = f'{RANGES}\ncolumns = ["age", "dose"]'  # how long a model is must be known where nobody has data
    spec = learning(3, 60, task=task, data=columns).replace("seed = 3\n", "").replace(str(TABLE), "nobody.csv")
    with Across(tmp_path, spec, 3) as run:
        for number in range(3):
            own = [lines[0], *lines[1 + number * 20 : 21 + number * 20]]
            (tmp_path / f"own{number}.csv").write_text("\n".join(own) + "\n")
            config = tmp_path / f"n{number}.toml"
            data = f'kind = "csv"\npath = "own{number}.csv"'
            config.write_text(config.read_text().replace('kind = "uniform"', data))
        boot = run.bootstrap()
        nodes = run.all_nodes(*SHARED)
        told = [node.document() for node in nodes]
        result = boot.document()
    assert {tuple(one["estimate"]) for one in told} == {tuple(result["estimate"])}
    for one in told:
        assert one["own_scores"]["loss"] > 0.0
        assert one["own_scores"]["test_score"] is not None
    assert result["truth"] is None
    assert "scores" not in result
    assert result["baselines"]["local"]["sigma"] > result["baselines"]["central"]["sigma"]
    claims = p2pdp.audit(tmp_path / "boot").claims
    assert claims[0].method == "iteration"
    with np.load(tmp_path / "boot" / MODEL_FILE) as model:
        assert model["model"].tolist() == pytest.approx(result["estimate"])
