from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.composition import optimal
from p2pdp.privacy.hidden_path.losses import scale, upper_losses
from p2pdp.privacy.pld.losses import Losses, from_curves
from p2pdp.privacy.pld.sums import (
    SIZE_MAX,
    SIZE_MIN,
    Moments,
    compose,
    log_spectrum,
    lower_epsilons,
    power,
    spectrum,
    upper_ends,
)
from tests.support.curves import each, of_gaussian, of_laplace, of_response, of_sampled

LAW = np.array([0.0, 1.0])


def summed(mu: float, count: int, delta: float, fineness: float = 0.05) -> tuple[float, float]:
    """Epsilon of `count` Gaussian losses, by window and by moments."""
    step = fineness * mu
    losses = upper_losses(LAW, mu, step, 1e-6 * delta / count, 1.0)
    moments = Moments(mu, 2 * mu * math.sqrt(count))
    logs = count * losses.log_moments(moments.exponents)[None]
    size = int(moments.size(logs, delta, step)[0])
    beyond = np.array([count * losses.infinite])
    tail = np.exp(moments.log_tail(logs, np.array([size / 2 * step])))
    spectra = np.exp(count * log_spectrum(losses, size))[None]
    by_window = upper_ends(spectra, step, delta, beyond, tail, count).epsilons
    return float(by_window[0]), float(moments.epsilon(logs, delta - beyond)[0])


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize(("mu", "count"), [(1.0, 1), (0.1, 100), (0.01, 1000), (3.0, 5)])
def test_gaussian_sums_are_met_from_above(mu: float, count: int, delta: float) -> None:
    by_window, by_moments = summed(mu, count, delta)
    exact = gaussian.epsilon_of(delta, mu * math.sqrt(count))
    assert exact <= by_window <= exact * 1.01 + 1e-9
    assert by_moments >= exact


@pytest.mark.parametrize("delta", [1e-13, 1e-20, 1e-100])
def test_where_rounding_drowns_delta_moments_answer(delta: float) -> None:
    by_window, by_moments = summed(0.1, 1000, delta)
    exact = gaussian.epsilon_of(delta, 0.1 * math.sqrt(1000))
    assert by_window == math.inf
    assert exact <= by_moments <= exact * 1.1


def test_independent_accountants_agree() -> None:
    """dp-accounting composes the same Gaussians over its own grid, rounded up."""
    for deviation, count in ((2.0, 10), (8.0, 60)):
        one = pld.from_gaussian_mechanism(deviation, sensitivity=1.0, value_discretization_interval=1e-3)
        theirs = one.self_compose(count).get_epsilon_for_delta(1e-6)
        assert summed(1 / deviation, count, 1e-6, 0.02)[0] == pytest.approx(theirs, rel=3e-3)


def test_the_total_variation_of_gaussian_sums_is_met_from_above() -> None:
    """2 Phi(mu / 2) - 1, whatever delta is asked for."""
    for mu, count in ((1.0, 1), (0.1, 100), (3.0, 5)):
        step, exact = 0.05 * mu, math.erf(mu * math.sqrt(count / 8.0))
        losses = upper_losses(LAW, mu, step, 1e-12, 1.0)
        spectra = np.exp(count * log_spectrum(losses, SIZE_MAX))[None]
        beyond, none = np.array([count * losses.infinite]), np.zeros(1)
        for delta in (1e-9, 0.3):
            (variation,) = upper_ends(spectra, step, delta, beyond, none, count).variation
            assert exact <= variation <= min(1.0, exact * 1.01)
        (more,) = upper_ends(spectra, step, 0.1, beyond, none + 0.01, count).variation
        assert more == pytest.approx(min(variation + 0.01, 1.0), rel=1e-9)


