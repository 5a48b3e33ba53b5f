from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.rounding import PAIR_ERROR, added, beside, errors, responses, shift


@given(
    kappa=st.floats(0.0, 1.0), degree=st.integers(1, 9), gamma=st.floats(1.0, 1.95), block=st.integers(1, 12),
    blocks=st.integers(1, 3), seed=st.integers(0, 10**6),
)  # fmt: skip
def test_no_errors_of_that_size_carry_a_state_farther(
    kappa: float, degree: int, gamma: float, block: int, blocks: int, seed: int
) -> None:
    """The recursion itself, with errors of either sign and of full size, against the sum of responses."""
    random = np.random.default_rng(seed)
    sign = lambda: random.choice([-1.0, 1.0])  # noqa: E731
    bound, fresh = errors(kappa, degree, gamma, block, blocks), added(kappa, degree, gamma)
    assert len(bound) == block * blocks + 1
    now = before = 0.0
    for sent in range(block * blocks):
        first = sent % block == 0
        now += (0.5 if blocks == 1 else 2.0) * sign() * first
        assert abs(now) <= bound[sent] * (1 + 1e-12)
        grown = 1.0 if first else gamma
        before, now = now, grown * (1.0 - kappa) * now + (1.0 - grown) * before + fresh * sign()
    assert abs(now) <= bound[-1] * (1 + 1e-12)


def test_plain_errors_come_to_rest() -> None:
    """On a ring of thirds: 2 steps a round, of which a third is left after each: 3 in the end."""
    assert added(2 / 3, 2, 1.0) == pytest.approx(2.0)
    assert errors(2 / 3, 2, 1.0, 50, 1)[-1] == pytest.approx(3.0)
    assert errors(2 / 3, 2, 1.0, 1, 1).tolist() == pytest.approx([0.5, 0.5 / 3 + 2.0])
    assert PAIR_ERROR == (PAIR_ERROR + 0.5) / 2 + 0.5


def test_an_accelerated_error_rings() -> None:
    assert responses(0.5, 1.5, 3, 1.0) == pytest.approx([1.0, 0.5, abs(0.375 - 0.5), abs(0.75 * -0.125 - 0.25)])
    assert responses(0.5, 1.5, 1, 1.5) == pytest.approx([1.0, 0.75])


def test_the_example_of_six_hundred_messages() -> None:
    """A star of 4 with lazy weights, 150 rounds, states within 16 deviations: some 1e-4 is added to mu."""
    squares = sum(float(np.sum(errors(kappa, degree, 1.0, 150, 1)[:-1] ** 2)) for kappa, degree in
                  ((3 / 8, 3), (1 / 8, 1), (1 / 8, 1), (1 / 8, 1)))  # fmt: skip
    nu = shift(squares, 1, 1.0, 2.0**22)
    assert 2.0 * nu == pytest.approx(8.0e-5, rel=0.1)
    assert shift(squares, 100, 3.0, 3.0 * 2.0**22) == pytest.approx(10.0 * nu)
    assert math.isinf(shift(1.0, 1, 1.0, 1e-320))


def test_beside_another_claim_it_costs_little_and_covers_a_gaussian_one() -> None:
    """For a Gaussian claim the exact answer is known: that of mu + 2 nu."""
    for mu, nu, delta in ((1.0, 1e-5, 1e-5), (0.3, 1e-6, 1e-8), (4.0, 1e-4, 1e-3)):
        found = beside(lambda at, mu=mu: gaussian.epsilon_of(at, mu), delta, nu)
        assert gaussian.epsilon_of(delta, mu + 2.0 * nu) <= found < gaussian.epsilon_of(delta, mu) * 1.01 + 40.0 * nu
    assert beside(lambda at: 1.0, 1e-5, 0.0) == 1.0
    assert math.isinf(beside(lambda at: 1.0, 1e-5, math.inf))
    assert math.isinf(beside(lambda at: 1.0, 1e-5, 10.0))
    asked: list[float] = []
    beside(lambda at: asked.append(at) or 1.0, 1e-5, 3e-5)  # type: ignore[func-returns-value]
    assert asked == [1e-5 * 0.999], "shares that cannot be enough are not tried"
