from __future__ import annotations

from pathlib import Path

import numpy as np

import p2pdp
from p2pdp.runs.model import MODEL_FILE
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import TABLE, learning, prepared
from tests.support.small import RING, recorded


def test_the_model_can_be_loaded_and_tells_the_classes(tmp_path: Path) -> None:
    """From raw rows, by what the file says alone."""
    text = learning(
        4, 600, sigma=None, data="standardize = { low = [20.0, 0.0], high = [60.0, 10.0] }\nunit_norm = true"
    )
    result = p2pdp.simulate(prepared(text)[0].spec, tmp_path / "run")
    with np.load(tmp_path / "run" / MODEL_FILE) as model:
        assert model["model"].tolist() == result.estimate
        raw = np.genfromtxt(TABLE, delimiter=",", skip_header=1)
        features = (
            2 * (np.clip(raw[:, :2], model["low"], model["high"]) - model["low"]) / (model["high"] - model["low"]) - 1
        )
        assert bool(model["unit_norm"])
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        told = features @ model["weights"] + model["intercept"] >= 0
        assert str(model["task"]) == "logistic_regression"
    assert result.scores is not None
    assert (told == (raw[:, 2] > 0)).mean() == result.scores["score"]
    assert result.scores["score"] > 0.85


def test_what_was_standardized_by_estimates_says_so(tmp_path: Path) -> None:
    told = (
        "standardize = { mean = [40.0, 5.0], deviation = [12.0, 3.0], epsilon = 0.5, delta = 1e-6 }\nclip = [-2.0, 2.0]"
    )
    text = learning(4, 8, data=told, task='kind = "logistic_regression"\nclip = 1.0\nrate = 0.2\nintercept = false')
    p2pdp.simulate(prepared(text)[0].spec, tmp_path / "run")
    with np.load(tmp_path / "run" / MODEL_FILE) as model:
        assert model["mean"].tolist() == [40.0, 5.0]
        assert model["deviation"].tolist() == [12.0, 3.0]
        assert model["clip"].tolist() == [-2.0, 2.0]
        assert float(model["intercept"]) == 0.0
        assert len(model["weights"]) == 2


def test_the_same_run_writes_the_same_bytes(tmp_path: Path) -> None:
    spec = prepared(learning(3, 6))[0].spec
    for name in ("one", "two"):
        p2pdp.simulate(spec, tmp_path / name)
    first, second = ((tmp_path / name / MODEL_FILE).read_bytes() for name in ("one", "two"))
    assert first == second


def test_other_runs_have_none(tmp_path: Path) -> None:
    assert not (recorded(tmp_path, RING) / MODEL_FILE).exists()


def test_of_gossip_there_is_the_published_mean_or_everybodys_own(tmp_path: Path) -> None:
    own = p2pdp.simulate(prepared(gossip_learning(4, "ring"))[0].spec, tmp_path / "own")
    with np.load(tmp_path / "own" / MODEL_FILE) as model:
        assert model["users"].tolist() == [0, 1, 2, 3]
        assert model["model"].tolist() == [output["value"] for output in own.outputs]
        assert model["weights"].shape == (4, 2)
        assert model["intercept"].shape == (4,)
    text = gossip_learning(4, "ring", 'rounds = 2\npublish = "all"')
    mean = p2pdp.simulate(prepared(text)[0].spec, tmp_path / "mean")
    with np.load(tmp_path / "mean" / MODEL_FILE) as model:
        assert model["model"].tolist() == mean.estimate
        assert "users" not in model