def random_losses(seed: int, size: int, step: float = 0.1) -> Losses:
    random = np.random.default_rng(seed)
    masses = random.uniform(0.0, 1.0, size)
    return Losses(step, -size // 3, masses / masses.sum() * (1.0 - 1e-3), 1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_spectra_multiply_as_losses_convolve(seed: int) -> None:
    one, two = random_losses(seed, 40), random_losses(seed + 100, 70)
    both = Losses(one.step, one.first + two.first, np.convolve(one.masses, two.masses))
    np.testing.assert_allclose(spectrum(one, 512) * spectrum(two, 512), spectrum(both, 512), atol=1e-14)
    np.testing.assert_allclose(np.exp(log_spectrum(one, 512)), spectrum(one, 512), atol=1e-14)


def delta_of(losses: Losses, step: float, epsilon: float) -> float:
    at = step * np.arange(losses.first, losses.first + len(losses.masses))
    return float(np.sum(losses.masses * np.maximum(0.0, -np.expm1(np.minimum(epsilon - at, 0.0)))))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("step", [1e-3, 0.1, 5.0, 90.0])
def test_epsilon_is_where_the_curve_falls_to_delta(seed: int, step: float) -> None:
    losses = random_losses(seed, 60, step)
    none = np.zeros(1)
    for delta in (0.001, 0.05, 0.2, 0.6, 0.9):
        ends: list[Any] = [
            upper_ends(spectrum(losses, 256)[None], step, delta, none, none, 1).epsilons[0],
            lower_epsilons(spectrum(losses, 256)[None], step, delta, none, none, 1)[0],
        ]
        assert ends[1] <= ends[0] <= ends[1] * (1 + 1e-7) + 1e-9
        if ends[0] == 0.0:
            assert delta_of(losses, step, 0.0) <= delta
        else:
            assert delta_of(losses, step, ends[0]) <= delta * (1 + 1e-9)
            assert delta_of(losses, step, ends[1]) >= delta * (1 - 1e-9)


def test_what_is_beyond_or_left_out_counts_the_pessimistic_way() -> None:
    losses, some = random_losses(1, 60), np.array([0.02])
    spectra, none = spectrum(losses, 256)[None], np.zeros(1)
    plain = upper_ends(spectra, 0.1, 0.05, none, none, 1).epsilons
    for beyond, tail in ((some, none), (none, some)):
        assert upper_ends(spectra, 0.1, 0.05, beyond, tail, 1).epsilons > plain
        assert lower_epsilons(spectra, 0.1, 0.05, beyond, tail, 1) < plain
        assert upper_ends(spectra, 0.1, 0.02, beyond, tail, 1).epsilons == math.inf
        assert lower_epsilons(spectra, 0.1, 0.999, beyond, tail, 1) == 0.0


def test_tails_are_bounded_and_windows_hold_them() -> None:
    moments = Moments(1.0, 3.0)
    step = 0.01
    losses = upper_losses(LAW, 2.0, step, 1e-30, 1.0)
    logs = losses.log_moments(moments.exponents)[None]
    at = step * np.arange(losses.first, losses.first + len(losses.masses))
    for end in (3.0, 6.0, 12.0):
        beyond = float(losses.masses[at > end].sum())
        assert math.log(beyond) <= moments.log_tail(logs, np.array([end]))[0]
        below = float(losses.masses[at < -end].sum())
        assert math.log(below) <= moments.log_tail(losses.log_moments(-moments.exponents)[None], np.array([end]))[0]
    size = int(moments.size(logs, 1e-6, step)[0])
    assert losses.masses[at > size / 2 * step].sum() <= 1e-10
    assert size & (size - 1) == 0
    assert int(moments.size(logs * 0.0, 0.5, 1e9)[0]) == SIZE_MIN
    assert int(moments.size(logs, 1e-6, 1e-12)[0]) == SIZE_MAX


def test_the_scale_of_a_gaussian_is_about_its_loss() -> None:
    for mu in (1e-3, 0.1, 0.5):
        assert scale(LAW, mu, 1.0) == pytest.approx(mu, rel=0.3)


@pytest.mark.parametrize(
    ("mu", "times", "delta", "step"),
    [(1.0, 1, 1e-5, 2e-3), (0.1, 100, 1e-12, 1e-3), (0.05, 1000, 1e-6, 1e-3), (1.0, 10, 1e-10, 1e-2)],
)
def test_gaussians_compose_to_their_own_curve(mu: float, times: int, delta: float, step: float) -> None:
    losses = from_curves(of_gaussian(mu), of_gaussian(mu), step, 40.0 * mu)
    found = compose([(losses, times)], delta)
    true = gaussian.epsilon_of(delta, mu * math.sqrt(times))
    assert true <= found.epsilon_upper(delta) <= true + times * step**2 + 1e-6
    assert true - 5 * step * math.sqrt(times) - 1e-6 <= found.epsilon_lower(delta) <= true
    for epsilon in (0.8 * true, true, 1.3 * true):
        exact = gaussian.delta_of(epsilon, mu * math.sqrt(times))
        assert found.delta_upper(epsilon) >= exact * (1 - 1e-11)


def test_different_mechanisms_compose_as_one() -> None:
    step, delta = 1e-3, 1e-6
    some, others = (from_curves(of_gaussian(mu), of_gaussian(mu), step, 40.0 * mu) for mu in (0.2, 0.7))
    together = compose([(some, 5), (others, 2)], delta).epsilon_upper(delta)
    assert together == pytest.approx(gaussian.epsilon_of(delta, math.sqrt(5 * 0.04 + 2 * 0.49)), rel=1e-5)
    assert compose([(some, 2), (others, 2), (some, 3)], delta).epsilon_upper(delta) == pytest.approx(together, rel=1e-9)


def test_a_sampled_gaussian_has_its_known_answer_in_both_directions() -> None:
    """(q, sigma, steps, delta) = (0.01, 1, 1000, 1e-5): 1.828244."""
    losses = from_curves(*of_sampled(0.01, 1.0), 5e-4, 8.0)
    ends = [compose([(one, 1000)], 1e-5) for one in (losses, losses.reversed())]
    upper = max(end.epsilon_upper(1e-5) for end in ends)
    assert upper == pytest.approx(1.828244, abs=3e-4)
    assert max(end.epsilon_lower(1e-5) for end in ends) <= 1.828244 <= upper + 5e-7
    assert ends[1].epsilon_upper(1e-5) < ends[0].epsilon_upper(1e-5)


def test_laplace_agrees_with_a_public_oracle() -> None:
    losses = from_curves(of_laplace(0.5), of_laplace(0.5), 1e-3, 1.0)
    oracle = pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-4).self_compose(30)
    for delta in (1e-2, 1e-6, 1e-9):
        found = compose([(losses, 30)], delta)
        assert found.epsilon_upper(delta) == pytest.approx(oracle.get_epsilon_for_delta(delta), rel=1e-3)
        assert found.epsilon_lower(delta) <= found.epsilon_upper(delta)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.05])
