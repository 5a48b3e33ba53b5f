from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import account

TERMS: dict[str, Any] = {"graph": "regular", "n": 60, "degree": 6, "out": 6, "delta": 1e-5, "seed": 7}


def test_uniform_masks_hide_a_user_among_all_who_are_left() -> None:
    found = account("pairwise", {**TERMS, "sigma": 0.25}).outputs
    assert found["hidden"] == 54
    assert found["mu"] == pytest.approx(1 / (0.25 * math.sqrt(54)), rel=1e-12)
    assert found["epsilon"] == gaussian.epsilon_of(1e-5, found["mu"])
    assert found["error"] == pytest.approx(0.25 * math.sqrt(60))
    assert 0.0 <= found["broken"] < 0.1


def test_gaussian_draws_hide_less_the_smaller_they_are() -> None:
    """A complete graph of m has eigenvalue m, m - 1 times."""
    asked = {"graph": "complete", "n": 20, "out": 4, "sigma": 0.5, "delta": 1e-5}
    for pair_sigma in (0.1, 1.0, 20.0):
        found = account("pairwise", {**asked, "pair_sigma": pair_sigma}).outputs
        leak = 1 / (16 * 0.25) + 15 / 16 / (0.25 + 16 * pair_sigma**2)
        assert found["mu"] == pytest.approx(math.sqrt(leak), rel=1e-9)


@pytest.mark.parametrize("slack", [None, 0.1])
def test_noise_that_is_found_reaches_the_target_next_to_exactly(slack: float | None) -> None:
    found = account("pairwise", {**TERMS, "epsilon": 2.0} | ({} if slack is None else {"slack": slack})).outputs
    assert found["epsilon"] <= 2.0
    assert found["epsilon"] == pytest.approx(2.0, rel=1e-6)
    relative = found["error"] / found["error_curator"]
    assert relative == pytest.approx(math.sqrt((1.0 + (slack or 0.0)) * 60 / 54), rel=1e-6)
    assert ("pair_sigma" in found) == (slack is not None)
    assert account("pairwise", {**TERMS, **{key: found[key] for key in ("sigma", "pair_sigma") if key in found}})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"sigma": 1.0, "epsilon": 1.0},
        {"epsilon": 1.0, "pair_sigma": 1.0},
        {"sigma": 1.0, "slack": 0.1},
        {"sigma": 1.0, "out": 60},
    ],
)
def test_what_does_not_fit_together_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        account("pairwise", {**TERMS, **more})


def test_a_ring_breaks_into_single_users() -> None:
    found = account("pairwise", {"graph": "ring", "n": 1000, "out": 100, "sigma": 1.0, "delta": 1e-5}).outputs
    assert (found["hidden"], found["broken"]) == (1, 1.0)
    assert found["mu"] == pytest.approx(1.0)
    assert np.isclose(found["epsilon"], 4.37717809568122, rtol=1e-9)


@pytest.mark.parametrize("pairs", [{}, {"pair_sigma": 5.0}])
def test_one_placement_bounds_no_other(pairs: dict[str, float]) -> None:
    asked = {"graph": "regular", "n": 40, "degree": 4, "out": 12, "sigma": 1.0, "delta": 1e-5, "seed": 1, **pairs}
    found = account("pairwise", asked)
    assert not found.bound
    (placed,) = (one for one in found.assumptions if "seed 1" in one)
    assert f"{found.outputs['broken']:.1%}" in placed
    others = [account("pairwise", {**asked, "seed": seed}).outputs["mu"] for seed in range(2, 5)]
    assert len({*others, found.outputs["mu"]}) > 1
    assert account("pairwise", {**asked, "out": 0}).bound
    assert account(
        "pairwise", {key: value for key, value in asked.items() if key != "degree"} | {"graph": "complete"}
    ).bound


def test_noise_that_is_found_for_one_placement_is_no_bound_for_others() -> None:
    found = account("pairwise", {**TERMS, "epsilon": 2.0, "slack": 0.1})
    assert not found.bound
    (placed,) = (one for one in found.assumptions if "random placement" in one)
    share = float(placed.split("told more in ")[1].split("%")[0])
    assert 0.0 <= share <= 100.0
