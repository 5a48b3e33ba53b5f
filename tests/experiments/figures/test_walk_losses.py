from __future__ import annotations

import math

import pytest

from p2pdp.experiments import walks
from p2pdp.experiments.figures.walk_losses import (
    ACCOUNTS,
    CATEGORIES,
    FIGURE_2B,
    FIGURE_2C,
    FIGURE_2D,
    losses,
    losses_2c,
    losses_2d,
)
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.shuffle.several import kinds_of, upper_epsilons
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(FIGURE_2B)
    assert line(made, "mean gain over local DP soundly, epsilon_0 = 0.1").verdict == "agrees"
    assert line(made, "mean gain over local DP by the paper's recipe, epsilon_0 = 0.4").verdict == "agrees"
    for answer in answers.values():
        assert answer["sound-lower"]["mean"] <= answer["sound"]["mean"] <= answer["local-sound"]["mean"]
        assert answer["recipe"]["mean"] < answer["local"]["mean"]


def test_more_users_hide_more() -> None:
    few, many = losses(5, 0, 0.1), losses(20, 0, 0.1)
    for name in ("recipe", "sound"):
        assert many[name]["mean"] < few[name]["mean"]
        assert few[name]["best"] <= few[name]["mean"] <= few[name]["worst"]


def test_every_account_is_drawn() -> None:
    assert set(losses(5, 0, 0.4)) == {account.name for account in ACCOUNTS}


def test_the_quick_form_2c() -> None:
    made, answers = quick(FIGURE_2C)
    assert line(made, "mean gain over local DP soundly, epsilon_0 = 0.4").verdict == "agrees"
    assert line(made, "the curve's points").verdict == "cannot be known"
    for answer in answers.values():
        assert answer["sound"]["worst"] <= answer["local-sound"]["worst"]
        assert answer["recipe"]["mean"] < answer["local"]["mean"]


def test_gaps_are_counted_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three users observer 1 sees user 0 in gaps (0), (0, 2, 0), and user 2 in (0, 2, 0) alone."""
    monkeypatch.setattr(walks, "path", lambda _n, _walk: walks.np.array([0, 1, 0, 2, 0, 1]))
    found = losses_2c(3, 0, 0.4)["sound"]
    first = kinds_of(1, 0, 0) + kinds_of(2, 1, 0)
    by_one = upper_epsilons(0.4, CATEGORIES, [first, kinds_of(1, 2, 0)], walks.SOUND_DELTA)
    # observer 2 sees user 0 in gaps (0, 1, 0) and (0, 1), and user 1 there too
    by_two = upper_epsilons(
        0.4, CATEGORIES, [kinds_of(2, 1, 0) + kinds_of(1, 1, 0), kinds_of(1, 2, 0) + kinds_of(1, 1, 0)],
        walks.SOUND_DELTA,
    )  # fmt: skip
    every = [*by_one.tolist(), *by_two.tolist()]
    assert found["worst"] == pytest.approx(max(every), rel=1e-6)
    assert found["mean"] == pytest.approx(sum(every) / 4, rel=0.01)


def test_the_quick_form_2d() -> None:
    made, answers = quick(FIGURE_2D)
    assert line(made, "contributions may be added up, epsilon_0 = 0.1").verdict == "differs"
    assert line(made, "mean gain over local DP, soundly, epsilon_0 = 0.1").verdict == "agrees"
    for answer in answers.values():
        assert answer["published"]["mean"] <= answer["sound"]["mean"] <= answer["local-sound"]["mean"]
        assert 1.0 <= answer["missed"]["best"] <= answer["missed"]["worst"] <= 2.0


def test_the_walk_in_which_adding_up_misses_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """u, u, v: added up 1/2 + 1, in truth 2 (in units of one contribution)."""
    monkeypatch.setattr(walks, "path", lambda _n, _walk: walks.np.array([0, 0, 1]))
    found = losses_2d(2, 0, 0.4)
    assert found["missed"]["worst"] == pytest.approx(2.0 / 1.5)
    mu = walks.ratio(0.4)
    assert found["sound"]["worst"] == pytest.approx(gaussian.epsilon_of(walks.SOUND_DELTA, mu * math.sqrt(2.0)))
    assert found["published"]["worst"] == pytest.approx(gaussian.epsilon_of(walks.SOUND_DELTA, mu * math.sqrt(1.5)))
