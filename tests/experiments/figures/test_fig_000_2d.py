from __future__ import annotations

import math

import pytest

from p2pdp.experiments import walks
from p2pdp.experiments.figures.fig_000_2d import EXPERIMENT, losses
from p2pdp.mechanisms import gaussian
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(EXPERIMENT)
    assert line(made, "contributions may be added up, epsilon_0 = 0.1").verdict == "differs"
    assert line(made, "mean gain over local DP, soundly, epsilon_0 = 0.1").verdict == "agrees"
    for answer in answers.values():
        assert answer["published"]["mean"] <= answer["sound"]["mean"] <= answer["local-sound"]["mean"]
        assert 1.0 <= answer["missed"]["best"] <= answer["missed"]["worst"] <= 2.0


def test_the_walk_in_which_adding_up_misses_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """u, u, v: added up 1/2 + 1, in truth 2 (in units of one contribution)."""
    monkeypatch.setattr(walks, "path", lambda _n, _walk: walks.np.array([0, 0, 1]))
    found = losses(2, 0, 0.4)
    assert found["missed"]["worst"] == pytest.approx(2.0 / 1.5)
    mu = walks.ratio(0.4)
    assert found["sound"]["worst"] == pytest.approx(gaussian.epsilon_of(walks.SOUND_DELTA, mu * math.sqrt(2.0)))
    assert found["published"]["worst"] == pytest.approx(gaussian.epsilon_of(walks.SOUND_DELTA, mu * math.sqrt(1.5)))