def test_randomized_response_is_bracketed(delta: float) -> None:
    """Its losses lie between the grid's points, and it has no loss beyond its epsilon."""
    losses = from_curves(of_response(0.1), of_response(0.1), 3e-4, 0.2)
    assert losses.infinite == losses.vanished == 0.0
    found = compose([(losses, 50)], delta)
    true = optimal(0.1, 50, delta)
    assert found.epsilon_lower(delta) <= true * (1 + 1e-7)
    assert true * (1 - 1e-7) <= found.epsilon_upper(delta) <= true + 0.01


def test_what_has_no_counterpart_stays_infinite() -> None:
    def leaking(epsilons: Floats) -> Floats:
        return np.maximum(1e-3, of_response(0.1)(epsilons) * 0.999 + 1e-3)

    losses = from_curves(leaking, leaking, 1e-3, 0.2)
    found = compose([(losses, 10)], 1e-2)
    assert found.infinite == pytest.approx(1 - 0.999**10)
    assert found.epsilon_upper(1e-3) == math.inf
    assert found.epsilon_upper(0.02) < math.inf
    assert found.delta_upper(0.0) <= 1.0


def test_nothing_tells_nothing() -> None:
    losses = from_curves(np.zeros_like, np.zeros_like, 0.1, 1.0)
    found = compose([(losses, 3)], 1e-6)
    assert found.epsilon_upper(1e-6) == found.epsilon_lower(1e-6) == 0.0


def test_a_smaller_delta_a_larger_count_and_a_coarser_grid_never_have_a_smaller_upper_end() -> None:
    grids = {step: from_curves(of_gaussian(0.3), of_gaussian(0.3), step, 12.0) for step in (1e-2, 2e-3)}
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
            from_curves(fine, fine, step, largest)
    with pytest.raises(UsageError, match="finite"):
        from_curves(lambda epsilons: epsilons * math.nan, fine, 0.1, 1.0)
    with pytest.raises(UsageError, match="one pair"):
        from_curves(lambda epsilons: np.where(epsilons < 0.5, 1.0, 0.0), lambda epsilons: 1.0 - epsilons, 0.1, 1.0)
    one, other = from_curves(fine, fine, 0.1, 10.0), from_curves(fine, fine, 0.05, 10.0)
    for parts in ([(one, 1), (other, 1)], [(one, 0)]):
        with pytest.raises(UsageError, match="compose on one grid"):
            compose(parts, 1e-6)
    with pytest.raises(UsageError, match="delta"):
        compose([(one, 1)], 0.0)
    with pytest.raises(UsageError, match="too small"):
        compose([(from_curves(fine, fine, 1e-3, 10.0), 10**9)], 1e-6)


