from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2pdp.accounting.hidden_path.losses import Losses, scale, upper_losses
from p2pdp.accounting.pld.sums import (
    SIZE_MAX,
    SIZE_MIN,
    Moments,
    log_spectrum,
    lower_epsilons,
    spectrum,
    upper_ends,
    upper_epsilons,
)
from p2pdp.mechanisms import gaussian

LAW = np.array([0.0, 1.0])


def summed(mu: float, count: int, delta: float, fineness: float = 0.05) -> tuple[float, float]:
    """Epsilon of `count` Gaussian losses, by window and by moments."""
    step = fineness * mu
    losses = upper_losses(LAW, mu, step, 1e-6 * delta / count, 1.0)
    moments = Moments(mu, 2 * mu * math.sqrt(count))
    logs = count * moments.of(losses, step)[None]
    size = int(moments.size(logs, delta, step)[0])
    beyond = np.array([count * losses.beyond])
    tail = np.exp(moments.log_tail(logs, np.array([size / 2 * step])))
    spectra = np.exp(count * log_spectrum(losses, size))[None]
    by_window = upper_epsilons(spectra, step, delta, beyond, tail, count)
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
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
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
        beyond, none = np.array([count * losses.beyond]), np.zeros(1)
        for delta in (1e-9, 0.3):
            (variation,) = upper_ends(spectra, step, delta, beyond, none, count).variation
            assert exact <= variation <= min(1.0, exact * 1.01)
        (more,) = upper_ends(spectra, step, 0.1, beyond, none + 0.01, count).variation
        assert more == pytest.approx(min(variation + 0.01, 1.0), rel=1e-9)


def random_losses(seed: int, size: int) -> Losses:
    random = np.random.default_rng(seed)
    masses = random.uniform(0.0, 1.0, size)
    return Losses(-size // 3, masses / masses.sum() * (1.0 - 1e-3), 1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_spectra_multiply_as_losses_convolve(seed: int) -> None:
    one, two = random_losses(seed, 40), random_losses(seed + 100, 70)
    both = Losses(one.first + two.first, np.convolve(one.masses, two.masses), 0.0)
    np.testing.assert_allclose(spectrum(one, 512) * spectrum(two, 512), spectrum(both, 512), atol=1e-14)
    np.testing.assert_allclose(np.exp(log_spectrum(one, 512)), spectrum(one, 512), atol=1e-14)


def delta_of(losses: Losses, step: float, epsilon: float) -> float:
    at = step * np.arange(losses.first, losses.first + len(losses.masses))
    return float(np.sum(losses.masses * np.maximum(0.0, -np.expm1(np.minimum(epsilon - at, 0.0)))))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("step", [1e-3, 0.1, 5.0, 90.0])
def test_epsilon_is_where_the_curve_falls_to_delta(seed: int, step: float) -> None:
    losses = random_losses(seed, 60)
    none = np.zeros(1)
    for delta in (0.001, 0.05, 0.2, 0.6, 0.9):
        ends: list[Any] = [
            function(spectrum(losses, 256)[None], step, delta, none, none, 1)[0]
            for function in (upper_epsilons, lower_epsilons)
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
    plain = upper_epsilons(spectra, 0.1, 0.05, none, none, 1)
    for beyond, tail in ((some, none), (none, some)):
        assert upper_epsilons(spectra, 0.1, 0.05, beyond, tail, 1) > plain
        assert lower_epsilons(spectra, 0.1, 0.05, beyond, tail, 1) < plain
        assert upper_epsilons(spectra, 0.1, 0.02, beyond, tail, 1) == math.inf
        assert lower_epsilons(spectra, 0.1, 0.999, beyond, tail, 1) == 0.0


def test_tails_are_bounded_and_windows_hold_them() -> None:
    moments = Moments(1.0, 3.0)
    step = 0.01
    losses = upper_losses(LAW, 2.0, step, 1e-30, 1.0)
    logs = moments.of(losses, step)[None]
    at = step * np.arange(losses.first, losses.first + len(losses.masses))
    for end in (3.0, 6.0, 12.0):
        beyond = float(losses.masses[at > end].sum())
        assert math.log(beyond) <= moments.log_tail(logs, np.array([end]))[0]
        below = float(losses.masses[at < -end].sum())
        assert math.log(below) <= moments.log_tail(moments.of(losses, step, -1.0)[None], np.array([end]))[0]
    size = int(moments.size(logs, 1e-6, step)[0])
    assert losses.masses[at > size / 2 * step].sum() <= 1e-10
    assert size & (size - 1) == 0
    assert int(moments.size(logs * 0.0, 0.5, 1e9)[0]) == SIZE_MIN
    assert int(moments.size(logs, 1e-6, 1e-12)[0]) == SIZE_MAX


def test_the_scale_of_a_gaussian_is_about_its_loss() -> None:
    for mu in (1e-3, 0.1, 0.5):
        assert scale(LAW, mu, 1.0) == pytest.approx(mu, rel=0.3)
