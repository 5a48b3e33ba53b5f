"""Steps over minibatches: curves by integration, an independent accountant, the proof's lemma, and what must grow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Relation
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.subsampled import Steps, curves_of, epsilon_of

LINE = np.linspace(-16.0, 16.0, 160_001)
SHARES = [(0.01, 1.0), (0.3, 2.0), (0.9, 0.5), (0.05, 4.0)]


def integrated(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), LINE))


def densities(share: float, ratio: float, relation: Relation) -> tuple[Floats, Floats]:
    base = norm.pdf(LINE)
    p = (1.0 - share) * base + share * norm.pdf(LINE - ratio)
    return p, (p[::-1] if relation is Relation.REPLACE else base)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("share", "ratio"), SHARES)
def test_curves_are_those_of_the_densities(share: float, ratio: float, relation: Relation) -> None:
    """Of the mixtures that dominate steps over rows drawn by chance, in both directions [ZDW22, Theorem 11]."""
    p, q = densities(share, ratio, relation)
    forward, backward = curves_of(share, ratio, relation)
    for epsilon in (0.0, 1e-3, 0.1, 0.5, 2.0, 5.0):
        at = np.array([epsilon])
        assert float(forward(at)[0]) == pytest.approx(integrated(p, q, epsilon), abs=2e-8)
        assert float(backward(at)[0]) == pytest.approx(integrated(q, p, epsilon), abs=2e-8)


@pytest.mark.parametrize(
    ("share", "sigma", "steps", "delta"),
    [(0.01, 1.0, 1000, 1e-5), (0.1, 2.0, 100, 1e-6), (0.5, 4.0, 30, 1e-5), (0.3, 0.7, 10, 1e-5)],
)
def test_an_independent_accountant_agrees(share: float, sigma: float, steps: int, delta: float) -> None:
    one = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=share, value_discretization_interval=1e-4
    )
    theirs = one.self_compose(steps).get_epsilon_for_delta(delta)
    assert epsilon_of([Steps(share, 1.0 / sigma, steps)], Relation.ZERO_OUT, delta) == pytest.approx(theirs, rel=3e-5)


@pytest.mark.parametrize(("share", "ratio"), SHARES)
def test_replacing_costs_less_than_two_changes_in_a_row(share: float, ratio: float) -> None:
    """By the rule for two changes, delta(2 eps) is at most (1 + e^eps) delta(eps)."""
    delta, parts = 1e-6, [Steps(share, ratio / 4.0, 20)]
    first = once = epsilon_of(parts, Relation.ZERO_OUT, delta)
    for _ in range(4):  # from below, so that what it comes to is at most what the rule gives
        once = epsilon_of(parts, Relation.ZERO_OUT, delta / (1.0 + math.exp(once)))
    assert first < epsilon_of(parts, Relation.REPLACE, delta) < 2.0 * once


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0.02, 0.98),
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 2.0 * math.pi)),
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 2.0 * math.pi)),
    st.floats(0.0, 2.0),
)
def test_no_two_parts_in_the_plane_tell_more_than_opposite_ones(
    share: float, one: tuple[float, float], other: tuple[float, float], epsilon: float
) -> None:
    """Integrated over the plane, where the lemma of the proof has nothing to say about lines."""
    side = np.linspace(-8.0, 8.0, 321)
    across, up = np.meshgrid(side, side)
    cell = (side[1] - side[0]) ** 2

    def mixed(part: tuple[float, float]) -> Floats:
        x, y = 1.5 * part[0] * math.cos(part[1]), 1.5 * part[0] * math.sin(part[1])
        return np.asarray(
            (1.0 - share) * norm.pdf(across) * norm.pdf(up) + share * norm.pdf(across - x) * norm.pdf(up - y)
        )

    told = float(np.maximum(mixed(one) - math.exp(epsilon) * mixed(other), 0.0).sum() * cell)
    assert told <= float(curves_of(share, 1.5, Relation.REPLACE)[0](np.array([epsilon]))[0]) + 1e-6


@settings(max_examples=8, deadline=None)
@given(st.floats(0.01, 0.9), st.floats(0.05, 1.5), st.integers(1, 100), st.sampled_from(list(Relation)))
def test_more_of_anything_tells_more(share: float, ratio: float, times: int, relation: Relation) -> None:
    delta = 1e-5

    def told(share: float, ratio: float, times: int) -> float:
        return epsilon_of([Steps(share, ratio, times)], relation, delta)

    found = told(share, ratio, times)
    slack = 1.0 + 1e-4
    assert found <= told(min(1.0, 1.1 * share), ratio, times) * slack + 1e-4
    assert found <= told(share, 1.1 * ratio, times) * slack + 1e-4
    assert found <= told(share, ratio, times + 1) * slack + 1e-4
    whole = gaussian.epsilon_of(delta, ratio * math.sqrt(times) * (2.0 if relation is Relation.REPLACE else 1.0))
    assert found <= whole * slack + 1e-4


def test_steps_of_several_kinds_compose() -> None:
    """Dominating pairs compose [ZDW22, Theorem 10]."""
    split = [Steps(0.1, 1.0, 30), Steps(0.1, 1.0, 20), Steps(1.0, 0.3, 4), Steps(0.0, 5.0, 9), Steps(0.2, 0.0, 9)]
    together = [Steps(0.1, 1.0, 50), Steps(1.0, 0.6, 1)]
    for relation in Relation:
        assert epsilon_of(split, relation, 1e-6) == pytest.approx(epsilon_of(together, relation, 1e-6), rel=1e-9)
        assert epsilon_of(together, relation, 1e-6) > epsilon_of(together[:1], relation, 1e-6)
    assert epsilon_of([], Relation.REPLACE, 1e-6) == 0.0
    assert epsilon_of([Steps(0.1, 17.0, 1)], Relation.ZERO_OUT, 1e-6) == math.inf


def test_noise_in_other_directions_that_is_shared_is_no_help_but_pair_noise_is() -> None:
    """Two users' sums with noise of their own and noise of their pair, all seen: integrated, against its mu."""
    sigma, pair, share, epsilon = 1.0, 2.0, 0.3, 0.4
    covariance = np.array([[sigma**2 + pair**2, -(pair**2)], [-(pair**2), sigma**2 + pair**2]])
    inverse = np.linalg.inv(covariance)
    ratio = math.sqrt(inverse[0, 0])
    side = np.linspace(-14.0, 14.0, 701)
    x, y = np.meshgrid(side, side)

    def density(shift: float) -> Floats:
        away = x - shift
        form = inverse[0, 0] * away * away + 2.0 * inverse[0, 1] * away * y + inverse[1, 1] * y * y
        return np.asarray(np.exp(-form / 2.0) / (2.0 * math.pi * math.sqrt(np.linalg.det(covariance))))

    p = (1.0 - share) * density(0.0) + share * density(1.0)
    seen = float(np.maximum(p - math.exp(epsilon) * density(0.0), 0.0).sum() * (side[1] - side[0]) ** 2)
    assert seen == pytest.approx(float(curves_of(share, ratio, Relation.ZERO_OUT)[0](np.array([epsilon]))[0]), abs=1e-6)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("delta", [1e-5, 2e-19])
@pytest.mark.parametrize("ratio", [1e-6, 1.67e-5, 1e-2, 1.0])
def test_it_is_at_most_what_a_row_tells_that_is_surely_in_every_step(
    ratio: float, delta: float, relation: Relation
) -> None:
    """More so where rounding would leave more than that: 7e-5 for a ratio of 1e-6, of which 3.5e-6 are told."""
    drawn = epsilon_of([Steps(0.5, ratio, 2), Steps(1.0, ratio, 1)], relation, delta)
    assert drawn <= epsilon_of([Steps(1.0, ratio, 3)], relation, delta) * (1.0 + 1e-9)