def enumerated(pair: tuple[Any, Any], times: int) -> tuple[Any, Any]:
    """All outcomes of so many independent uses, listed."""
    first, second = np.ones(1), np.ones(1)
    for _ in range(times):
        first, second = (np.multiply.outer(some, one).ravel() for some, one in zip((first, second), pair, strict=True))
    return first, second


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("step", [0.002, 0.05])
def test_both_ways_bracket_an_enumeration_of_all_outcomes(seed: int, times: int, step: float) -> None:
    random = np.random.default_rng(seed)
    one = random.dirichlet(np.ones(4) * 3.0)
    pair = (one, one[::-1].copy())
    first, second = enumerated(pair, times)
    curve = each(lambda epsilon: float(np.maximum(pair[0] - math.exp(epsilon) * pair[1], 0.0).sum()))
    losses = from_curves(curve, curve, step, 8.0)
    spectra = power(spectrum(losses, 1 << 15), times)[None]
    none = np.zeros(1)
    for delta in (0.3, 0.02, 1e-4, 1e-9, 1e-14):
        low, high = 0.0, 50.0  # bisect the enumerated curve
        for _ in range(80):
            middle = (low + high) / 2.0
            over = np.maximum(first - math.exp(middle) * second, 0.0).sum() > delta
            low, high = (middle, high) if over else (low, middle)
        together = compose([(losses, times)], delta)
        upper, lower = together.epsilon_upper(delta), together.epsilon_lower(delta)
        assert lower <= high <= upper + 1e-9
        assert upper <= high + times * step + 1e-6
        if delta > 1e-5:
            window = upper_ends(spectra, step, delta, none, none, times).epsilons[0]
            assert window == pytest.approx(upper, rel=1e-8, abs=1e-8)
        assert together.delta_upper(upper) <= delta * (1.0 + 1e-6)


@given(times=st.integers(0, 300), seed=st.integers(0, 99))
def test_a_power_is_repeated_multiplication(times: int, seed: int) -> None:
    base = np.exp(1j * np.random.default_rng(seed).uniform(0.0, 6.0, 5))
    direct = np.ones(5, dtype=np.complex128)
    for _ in range(times):
        direct = direct * base
    np.testing.assert_allclose(power(base, times), direct, atol=1e-12)


def test_dp_accounting_composes_to_the_same_epsilon_from_above() -> None:
    """Its grid rounds losses up, ours joins points of the curve: both are above the truth, ours is closer."""
    for mu, times, delta in ((0.5, 4, 1e-6), (0.1, 64, 1e-9)):
        curve = of_gaussian(mu)
        ours = compose([(from_curves(curve, curve, 1e-3, 40.0 * mu), times)], delta).epsilon_upper(delta)
        one = pld.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=1e-3)
        theirs = one.self_compose(times).get_epsilon_for_delta(delta)
        exact = gaussian.epsilon_of(delta, mu * math.sqrt(times))
        assert exact <= ours <= theirs <= exact * 1.01


@settings(max_examples=60)
@given(
    log_mu=st.floats(-2.5, 0.3),
    times=st.integers(1, 300),
    log_delta=st.floats(-80.0, -0.4),
    log_fineness=st.floats(-1.5, 0.3),
)
def test_both_ends_hold_for_gaussians_of_any_size(
    log_mu: float, times: int, log_delta: float, log_fineness: float
) -> None:
    mu, delta = 10.0**log_mu, 10.0**log_delta
    step = min(1.0, mu * 10.0**log_fineness)
    curve = of_gaussian(mu)
    found = compose([(from_curves(curve, curve, step, max(step, (mu / 2.0 + 38.0) * mu)), times)], delta)
    exact = gaussian.epsilon_of(delta, mu * math.sqrt(times))
    assert found.epsilon_lower(delta) <= exact <= found.epsilon_upper(delta) * (1.0 + 1e-9)
    assert found.delta_upper(found.epsilon_upper(delta)) <= delta * (1.0 + 1e-6)
