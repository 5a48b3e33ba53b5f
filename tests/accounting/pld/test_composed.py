from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from p2pdp.accounting.composition import optimal
from p2pdp.accounting.pld.composed import compose, losses_of
from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian

Curve = Callable[[Floats], Floats]


def each(delta_of: Callable[[float], float]) -> Curve:
    return lambda epsilons: np.array([delta_of(float(epsilon)) for epsilon in epsilons])


def of_gaussian(mu: float) -> Curve:
    return each(lambda epsilon: gaussian.delta_of(epsilon, mu))


def of_laplace(epsilon_0: float) -> Curve:
    return lambda epsilons: np.maximum(0.0, -np.expm1((epsilons - epsilon_0) / 2.0))


def of_response(epsilon_0: float) -> Curve:
    truth = math.exp(epsilon_0) / (1.0 + math.exp(epsilon_0))
    return lambda epsilons: np.maximum(0.0, truth - np.exp(epsilons) * (1.0 - truth))


def of_sampled(share: float, mu: float) -> tuple[Curve, Curve]:
    """A Gaussian on a Poisson sample: with the user against without, and without against with."""

    def without(epsilon: float) -> float:
        left = 1.0 - math.exp(epsilon) * (1.0 - share)
        if left <= 0.0:
            return 0.0
        return left * gaussian.delta_of(epsilon + math.log(share / left), mu)

    def present(epsilon: float) -> float:
        return share * gaussian.delta_of(math.log1p(math.expm1(epsilon) / share), mu)

    return each(present), each(without)


@pytest.mark.parametrize(
    ("mu", "times", "delta", "step"),
    [(1.0, 1, 1e-5, 2e-3), (0.1, 100, 1e-12, 1e-3), (0.05, 1000, 1e-6, 1e-3), (1.0, 10, 1e-10, 1e-2)],
)
def test_gaussians_compose_to_their_own_curve(mu: float, times: int, delta: float, step: float) -> None:
    losses = losses_of(of_gaussian(mu), of_gaussian(mu), step, 40.0 * mu)
    found = compose([(losses, times)], delta)
    true = gaussian.epsilon_of(delta, mu * math.sqrt(times))
    assert true <= found.epsilon_upper(delta) <= true + times * step**2 + 1e-6
    assert true - 5 * step * math.sqrt(times) - 1e-6 <= found.epsilon_lower(delta) <= true
    for epsilon in (0.8 * true, true, 1.3 * true):
        exact = gaussian.delta_of(epsilon, mu * math.sqrt(times))
        assert found.delta_upper(epsilon) >= exact * (1 - 1e-11)
        assert found.delta_lower(epsilon, delta / 1000) <= exact


def test_different_mechanisms_compose_as_one() -> None:
    step, delta = 1e-3, 1e-6
    some, others = (losses_of(of_gaussian(mu), of_gaussian(mu), step, 40.0 * mu) for mu in (0.2, 0.7))
    together = compose([(some, 5), (others, 2)], delta).epsilon_upper(delta)
    assert together == pytest.approx(gaussian.epsilon_of(delta, math.sqrt(5 * 0.04 + 2 * 0.49)), rel=1e-5)
    assert compose([(some, 2), (others, 2), (some, 3)], delta).epsilon_upper(delta) == pytest.approx(together, rel=1e-9)


def test_a_sampled_gaussian_has_its_known_answer_in_both_directions() -> None:
    """(q, sigma, steps, delta) = (0.01, 1, 1000, 1e-5): 1.828244."""
    losses = losses_of(*of_sampled(0.01, 1.0), 5e-4, 8.0)
    ends = [compose([(one, 1000)], 1e-5) for one in (losses, losses.reversed())]
    upper = max(end.epsilon_upper(1e-5) for end in ends)
    assert upper == pytest.approx(1.828244, abs=3e-4)
    assert max(end.epsilon_lower(1e-5) for end in ends) <= 1.828244 <= upper + 5e-7
    assert ends[1].epsilon_upper(1e-5) < ends[0].epsilon_upper(1e-5)


