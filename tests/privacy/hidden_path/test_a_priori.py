from __future__ import annotations

import itertools
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.hidden_path import a_priori as module
from p2pdp.privacy.hidden_path.a_priori import STEPS_MAX, _product, _renewals, a_priori
from p2pdp.privacy.hidden_path.complete import _kind, part
from p2pdp.privacy.hidden_path.gaps import gaps_of
from p2pdp.privacy.hidden_path.losses import upper_losses

STEP, HALF = 0.02, 2048


def gap_masses(n: int, gap: Any, user: int, mu: float) -> Any:
    """Masses of the losses of one gap on a window of its own."""
    one = part(n, _kind(n, gap, user), mu, mu, 1e-15)
    losses = upper_losses(one.law, one.mu_upper, STEP, 1e-15, one.share)
    masses = np.zeros(2 * HALF + 1)
    masses[HALF + losses.first : HALF + losses.first + len(losses.masses)] = losses.masses
    return masses


def averaged_epsilon(n: int, steps: int, tokens: int, mu: float, pair: tuple[int, int], delta: float) -> float:
    """From every walk there is, its moves seen: gaps convolved one by one, sums averaged, and the curve of that."""
    user, observer = pair
    starts = [(0,)] if tokens == 1 else [(first,) for first in range(n)]
    walks = [(*start, *rest) for start in starts for rest in itertools.product(range(n), repeat=steps - 1)]
    one_token: dict[Any, int] = {}
    for path in walks:
        visits = [(at + 1, path[at - 1] if at else None, path[at + 1] if at + 1 < steps else None)
                  for at in range(steps) if path[at] == observer]  # fmt: skip
        starter = path[0] if tokens == 1 or observer == 0 else None
        origin = path[0] if tokens == 1 else 0
        moves = [0, *itertools.accumulate(int(a != b) for a, b in itertools.pairwise([origin, *path]))]
        gaps = tuple(sorted(gaps_of([visits], steps, [starter], moves=[moves], origin=0), key=repr))
        one_token[gaps] = one_token.get(gaps, 0) + 1
    total = np.zeros(2 * HALF + 1)
    for gaps, times in one_token.items():
        masses = np.zeros(2 * HALF + 1)
        masses[HALF] = 1.0
        for gap in gaps:
            masses = np.convolve(masses, gap_masses(n, gap, user, mu))[HALF : 3 * HALF + 1]
        total += times / len(walks) * masses
    both = total
    for _ in range(tokens - 1):
        both = np.convolve(both, total)[HALF : 3 * HALF + 1]
    losses = STEP * np.arange(-HALF, HALF + 1)
    low, high = 0.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        over = both @ np.maximum(0.0, -np.expm1(np.minimum(middle - losses, 0.0))) > delta
        low, high = (middle, high) if over else (low, middle)
    return high


@pytest.mark.parametrize(
    ("n", "steps", "tokens"), [(3, 1, 1), (3, 4, 1), (4, 4, 1), (3, 5, 1), (2, 5, 1), (3, 4, 2), (5, 4, 1), (4, 3, 2)]
)
def test_it_is_the_average_over_all_walks(n: int, steps: int, tokens: int) -> None:
    mu, delta = 0.8, 1e-4
    found = a_priori(n, steps, tokens, mu, delta)
    pairs = list(itertools.permutations(range(n), 2))
    epsilons = {pair: averaged_epsilon(n, steps, tokens, mu, pair, delta) for pair in pairs}
    largest, mean = max(epsilons.values()), sum(epsilons.values()) / len(pairs)
    assert 0.99 * largest <= found.largest <= 1.02 * largest
    assert 0.99 * mean <= found.mean <= 1.04 * mean
    assert epsilons[found.worst_pair] == pytest.approx(max(epsilons.values()), rel=1e-9)


