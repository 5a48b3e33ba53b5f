"""The ends of one gap's curve against the curve itself, computed in ways that share nothing with them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.hidden_path.losses import lower_losses, scale, upper_losses, upper_losses_of
from p2pdp.privacy.pld.losses import Losses

TAIL = 1e-13
EPSILONS = (-1.0, -0.3, -0.02, 0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0)
NODES = np.linspace(-14.0, 30.0, 60_001)


def delta_of(losses: Losses, step: float, epsilon: float) -> float:
    """The curve of a pair with these losses: infinite ones count in full."""
    at = step * np.arange(losses.first, losses.first + len(losses.masses))
    return float(np.sum(losses.masses * np.maximum(0.0, -np.expm1(np.minimum(epsilon - at, 0.0))))) + losses.infinite


def density(law: Any, places: Any) -> Any:
    parts = np.exp(-((NODES[:, None] - places) ** 2) / 2) / math.sqrt(2 * math.pi)
    return parts @ law


def true_delta(first: Any, second: Any, epsilon: float) -> float:
    """By the rectangle rule, which is spectrally exact for smooth parts; enough at the kink."""
    return float(np.sum(np.maximum(first - math.exp(epsilon) * second, 0.0)) * (NODES[1] - NODES[0]))


def laws() -> st.SearchStrategy[Any]:
    weights = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5).filter(lambda some: sum(some[1:]) > 1e-3)
    return weights.map(lambda some: np.array(some) / sum(some))


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("told", [True, False])
def test_a_known_slot_is_a_plain_gaussian(mu: float, told: bool) -> None:
    """M = 1, or all slots known: nothing is hidden, epsilon' = epsilon."""
    law = np.array([0.0, 1.0])
    step = 0.05 * scale(law, mu, 1.0 if told else 1.0 - law[0])
    upper, lowers = upper_losses(law, mu, step, TAIL, 1.0 if told else 1.0 - law[0]), lower_losses(law, mu, step, TAIL)
    for epsilon in mu * np.array([-2.0, 0.0, 0.5, 1.0, 2.0, 4.0]):
        exact = gaussian.delta_of(float(epsilon), mu)
        assert delta_of(upper, step, epsilon) >= exact * (1 - 1e-10)
        assert delta_of(upper, step, epsilon) == pytest.approx(exact, rel=4e-2, abs=1e-9)
        for end in lowers:
            assert delta_of(end, step, epsilon) <= exact * (1 + 1e-9) + end.slack
            assert delta_of(end, step, epsilon) == pytest.approx(exact, rel=4e-2, abs=1e-9)


@given(law=laws(), mu=st.floats(0.05, 2.0), fineness=st.floats(0.02, 2.0))
def test_the_lower_end_is_below_the_mixture_in_both_directions(law: Any, mu: float, fineness: float) -> None:
    step = fineness * scale(law, mu, 1.0 - law[0])
    lower, turned = lower_losses(law, mu, step, 1e-9)
    first, second = density(law, mu * np.arange(len(law))), density(np.ones(1), np.zeros(1))
    for epsilon in EPSILONS:
        assert delta_of(lower, step, epsilon) <= true_delta(first, second, epsilon) + 2e-7
        assert delta_of(turned, step, epsilon) <= true_delta(second, first, epsilon) + 2e-7


@settings(max_examples=20)
@given(law=laws(), mu=st.floats(0.05, 0.5))
def test_a_fine_grid_meets_the_mixture(law: Any, mu: float) -> None:
    step = 0.005 * scale(law, mu, 1.0 - law[0])
    lower = lower_losses(law, mu, step, 1e-12)[0]
    first, second = density(law, mu * np.arange(len(law))), density(np.ones(1), np.zeros(1))
    for epsilon in EPSILONS:
        assert delta_of(lower, step, epsilon) == pytest.approx(true_delta(first, second, epsilon), abs=3e-3)


