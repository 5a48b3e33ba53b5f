from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from p2pdp.experiments import descents
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.descents import DELTA, METHODS, OURS, Case, dealt, learned, noise_levels, our_plan, quick
from p2pdp.experiments.inputs import Labelled, table
from p2pdp.privacy.contract import account
from p2pdp.privacy.iteration.law import Walked, exposure_law
from p2pdp.privacy.visits import gaussian_epsilon

QUICK = Setting(quick=True)
SMALL = Case(n=20, steps=400, trials=2, points=4)


def test_the_papers_noise_levels() -> None:
    """[ABR23, section 5]: 5.87 local, 0.70 central, 1.97 to 1.22 network."""
    found = noise_levels(Case())
    assert found["local"] == pytest.approx(5.87, abs=0.005)
    assert found["central"] == pytest.approx(0.70, abs=0.005)
    assert found["network_first"] == pytest.approx(1.97, abs=0.005)
    assert found["network"] == pytest.approx(1.22, abs=0.01)


def test_more_contributions_take_more_local_noise() -> None:
    sigmas = [noise_levels(replace(Case(), updates=updates))["local"] for updates in (1, 2, 10, 50)]
    assert sigmas == sorted(sigmas)
    assert sigmas[0] < 5.87 < sigmas[-1]


def test_rows_are_dealt_out_evenly_and_classes_kept_apart_in_their_shares() -> None:
    random = np.random.default_rng(3)
    data = Labelled(random.normal(5.0, 3.0, (103, 4)), np.where(np.arange(103) % 3 == 0, 1.0, -1.0))
    users, train, test = dealt(data, 8)
    assert {len(user) for user in users} == {len(train) // 8}
    assert (len(train), len(test)) == (82, 21)
    for part in (train, test):
        assert (part.targets == 1.0).mean() == pytest.approx((data.labels == 1.0).mean(), abs=0.02)
        assert np.allclose(np.linalg.norm(part.features[:, :-1], axis=1), 1.0)
        assert (part.features[:, -1] == 1.0).all()


def test_our_noise_keeps_epsilon_soundly() -> None:
    case = replace(Case(), n=100, steps=1000)
    plan, sigma = our_plan(case, 8)
    told = account("complete_sgd", {
        "sigma": sigma, "lipschitz": case.lipschitz, "n": 100, "hops": 1000, "delta": DELTA,
    }).outputs  # fmt: skip
    worst = max(
        gaussian_epsilon(exposure_law(Walked(100, 999, starts, watchers=1), DELTA), 2.0 * case.lipschitz / sigma, DELTA)
        for starts in (False, True)
    )
    assert 0.99 * case.epsilon < worst <= case.epsilon
    assert worst < told["epsilon"] < 1.5 * worst  # by Rényi divergences, which tell less exactly
    assert plan.descent.clip == case.lipschitz
    assert plan.rate == pytest.approx(0.0341667 / max(1.0, sigma))


def test_more_privacy_is_worse_and_methods_keep_their_order() -> None:
    found = learned(QUICK, SMALL)
    assert found["steps"] == [0, 100, 200, 300, 400]
    assert found["columns"] == 8
    for method in (*METHODS, OURS):
        curve = found[method]
        assert {len(curve[name]) for name in curve} == {5}
        assert curve["loss"][0] == pytest.approx(math.log(2.0))
        assert all(0.0 <= one <= 1.0 for one in curve["accuracy"])
    assert found == learned(QUICK, SMALL)
    assert found["noise"]["local"] < learned(QUICK, replace(SMALL, epsilon=1.0))["noise"]["local"]


def test_without_noise_the_published_walk_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that is nearly nothing, so that shortening the sum is shortening the gradient."""
    monkeypatch.setattr(descents, "noise_levels", lambda _case: dict.fromkeys((*METHODS, "network_first"), 1e-9))
    found = learned(QUICK, replace(SMALL, steps=4000))
    assert found["network"]["accuracy"][-1] > 0.8
    assert found["network"]["loss"][-1] < 0.5


def test_who_has_contributed_enough_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may contribute at all: local descent does nothing, network descent is noise alone."""
    monkeypatch.setattr(descents, "noise_levels", lambda _case: dict.fromkeys((*METHODS, "network_first"), 1.0))
    found = learned(QUICK, replace(SMALL, updates=0))
    assert set(found["local"]["loss"]) == {found["local"]["loss"][0]}
    assert found["network"]["loss"][-1] != found["network"]["loss"][0]


def test_the_quick_form_is_a_twentieth() -> None:
    assert quick(Case()) == Case(n=100, steps=1000, trials=2, points=10)
    assert table(QUICK, "houses").features.shape[0] * 0.8 >= quick(Case()).n
