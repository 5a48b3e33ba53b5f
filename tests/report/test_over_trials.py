from __future__ import annotations

import math
from dataclasses import replace

import pytest

from p2pdp.files.spec import load_spec
from p2pdp.report.over_trials import sigmas_in, with_trials
from p2pdp.runs.simulate import simulate_once
from tests.support.sources import TOP

RESULT = simulate_once(load_spec(TOP / "deploy" / "samples" / "walk_sgd.toml"), fast=True)


def scored(loss: float) -> dict[str, float | None]:
    return {"loss": loss, "score": None}


def test_mean_and_the_standard_error_of_the_mean() -> None:
    line = {"loss": [1.0, 2.0], "score": [None, None]}
    first = replace(
        RESULT, scores=scored(1.0), baselines={"local": {"sigma": 2.0, **scored(5.0)}}, curves={"of": {"run": line}}
    )
    second = replace(
        first, scores=scored(3.0), baselines={"local": {"sigma": 2.0, **scored(5.0)}},
        curves={"of": {"run": {"loss": [1.0, 6.0], "score": [None, None]}}},
    )  # fmt: skip
    made = with_trials(first, [first, second])
    assert made.scores is not None
    assert made.curves is not None
    assert made.scores["loss"] == 1.0
    over = made.scores["over_trials"]
    assert (over["trials"], over["loss"]["mean"]) == (2, 2.0)
    assert over["loss"]["standard_error"] == pytest.approx(math.sqrt(2.0) / math.sqrt(2.0))
    assert over["score"] == {"mean": None, "standard_error": None}
    assert made.baselines["local"]["over_trials"]["loss"] == {"mean": 5.0, "standard_error": 0.0}
    assert made.curves["of"]["run"]["over_trials"]["loss"] == {"mean": [1.0, 4.0], "standard_error": [0.0, 2.0]}
    assert with_trials(first, [first]).scores["over_trials"]["loss"]["standard_error"] is None  # type: ignore[index]


def test_noise_for_further_trials_is_that_of_the_first() -> None:
    sigmas = sigmas_in(RESULT)
    assert sigmas is not None
    assert set(sigmas) == {"local", "central"}
    assert sigmas_in(replace(RESULT, scores=None)) is None