def test_of_two_users_it_is_at_least_the_total_alone() -> None:
    """Whoever is never visited sees the total, which is a plain Gaussian with one contribution a step."""
    found = a_priori(2, 1, 1, 0.5, 1e-6)
    assert found.largest == pytest.approx(gaussian.epsilon_of(1e-6, 0.5), rel=1e-2)
    assert found.worst_pair == (0, 1)
    assert found.mean == pytest.approx(found.largest / 2, rel=1e-6)


def test_more_noise_fewer_steps_more_users_and_a_larger_delta_tell_less() -> None:
    terms = {"n": 8, "steps": 60, "tokens": 1, "mu": 0.3, "delta": 1e-6}
    before = a_priori(**terms)
    for name, value in (("n", 16), ("steps", 30), ("mu", 0.2), ("delta", 1e-4)):
        after = a_priori(**{**terms, name: value})
        assert after.largest < before.largest
        assert after.mean < before.mean
    assert a_priori(**{**terms, "tokens": 2}).largest > before.largest
    tiny = a_priori(**{**terms, "delta": 1e-14})
    assert before.largest < tiny.largest < math.inf


def test_without_a_sensitivity_nothing_is_told() -> None:
    assert a_priori(5, 20, 2, 0.0, 1e-6)[:2] == (0.0, 0.0)


@given(st.integers(1, 70), st.integers(0, 2**32))
def test_renewals_solve_their_equation(length: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    waits = random.uniform(-1, 1, (3, length)) * 0.9 / length + 0j
    renewals = _renewals(waits)
    again = np.concatenate((np.ones((3, 1)), _product(waits, renewals, length)[:, :-1]), axis=1)
    np.testing.assert_allclose(renewals, again, atol=1e-12)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"n": 1}, "two users"),
        ({"steps": 0}, "one step"),
        ({"tokens": 0}, "one token"),
        ({"steps": STEPS_MAX + 1}, f"up to {STEPS_MAX} steps"),
        ({"mu": math.nan}, "mu"),
        ({"mu": math.inf}, "mu"),
        ({"delta": 0.0}, "delta"),
        ({"delta": math.nan}, "delta"),
    ],
)
def test_wrong_terms_are_refused(changed: dict[str, Any], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        a_priori(**{"n": 5, "steps": 10, "tokens": 1, "mu": 0.5, "delta": 1e-6, **changed})


def test_taking_gaps_of_like_length_together_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    together = a_priori(20, 200, 1, 0.4, 1e-3)
    monkeypatch.setattr(module, "_ALIKE", 1e-9)
    apart = a_priori(20, 200, 1, 0.4, 1e-3)
    for one, two in zip(apart[:2], together[:2], strict=True):
        assert one <= two <= one * 1.02


def told_counts(n: int, steps: int, user: int, observer: int, epsilon: float) -> float:
    """Delta where other users' contributions lie so far apart that sums show how often the user came: all paths."""
    found: list[float] = []
    for others in product(range(n), repeat=steps - 1):
        square, own, length = 0.0, 0, 0
        for holder in (0, *others, observer):  # user 0 starts, and the total is published
            if holder != observer:
                own, length = own + (holder == user), length + 1
            elif length:
                square, own, length = square + own * own / length, 0, 0
        found.append(gaussian.delta_of(epsilon, math.sqrt(square)) if square else 0.0)
    return sum(found) / len(found)


@pytest.mark.parametrize(("n", "steps", "delta"), [(6, 6, 0.01), (4, 6, 0.01), (5, 5, 1e-3)])
def test_where_users_differ_more_than_a_contribution_moves_counts_are_told(n: int, steps: int, delta: float) -> None:
    """As sums of rows do, of which one is replaced."""
    apart = a_priori(n, steps, 1, 1.0, delta, alike=False)
    told = max(told_counts(n, steps, *pair, apart.largest) for pair in ((0, 1), (1, 0), (2, 1)))
    assert 0.99 * delta < told <= delta
    alike = a_priori(n, steps, 1, 1.0, delta)
    assert alike.largest < apart.largest
    assert max(told_counts(n, steps, *pair, alike.largest) for pair in ((0, 1), (1, 0), (2, 1))) > delta
