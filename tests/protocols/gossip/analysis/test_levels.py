from __future__ import annotations

import math

import pytest

from p2pdp.mechanisms import gaussian
from p2pdp.protocols.gossip.analysis.levels import gossip_sigmas_of
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import prepared


def test_both_compose_over_the_gradients() -> None:
    run, _ = prepared(gossip_learning(4, "ring"))
    found = gossip_sigmas_of(run, 2.0, 1e-5)
    local, central = found["local"], found["central"]
    assert local is not None
    assert central is not None
    assert gaussian.epsilon_of(1e-5, math.sqrt(3) * 2.0 / local) == pytest.approx(2.0, rel=1e-6)
    assert central == pytest.approx(local / 4)


@pytest.mark.parametrize("epsilon", [None, 0.0, math.inf])
def test_nothing_is_enough_for_nothing(epsilon: float | None) -> None:
    assert gossip_sigmas_of(prepared(gossip_learning(4, "ring"))[0], epsilon, 1e-5) == {"local": None, "central": None}


def test_at_the_headlines_epsilon_local_noise_is_the_runs_own() -> None:
    run, _ = prepared(gossip_learning(4, "ring", sigma=1.3))
    headline = gaussian.epsilon_of(1e-5, math.sqrt(3) * 2.0 / 1.3)
    assert gossip_sigmas_of(run, headline, 1e-5)["local"] == pytest.approx(1.3, rel=1e-6)