def test_laplace_agrees_with_a_public_oracle() -> None:
    losses = losses_of(of_laplace(0.5), of_laplace(0.5), 1e-3, 1.0)
    oracle = pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-4).self_compose(30)
    for delta in (1e-2, 1e-6, 1e-9):
        found = compose([(losses, 30)], delta)
        assert found.epsilon_upper(delta) == pytest.approx(oracle.get_epsilon_for_delta(delta), rel=1e-3)
        assert found.epsilon_lower(delta) <= found.epsilon_upper(delta)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.05])
def test_randomized_response_is_bracketed(delta: float) -> None:
    """Its losses lie between the grid's points, and it has no loss beyond its epsilon."""
    losses = losses_of(of_response(0.1), of_response(0.1), 3e-4, 0.2)
    assert losses.infinite == losses.vanished == 0.0
    found = compose([(losses, 50)], delta)
    true = optimal(0.1, 50, delta)
    assert found.epsilon_lower(delta) <= true * (1 + 1e-7)
    assert true * (1 - 1e-7) <= found.epsilon_upper(delta) <= true + 0.01


def test_what_has_no_counterpart_stays_infinite() -> None:
    def leaking(epsilons: Floats) -> Floats:
        return np.maximum(1e-3, of_response(0.1)(epsilons) * 0.999 + 1e-3)

    losses = losses_of(leaking, leaking, 1e-3, 0.2)
    found = compose([(losses, 10)], 1e-2)
    assert found.infinite == pytest.approx(1 - 0.999**10)
    assert found.epsilon_upper(1e-3) == math.inf
    assert found.epsilon_upper(0.02) < math.inf
    assert found.delta_lower(0.0, 1e-9) <= found.delta_upper(0.0) <= 1.0


def test_nothing_tells_nothing() -> None:
    losses = losses_of(np.zeros_like, np.zeros_like, 0.1, 1.0)
    found = compose([(losses, 3)], 1e-6)
    assert found.epsilon_upper(1e-6) == found.epsilon_lower(1e-6) == 0.0


def test_reversing_twice_changes_nothing() -> None:
    losses = losses_of(*of_sampled(0.1, 2.0), 1e-2, 20.0)
    again = losses.reversed().reversed()
    assert (again.first, again.infinite, again.vanished) == (losses.first, losses.infinite, losses.vanished)
    np.testing.assert_allclose(again.mass, losses.mass, rtol=1e-12)
    total = losses.reversed().mass.sum() + losses.vanished
    assert total == pytest.approx(1.0, abs=1e-9)


def test_a_smaller_delta_a_larger_count_and_a_coarser_grid_never_have_a_smaller_upper_end() -> None:
    grids = {step: losses_of(of_gaussian(0.3), of_gaussian(0.3), step, 12.0) for step in (1e-2, 2e-3)}
    ends = {
        (step, times, delta): compose([(grids[step], times)], delta).epsilon_upper(delta)
        for step in grids
        for times in (1, 7)
        for delta in (1e-9, 1e-3)
    }
    for (step, times, delta), epsilon in ends.items():
        assert epsilon >= ends[2e-3, times, delta] - 1e-9
        assert epsilon >= ends[step, 1, delta]
        assert epsilon >= ends[step, times, 1e-3]


def test_what_makes_no_sense_is_refused() -> None:
    fine = of_gaussian(1.0)
    for step, largest in ((0.0, 1.0), (2.0, 3.0), (0.5, 0.1), (0.1, math.inf), (math.nan, 1.0)):
        with pytest.raises(UsageError, match="step"):
            losses_of(fine, fine, step, largest)
    with pytest.raises(UsageError, match="finite"):
        losses_of(lambda epsilons: epsilons * math.nan, fine, 0.1, 1.0)
    with pytest.raises(UsageError, match="one pair"):
        losses_of(lambda epsilons: np.where(epsilons < 0.5, 1.0, 0.0), lambda epsilons: 1.0 - epsilons, 0.1, 1.0)
    one, other = losses_of(fine, fine, 0.1, 10.0), losses_of(fine, fine, 0.05, 10.0)
    for parts in ([(one, 1), (other, 1)], [(one, 0)]):
        with pytest.raises(UsageError, match="compose on one grid"):
            compose(parts, 1e-6)
    with pytest.raises(UsageError, match="delta"):
        compose([(one, 1)], 0.0)
    with pytest.raises(UsageError, match="too small"):
        compose([(losses_of(fine, fine, 1e-3, 10.0), 10**9)], 1e-6)
