"""A model learned by real processes: whoever is killed, each step is taken once, with noise that was drawn once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

import p2pdp
from p2pdp.auditor.verify import COMPLETE
from p2pdp.core.arrays import Floats
from p2pdp.files.spec import parse_spec
from p2pdp.runs.audit import audit, verify
from p2pdp.runs.prepared import MODEL_FILE
from p2pdp.tasks.examples import Examples
from tests.support.gossip_learners import gossip_learning
from tests.support.launched import ROLES, Launched, judge_folder
from tests.support.learners import learning


def test_users_and_bootstrap_are_killed(tmp_path: Path) -> None:
    text = learning(6, 3000, task='kind = "logistic_regression"\nclip = 1.0\nrate = 0.05\ntest = 0.2')
    with Launched(tmp_path, text.replace("seed = 3\n", "patience_s = 6\n")) as run:
        run.wait_for_everybody()
        for who in (2, ROLES, 0, 5):
            run.wait_for_progress(20_000)
            run.kill(who)
        result = run.completes()
    assert result["missing"] == []
    assert result["scores"]["test_score"] > 0.5
    assert set(result["baselines"]) == {"local", "central", "none"}
    assert judge_folder(run.folder).verification.verified == COMPLETE
    assert {claim.method for claim in audit(run.folder, None, None, allow_missing=False).claims} == {
        "iteration",
        "local",
        "published:complete_sgd",
    }
    with np.load(run.folder / MODEL_FILE) as model:
        assert model["model"].tolist() == result["estimate"]
    assert not any(str(number) in run.other for number in result["estimate"])


def test_learners_by_gossip_and_bootstrap_are_killed(tmp_path: Path) -> None:
    task = 'kind = "logistic_regression"\nclip = 1.0\nrate = 0.1\nrounds = 150\naveraging = "linear"\ntest = 0.2'
    text = gossip_learning(6, "changing", "rounds = 2", task=task, seed=False, patience_s=6)
    with Launched(tmp_path, text) as run:
        run.wait_for_everybody()
        for who in (2, ROLES, 5):
            run.wait_for_progress(20_000)
            run.kill(who)
        result = run.completes()
    assert result["missing"] == []
    assert result["rounds"] == 300
    assert [output["user"] for output in result["outputs"]] == list(range(6))
    assert result["scores"]["test_score"] > 0.5
    assert set(result["baselines"]) == {"local", "central", "none"}
    assert verify(run.folder).problems == []
    claims = audit(run.folder, None, None, allow_missing=False).claims
    assert (claims[0].method, claims[0].bound) == ("local", True)
    assert "model:non-adaptive" in {claim.method for claim in claims if not claim.bound}
    with np.load(run.folder / MODEL_FILE) as model:
        assert model["model"].tolist() == [output["value"] for output in result["outputs"]]
    assert not any(str(number) in run.other for number in result["outputs"][0]["value"])


PATIENCE_S = 2.6
STEP_S = 2.5 * PATIENCE_S
HERE = os.getpid()


class SlowAtFirst(p2pdp.Objective):
    """Least squares, whose first step takes longer than silence that puts a user out: two patiences and a quarter."""

    def dimension(self, columns: int) -> int:
        return columns

    def loss(self, model: Floats, examples: Examples) -> float:
        return float(((examples.features @ model - examples.targets) ** 2).mean())

    def gradient(self, model: Floats, examples: Examples) -> Floats:
        off = examples.features @ model - examples.targets
        return np.asarray(2.0 * off @ examples.features / len(examples))

    def clipped_gradient(self, model: Floats, examples: Examples, clip: float) -> Floats:
        if not model.any() and os.getpid() != HERE:  # in a node, and not where baselines are computed
            time.sleep(STEP_S)
        return super().clipped_gradient(model, examples, clip)


def test_a_user_that_computes_for_long_is_not_taken_for_silent(tmp_path: Path) -> None:
    text = learning(4, 8, task='kind = "own"\nclip = 1.0\nrate = 0.05').replace(
        "seed = 3\n", f"patience_s = {PATIENCE_S}\n"
    )
    result = p2pdp.run(parse_spec(text, None), task=SlowAtFirst(), out=tmp_path / "run")
    assert result.seconds > STEP_S
    assert (result.missing, result.hops) == ([], 8)
    assert verify(tmp_path / "run").verified == COMPLETE
