from __future__ import annotations

import pytest

from p2pdp.accounting.shuffle.several import kinds_of, upper_epsilons
from p2pdp.experiments import walks
from p2pdp.experiments.figures.fig_000_2c import CATEGORIES, EXPERIMENT, losses
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(EXPERIMENT)
    assert line(made, "mean gain over local DP soundly, epsilon_0 = 0.4").verdict == "agrees"
    assert line(made, "the curve's points").verdict == "cannot be known"
    for answer in answers.values():
        assert answer["sound"]["worst"] <= answer["local-sound"]["worst"]
        assert answer["recipe"]["mean"] < answer["local"]["mean"]


def test_gaps_are_counted_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three users observer 1 sees user 0 in gaps (0), (0, 2, 0), and user 2 in (0, 2, 0) alone."""
    monkeypatch.setattr(walks, "path", lambda _n, _walk: walks.np.array([0, 1, 0, 2, 0, 1]))
    found = losses(3, 0, 0.4)["sound"]
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
