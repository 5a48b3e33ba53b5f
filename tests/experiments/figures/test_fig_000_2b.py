from __future__ import annotations

from p2pdp.experiments.figures.fig_000_2b import ACCOUNTS, EXPERIMENT, losses
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(EXPERIMENT)
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