@given(law=laws(), mu=st.floats(0.05, 2.0), told=st.booleans(), fineness=st.floats(0.02, 2.0))
def test_the_upper_end_is_above_the_curve_that_it_joins(law: Any, mu: float, told: bool, fineness: float) -> None:
    step = fineness * scale(law, mu, 1.0 if told else 1.0 - law[0])
    upper = upper_losses(law, mu, step, TAIL, 1.0 if told else 1.0 - law[0])
    share = 1.0 if told else 1.0 - law[0]
    for epsilon in (one for one in EPSILONS if one >= 0.0):
        before = math.log1p(math.expm1(epsilon) / share)
        derived = sum(law[c] * gaussian.delta_of(before, c * mu) for c in range(1, len(law)))
        assert delta_of(upper, step, epsilon) >= derived * (1 - 1e-9)
        mirrored = -math.expm1(-epsilon) + math.exp(-epsilon) * derived  # both directions have this curve
        assert delta_of(upper, step, -epsilon) >= mirrored * (1 - 1e-9)


@given(law=laws(), mu=st.floats(1e-3, 3.0), told=st.booleans())
def test_both_ends_are_pairs_of_distributions(law: Any, mu: float, told: bool) -> None:
    step = 0.1 * scale(law, mu, 1.0 if told else 1.0 - law[0])
    upper, lowers = upper_losses(law, mu, step, TAIL, 1.0 if told else 1.0 - law[0]), lower_losses(law, mu, step, TAIL)
    for losses, lost in ((upper, upper.infinite), *((lower, 0.0) for lower in lowers)):
        at = step * np.arange(losses.first, losses.first + len(losses.masses))
        assert np.all(losses.masses >= 0.0)
        assert (losses.infinite if losses is upper else losses.slack) < 1e-9
        assert 1.0 - 1e-9 - lost <= losses.masses.sum() <= 1.0 + 1e-9
        assert np.sum(losses.masses * np.exp(-at)) <= 1.0 + 1e-9
    assert np.all(np.abs(upper.masses[::-1] - upper.masses * np.exp(-step * np.arange(upper.first, -upper.first + 1)))
                  <= 1e-12 + 1e-9 * upper.masses[::-1])  # fmt: skip


@given(seed=st.integers(0, 10**6), share=st.floats(0.01, 0.99), epsilon=st.floats(0.0, 3.0))
def test_what_is_common_amplifies(seed: int, share: float, epsilon: float) -> None:
    """[BBG18, Theorem 2], an equation, for mixtures of random distributions with a common part."""
    common, one, other = np.random.default_rng(seed).dirichlet(np.full(6, 0.5), 3)

    def delta(p: Any, q: Any, at: float) -> float:
        return float(np.maximum(p - math.exp(at) * q, 0.0).sum())

    amplified = math.log1p(share * math.expm1(epsilon))
    weight = math.exp(amplified - epsilon)
    left = delta((1 - share) * common + share * one, (1 - share) * common + share * other, amplified)
    right = share * delta(one, (1 - weight) * common + weight * other, epsilon)
    assert left == pytest.approx(right, abs=1e-12)
    assert left <= share * ((1 - weight) * delta(one, common, epsilon) + weight * delta(one, other, epsilon)) + 1e-12


# The upper end against all hidden paths.


@pytest.mark.parametrize(("others", "known", "hidden"), [(2, 1, 2), (2, 2, 3), (3, 1, 2), (3, 2, 2), (2, 0, 3)])
def test_no_values_of_the_others_tell_more_on_the_complete_graph(others: int, known: int, hidden: int) -> None:
    """User 0 and `others` others, with values in [0, 1]; the known slots are somebody else's. All paths are summed."""
    random = np.random.default_rng(others + known + hidden)
    total = known + hidden
    paths = np.array(list(itertools.product(range(others + 1), repeat=hidden)))
    law = np.bincount((paths == 0).sum(axis=1), minlength=hidden + 1) / len(paths)
    for mu in (0.2, 0.7, 2.0):
        step = 0.03 * scale(law, mu, 1.0 - law[0])
        upper = upper_losses(law, mu, step, TAIL, 1.0 - law[0])
        corners = list(itertools.product((0.0, 1.0), repeat=others))
        for values in [*corners, *random.uniform(0, 1, (4, others))]:
            ends = [density(np.full(len(paths), 1 / len(paths)), mu * np.array([own, *values])[paths].sum(axis=1))
                    for own in (0.0, 1.0)]  # fmt: skip
            for (one, two), epsilon in itertools.product((ends, ends[::-1]), EPSILONS):
                assert true_delta(one, two, epsilon) <= delta_of(upper, step, epsilon) + 1e-9, (total, values)


