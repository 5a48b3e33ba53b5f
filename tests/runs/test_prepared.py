"""An objective of the caller's own, through each door that takes one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.runs.prepared import MODEL_FILE, on_seed, prepare, run_id
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import TABLE, learning, prepared
from tests.support.small import COMPLETE, RING, recorded, spec_file


def test_a_name_tells_specs_seeds_and_ways_apart(tmp_path: Path) -> None:
    ring, complete = (p2pdp.load_spec(spec_file(tmp_path, text)) for text in (RING, COMPLETE))
    names = [
        run_id(on_seed(spec, seed), fast=fast) for spec in (ring, complete) for seed in (0, 1) for fast in (False, True)
    ]
    assert len(set(names)) == len(names)
    assert {len(name) for name in names} == {16}
    assert run_id(ring, fast=False) == run_id(p2pdp.load_spec(spec_file(tmp_path)), fast=False)


def test_the_place_of_the_spec_and_its_data_makes_no_other_run(tmp_path: Path) -> None:
    names = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "rows.csv").write_text("1\n2\n3\n4\n")
        text = RING.replace('kind = "uniform"', 'kind = "csv"\npath = "rows.csv"')
        names.append(prepare(p2pdp.load_spec(spec_file(folder, text))).run_id)
    assert names[0] == names[1]


def test_data_are_read_once(tmp_path: Path) -> None:
    prepared = prepare(p2pdp.load_spec(spec_file(tmp_path)))
    assert prepared.rows(2) is prepared.rows(2)
    assert prepared.seed == 5
    assert "lru_cache" not in repr(prepared)


@pytest.mark.parametrize("seed", [2**128, 10**60])
def test_a_seed_without_a_name_is_refused(seed: int, tmp_path: Path) -> None:
    spec = p2pdp.load_spec(spec_file(tmp_path))
    with pytest.raises(UsageError, match="seed"):
        on_seed(spec, seed)
    path = spec_file(tmp_path, RING.replace("seed = 5", f"seed = {2**128 - 1}"))
    p2pdp.simulate(path)
    for fast in (False, True):
        with pytest.raises(UsageError, match="last trial"):
            p2pdp.simulate(path, trials=2, fast=fast)


class Smooth(p2pdp.Objective):
    """Logistic regression, written by somebody else."""

    name = "smooth"

    def gradient(self, model: Any, examples: p2pdp.Examples) -> Any:
        margins = examples.targets * (examples.features @ model)
        return -(examples.targets / (1.0 + np.exp(margins))) @ examples.features / len(examples)

    def loss(self, model: Any, examples: p2pdp.Examples) -> float:
        return float(np.logaddexp(0.0, -examples.targets * (examples.features @ model)).mean())

    def guarantees(self, norm_max: float | None) -> p2pdp.Guarantees:
        assert norm_max is not None
        return p2pdp.Guarantees(convex=True, lipschitz=norm_max, smoothness=norm_max**2 / 4)


class Wrong(Smooth):
    def gradient(self, model: Any, examples: p2pdp.Examples) -> Any:
        return np.full(2, np.nan)


OWN = learning(4, 20, task='kind = "own"\nclip = 1.5\nrate = 0.2')


def own() -> p2pdp.Spec:
    return prepared(OWN, own=Smooth())[0].spec


def test_it_is_simulated_audited_and_planned(tmp_path: Path) -> None:
    result = p2pdp.simulate(own(), tmp_path / "run", task=Smooth())
    assert isinstance(result.estimate, list)
    assert len(result.estimate) == 2
    assert result.scores is not None
    assert result.scores["loss"] < 0.6
    claims = p2pdp.audit(tmp_path / "run").claims
    assert claims[0].method == "iteration"
    assert any("promises" in text for text in claims[0].assumptions)
    assert p2pdp.plan(own(), task=Smooth()).claims[0].method == "iteration"
    assert p2pdp.attack(tmp_path / "run", observer=1).observer == 1


def test_it_learns_what_the_same_objective_of_ours_learns() -> None:
    ours = learning(4, 20, task='kind = "logistic_regression"\nclip = 1.5\nrate = 0.2\nintercept = false', sigma=None)
    mine = OWN.replace('mechanism = "gaussian"\nsigma = 0.8', 'mechanism = "none"')
    both = [
        p2pdp.simulate(prepared(ours)[0].spec),
        p2pdp.simulate(prepared(mine, own=Smooth())[0].spec, task=Smooth()),
    ]
    assert both[0].estimate == pytest.approx(both[1].estimate, abs=1e-8)


def test_processes_get_it_by_being_forked(tmp_path: Path) -> None:
    spec = prepared(OWN.replace("seed = 3\n", ""), own=Smooth())[0].spec
    result = p2pdp.run(spec, tmp_path / "run", task=Smooth())
    assert result.missing == []
    assert result.scores is not None
    assert p2pdp.resume(tmp_path / "run", task=Smooth()).estimate == result.estimate
    assert p2pdp.resume(tmp_path / "run").estimate == result.estimate, "a finished run asks for nothing"
    with pytest.raises(p2pdp.UsageError, match="--spawn"):
        p2pdp.run(spec, tmp_path / "other", spawn=True, task=Smooth())


def test_it_takes_the_place_of_what_the_spec_learns(tmp_path: Path) -> None:
    result = p2pdp.simulate(prepared(learning(4, 20))[0].spec, tmp_path / "run", task=Smooth())
    assert isinstance(result.estimate, list)
    assert len(result.estimate) == 2, "there is no intercept unless the objective has one"
    assert 'kind = "own"' in (tmp_path / "run" / "spec.toml").read_text()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(p2pdp.UsageError, match=r"\[task\] kind: .* task="):
        p2pdp.simulate(replace(own(), task=replace(own().task, own=None)))
    with pytest.raises(p2pdp.UsageError, match="derived from"):
        p2pdp.simulate(own(), task=3)  # type: ignore[arg-type]
    with pytest.raises(p2pdp.UsageError, match="learns nothing"):
        p2pdp.simulate(parse_spec(RING, None), task=Smooth())


def test_a_gradient_that_is_not_finite_counts_as_zero_and_ends_no_run() -> None:
    result = p2pdp.simulate(own(), task=Wrong())
    assert np.isfinite(np.array(result.estimate, dtype=float)).all()


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
