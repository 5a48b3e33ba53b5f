"""An objective of the caller's own, through each door that takes one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.files.spec import parse_spec
from tests.support.learners import learning, prepared
from tests.support.small import RING


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
    with pytest.raises(p2pdp.UsageError, match="takes it from Python"):
        p2pdp.resume(tmp_path / "run")
    with pytest.raises(p2pdp.UsageError, match="--spawn"):
        p2pdp.run(spec, tmp_path / "other", spawn=True, task=Smooth())


def test_it_takes_the_place_of_what_the_spec_learns(tmp_path: Path) -> None:
    result = p2pdp.simulate(prepared(learning(4, 20))[0].spec, tmp_path / "run", task=Smooth())
    assert isinstance(result.estimate, list)
    assert len(result.estimate) == 2, "there is no intercept unless the objective has one"
    assert 'kind = "own"' in (tmp_path / "run" / "spec.toml").read_text()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(p2pdp.UsageError, match="takes it from Python"):
        p2pdp.simulate(replace(own(), task=replace(own().task, own=None)))
    with pytest.raises(p2pdp.UsageError, match="derived from"):
        p2pdp.simulate(own(), task=3)  # type: ignore[arg-type]
    with pytest.raises(p2pdp.UsageError, match="learns nothing"):
        p2pdp.simulate(parse_spec(RING, None), task=Smooth())


def test_a_gradient_that_is_not_finite_stops_it_with_one_sentence() -> None:
    with pytest.raises(p2pdp.UsageError, match="finite"):
        p2pdp.simulate(own(), task=Wrong())
