from __future__ import annotations

import math
import subprocess
import sys

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.gaussian import delta_of, epsilon_of, mu_of_curve, sigma_of

MUS = st.floats(-8, 4).map(lambda power: 10.0**power)
DELTAS = st.floats(-300, -0.001).map(lambda power: 10.0**power)
EPSILONS = st.one_of(st.just(0.0), st.floats(-9, 4).map(lambda power: 10.0**power))


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """The curve as printed (Balle and Wang 2018, Theorem 8), with digits to spare for its cancellation."""
    with mpmath.workdps(400):
        e, m, root = mpmath.mpf(epsilon), mpmath.mpf(mu), mpmath.sqrt(2)
        upper = mpmath.erfc((e / m - m / 2) / root) / 2
        return upper - mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / root) / 2


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(0.1, 1e-6, 36.3046904261959), (1.0, 1e-5, 3.7306316348159), (5.0, 1e-6, 0.9800490003092)],
)
def test_known_sigmas(epsilon: float, delta: float, sigma: float) -> None:
    """guide/accounting.md, section 6."""
    assert sigma_of(epsilon, delta) == pytest.approx(sigma, rel=1e-10)
    assert sigma_of(epsilon, delta, 2.0) == pytest.approx(2 * sigma, rel=1e-10)


@pytest.mark.parametrize(("sigma", "delta", "epsilon"), [(1.0, 1e-5, 4.37717809568122), (4.0, 1e-6, 1.06070186232827)])
def test_known_epsilons(sigma: float, delta: float, epsilon: float) -> None:
    """guide/accounting.md, section 6."""
    assert epsilon_of(delta, 1 / sigma) == pytest.approx(epsilon, rel=1e-10)


@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 4.0])
def test_the_curve_is_the_hockey_stick_of_two_gaussians(mu: float, epsilon: float) -> None:
    """[BW18, Theorem 8], by integrating the densities."""
    x = np.linspace(-12.0, 12.0 + mu, 400_001)
    p, q = np.exp(-((x - mu) ** 2) / 2), np.exp(-(x**2) / 2)
    integral = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    assert delta_of(epsilon, mu) == pytest.approx(integral, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 0.1, 1.0, 3.0])
def test_the_curve_agrees_with_dp_accounting(sigma: float, epsilon: float) -> None:
    """[BW18, Theorem 8]."""
    oracle = privacy_loss_mechanism.GaussianPrivacyLoss(sigma).get_delta_for_epsilon(epsilon)
    assert delta_of(epsilon, 1 / sigma) == pytest.approx(oracle, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (2.0, 1e-9), (8.0, 1e-5)])
def test_calibration_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    sigma = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert sigma_of(epsilon, delta) == pytest.approx(sigma, rel=1e-8)
    assert epsilon_of(delta, 1 / sigma) == pytest.approx(dp_accounting.get_epsilon_gaussian(sigma, delta), rel=1e-6)


@given(MUS, st.floats(-10, 37))
@example(0.1, 3.0)
@example(math.nextafter(0.1, 0), 3.0)
@example(1.0, 4.0)
@example(1.0, 0.0)
def test_the_curve_to_ten_digits(mu: float, a: float) -> None:
    epsilon = mu * (a + mu / 2)
    assume(epsilon >= 0)
    exact = exact_delta(epsilon, mu)
    assume(exact > 1e-300)
    assert abs(delta_of(epsilon, mu) / exact - 1) < 1e-10


@given(MUS, DELTAS)
def test_epsilon_is_never_below_the_truth_and_within_a_billionth(mu: float, delta: float) -> None:
    epsilon = epsilon_of(delta, mu)
    if epsilon == 0:
        assert delta_of(0.0, mu) <= delta
        return
    assert exact_delta(epsilon, mu) <= delta
    if epsilon > 1e-3 * mu:  # below, delta as a float no longer determines epsilon to nine digits
        assert exact_delta(epsilon * (1 - 1e-9), mu) > delta


@given(EPSILONS, DELTAS)
@example(0.0, 1e-300)
@example(1e4, 0.999)
def test_mu_is_never_above_the_truth_and_within_a_billionth(epsilon: float, delta: float) -> None:
    mu = mu_of_curve(epsilon, delta)
    assert exact_delta(epsilon, mu) <= delta
    assert exact_delta(epsilon, mu * (1 + 1e-9)) > delta


@given(EPSILONS, DELTAS, st.floats(1e-3, 1e3))
def test_sigma_keeps_what_it_promises(epsilon: float, delta: float, sensitivity: float) -> None:
    sigma = sigma_of(epsilon, delta, sensitivity)
    assert exact_delta(epsilon, sensitivity / sigma) <= delta


