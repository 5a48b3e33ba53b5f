from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.renyi import SIMPLE, TIGHT, best_epsilon, epsilon_of

KNOWN = {
    (2.0, 1.0, 1e-5): (12.512925464970, 11.126631103850),
    (32.0, 0.5, 1e-6): (0.945661630902, 0.802115000249),
}


@pytest.mark.parametrize("terms", KNOWN)
def test_known_answers(terms: tuple[float, float, float]) -> None:
    simple, tight = KNOWN[terms]
    alpha, rdp, delta = terms
    assert epsilon_of(alpha, rdp, delta, SIMPLE) == pytest.approx(simple, abs=2e-12)
    assert epsilon_of(alpha, rdp, delta, TIGHT) == pytest.approx(tight, rel=2e-11)


@given(
    excess=st.floats(math.log(1e-6), math.log(1e6)).map(math.exp),
    rdp=st.floats(0.0, 1e3),
    delta=st.floats(math.log(1e-300), math.log(0.99)).map(math.exp),
)
def test_the_tight_form_is_never_above_the_simple_one(excess: float, rdp: float, delta: float) -> None:
    tight = epsilon_of(1.0 + excess, rdp, delta)
    assert 0.0 <= tight <= epsilon_of(1.0 + excess, rdp, delta, SIMPLE) * (1 + 1e-12)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_gaussian_noise_by_its_divergence_is_above_its_curve_and_near_the_public_oracle(
    mu: float, delta: float
) -> None:
    found = best_epsilon(lambda excess: (1.0 + excess) * mu**2 / 2.0, delta)
    assert found >= gaussian.epsilon_of(delta, mu)
    orders = 1.0 + np.exp(np.linspace(math.log(1e-6), math.log(1e6), 4000))
    oracle, _ = compute_epsilon(orders, orders * mu**2 / 2.0, delta)
    assert found <= oracle * (1.0 + 1e-9) + 1e-12
    assert found >= oracle * (1.0 - 1e-4) - 1e-9


@pytest.mark.parametrize("scale", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_it_agrees_with_the_conversion_of_concentrated_privacy_in_opendp(scale: float, delta: float) -> None:
    """Gaussian noise of this scale has rho = 1 / (2 scale^2)."""
    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.domains import atom_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import absolute_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = atom_domain(T=float, nan=False), absolute_distance(T=float)
    oracle = make_zCDP_to_approxDP(make_gaussian(*space, scale)).map(1.0).epsilon(delta)
    found = best_epsilon(lambda excess: (1.0 + excess) / (2.0 * scale**2), delta)
    assert found == pytest.approx(oracle, rel=1e-4)


def test_orders_beyond_the_limit_are_not_used() -> None:
    """A divergence that is infinite from order 3 on."""

    def curve(excess: np.ndarray) -> np.ndarray:
        return np.where(excess <= 2.0, 0.1 * (1.0 + excess), np.inf)

    limited = best_epsilon(lambda excess: 0.1 * (1.0 + excess), 1e-6, excess_most=2.0)
    assert best_epsilon(curve, 1e-6) == pytest.approx(limited, rel=1e-4)
    assert limited == pytest.approx(epsilon_of(3.0, 0.3, 1e-6), rel=1e-9)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(min(epsilon, 700.0)) * q, 0.0).sum())


@given(seed=st.integers(0, 10**6), alpha=st.floats(1.01, 60.0), delta=st.floats(1e-9, 0.5))
def test_both_conversions_hold_for_any_pair_of_distributions(seed: int, alpha: float, delta: float) -> None:
    """[M17, Proposition 3] and [CKS20, Proposition 12] on random distributions of few outcomes."""
    p, q = np.random.default_rng(seed).dirichlet(np.full(5, 0.4), 2) + 1e-12
    p, q = p / p.sum(), q / q.sum()
    rdp = math.log(float(np.sum(p * (p / q) ** (alpha - 1.0)))) / (alpha - 1.0)
    for conversion in (SIMPLE, TIGHT):
        assert hockey_stick(p, q, epsilon_of(alpha, max(rdp, 0.0), delta, conversion)) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0])
def test_the_tight_conversion_is_met_by_some_pair(alpha: float) -> None:
    """[CKS20, Proposition 12] cannot be improved: one loss of epsilon + ln(alpha / (alpha - 1)), else none at all."""
    epsilon, chance = 1.0, 1e-3
    loss = epsilon + math.log(alpha / (alpha - 1.0))
    p = np.array([chance, 1.0 - chance])
    q = np.array([chance * math.exp(-loss), 1.0 - chance])
    rest = 1.0 - q.sum()  # the pair is one of distributions where this mass is an outcome that p never gives
    assert rest > 0.0
    moment = chance * math.exp((alpha - 1.0) * loss)  # of the one loss alone
    rdp = math.log(moment) / (alpha - 1.0)
    assert epsilon_of(alpha, rdp, hockey_stick(p[:1], q[:1], epsilon), TIGHT) == pytest.approx(epsilon, rel=1e-12)