def test_on_other_graphs_hiding_does_not_amplify_that_much() -> None:
    """Two ways from first to last: s a u b t and s c w d t. If c, w, d hold 1 and a, b 0, the ways are told apart.

    Then the amplified curve is exceeded, and joint convexity is not.
    """
    law, mu, epsilon = np.array([0.5, 0.5]), 1.5, 0.5
    first, second = density(law, np.array([3 * mu, mu])), density(law, np.array([3 * mu, 0.0]))
    truth = max(true_delta(first, second, epsilon), true_delta(second, first, epsilon))
    ends = {told: upper_losses(law, mu, 0.001, TAIL, 1.0 if told else 1.0 - law[0]) for told in (True, False)}
    assert truth > 1.2 * delta_of(ends[False], 0.001, epsilon)
    assert truth <= delta_of(ends[True], 0.001, epsilon)


def test_nothing_is_told_where_nothing_is_contributed() -> None:
    for law, mu in ((np.ones(1), 1.0), (np.array([1.0, 0.0]), 1.0), (np.array([0.5, 0.5]), 0.0)):
        for losses in (upper_losses(law, mu, 0.1, 0.0, 1.0 - law[0]), *lower_losses(law, mu, 0.1, 0.0)):
            assert (losses.first, losses.masses.tolist(), losses.infinite) == (0, [1.0], 0.0)


def test_what_is_cut_off_is_an_infinite_loss_above_and_none_below() -> None:
    law = np.array([0.0, 1.0])
    upper, (lower, _) = upper_losses(law, 1.0, 0.05, 1e-3, 1.0 - law[0]), lower_losses(law, 1.0, 0.05, 1e-3)
    assert 1e-3 < upper.infinite <= 2e-3 + 1e-12
    assert delta_of(lower, 0.05, 6.0) <= 0.0 < float(ndtr(-5.5))


@pytest.mark.parametrize("mu", [10.0, 25.0, 60.0])
@pytest.mark.parametrize("step", [0.5, 3.0, 16.0])
def test_ends_hold_where_losses_are_huge(mu: float, step: float) -> None:
    law = np.array([0.2, 0.5, 0.3])
    known = np.array([0.0, 1.0])
    upper, lowers = upper_losses(known, mu, step, TAIL, 1.0 - known[0]), lower_losses(known, mu, step, TAIL)
    for epsilon in mu**2 / 2 + mu * np.array([-3.0, 0.0, 2.0, 5.0]):
        exact = gaussian.delta_of(float(epsilon), mu)
        assert delta_of(upper, step, epsilon) >= exact * (1 - 1e-9)
        for end in lowers:
            assert delta_of(end, step, epsilon) <= exact * (1 + 1e-9) + end.slack
    for end in (*lowers, *lower_losses(law, mu, step, TAIL)):
        assert end.slack <= 1e-6
        assert end.masses.sum() <= 1.0 + 2e-6


def test_losses_of_several_gaps_are_those_of_each() -> None:
    """To the last bit, whatever is shared: gaps of other lengths, without some counts, and hidden ones between them."""
    laws = [np.array(law) for law in ([0.5, 0.3, 0.2], [0.9, 0.1], [0.2, 0.0, 0.5, 0.0, 0.3], [1.0], [0.7, 0.3], [0.0])]
    shares = [1.0, 1.0, 1.0, 1.0, 0.3, 1.0]
    together = upper_losses_of(laws, 0.3, 0.01, TAIL, shares)
    for law, share, found in zip(laws, shares, together, strict=True):
        alone = upper_losses(law, 0.3, 0.01, TAIL, share)
        assert found.masses.tobytes() == alone.masses.tobytes()
        assert (found.first, found.infinite, found.slack) == (alone.first, alone.infinite, alone.slack)