@given(MUS, EPSILONS, st.floats(1.0001, 10))
def test_the_curve_falls_with_epsilon_and_rises_with_mu(mu: float, epsilon: float, factor: float) -> None:
    here = delta_of(epsilon, mu)
    assert delta_of(epsilon * factor, mu) <= here * (1 + 1e-10)
    assert delta_of(epsilon, mu * factor) >= here * (1 - 1e-10)


@given(MUS, DELTAS, st.floats(1.0001, 10))
def test_epsilon_falls_with_delta_and_rises_with_mu(mu: float, delta: float, factor: float) -> None:
    here = epsilon_of(delta, mu)
    assert epsilon_of(min(1.0, delta * factor), mu) <= here * (1 + 1e-9)
    assert epsilon_of(delta, mu * factor) >= here * (1 - 1e-9)


@given(st.floats(-20, 20), st.floats(0.01, 10))
def test_the_pair_is_symmetric(epsilon: float, mu: float) -> None:
    """H_{1/c}(P, Q) = 1 - 1/c + H_c(Q, P)/c, and for Gaussians (P, Q) and (Q, P) have the same curve."""
    mirrored = 1 - math.exp(-epsilon) + math.exp(-epsilon) * delta_of(epsilon, mu)
    assert delta_of(-epsilon, mu) == pytest.approx(mirrored, abs=1e-12 * math.exp(abs(epsilon)))


@settings(max_examples=300)
@given(st.floats(0, allow_nan=False), st.floats(allow_nan=False), st.floats(0, 1))
@example(1e308, 1e308, 1e-300)
@example(5e-324, 5e-324, 5e-324)
@example(1e160, 0.0, 1e-6)
@example(1e-310, 1e12, 1e-320)
@example(1e6, 1e12, 1e-300)
@example(1.0, 1e12, 1 - 1e-16)
def test_nothing_is_ever_nan(mu: float, epsilon: float, delta: float) -> None:
    assert 0 <= delta_of(epsilon, mu) <= 1
    assert epsilon_of(delta, mu) >= 0
    if 1e-300 <= delta < 1 and 0 <= epsilon <= 1e12:
        assert mu_of_curve(epsilon, delta) > 0


def test_the_ends_of_the_range() -> None:
    assert delta_of(0.0, math.inf) == 1.0
    assert delta_of(1.0, 0.0) == 0.0
    assert delta_of(-math.inf, 1.0) == 1.0
    assert delta_of(math.inf, 1.0) == 0.0
    assert epsilon_of(1e-6, math.inf) == math.inf
    assert epsilon_of(1.0, math.inf) == 0.0
    assert epsilon_of(1e-6, 0.0) == 0.0
    assert epsilon_of(0.0, 0.0) == 0.0
    assert epsilon_of(0.0, 1.0) == math.inf
    assert epsilon_of(delta_of(0.0, 0.3), 0.3) == 0.0


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf])
def test_bad_deltas_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        epsilon_of(bad, 1.0)
    with pytest.raises(UsageError, match="delta"):
        mu_of_curve(1.0, bad)


def test_other_bad_parameters_are_refused() -> None:
    for delta in (0.0, 1e-301, 1.0):
        with pytest.raises(UsageError, match="delta"):
            sigma_of(1.0, delta)
    for mu in (-1.0, math.nan):
        with pytest.raises(UsageError, match="mu"):
            delta_of(1.0, mu)
        with pytest.raises(UsageError, match="mu"):
            epsilon_of(0.1, mu)
    for epsilon in (-1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="epsilon"):
            mu_of_curve(epsilon, 0.1)
    with pytest.raises(UsageError, match="epsilon"):
        delta_of(math.nan, 1.0)
    with pytest.raises(UsageError, match="sensitivity"):
        sigma_of(1.0, 1e-6, 0.0)


def test_the_curve_needs_nothing_but_the_standard_library() -> None:
    code = "import sys, p2pdp.mechanisms.gaussian; print([m for m in ('numpy', 'scipy', 'opendp') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("epsilon", [9.9e11, 1.1e12, 1e20, 1e300])
def test_an_epsilon_beyond_all_use_still_has_its_mu(epsilon: float) -> None:
    """Where sigma is a millionth of the sensitivity, say: mu^2/2 is all that counts."""
    mu = mu_of_curve(epsilon, 1e-6)
    assert mu <= math.sqrt(2 * epsilon)
    assert mu == pytest.approx(math.sqrt(2 * epsilon), rel=1e-5)
