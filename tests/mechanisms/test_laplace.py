from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.laplace import delta_of, epsilon_of, scale_of_epsilon, scale_of_sigma

POSITIVE = st.floats(1e-6, 1e6)


def test_known_answers() -> None:
    assert epsilon_of(2.0, 1.0) == 0.5
    assert scale_of_epsilon(0.5, 2.0) == 4.0
    assert scale_of_sigma(1.0) == pytest.approx(1 / math.sqrt(2), rel=1e-15)
    assert delta_of(0.0, 1.0) == pytest.approx(1 - math.exp(-0.5), rel=1e-15)
    assert delta_of(0.4, 1.0) == pytest.approx(1 - math.exp(-0.3), rel=1e-15)
    assert delta_of(1.0, 1.0) == 0.0
    assert delta_of(math.inf, 1.0) == 0.0


@pytest.mark.parametrize("epsilon", [-3.0, -1.0, -0.3, 0.0, 0.2, 0.9, 1.7])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_the_curve_is_the_integral_over_the_densities(epsilon: float, scale: float) -> None:
    """The integral of (p - e^epsilon q)+, here by the midpoint rule between the kinks at 0 and 1."""
    total, steps = 0.0, 4000
    for start, end in ((-40 * scale, 0.0), (0.0, 1.0), (1.0, 1 + 40 * scale)):
        width = (end - start) / steps
        for index in range(steps):
            x = start + (index + 0.5) * width
            p, q = (math.exp(-abs(x - centre) / scale) / (2 * scale) for centre in (0.0, 1.0))
            total += max(0.0, p - math.exp(epsilon) * q) * width
    assert delta_of(epsilon, scale) == pytest.approx(total, abs=2e-4)


@given(POSITIVE, POSITIVE)
def test_the_scale_of_an_epsilon_is_large_enough(epsilon: float, sensitivity: float) -> None:
    """[DMNS06]."""
    scale = scale_of_epsilon(epsilon, sensitivity)
    assert epsilon_of(scale, sensitivity) <= math.nextafter(epsilon, math.inf)


@given(st.floats(-20, 20), st.floats(0.05, 20), st.floats(1.001, 2))
def test_more_noise_or_more_epsilon_never_costs_delta(epsilon: float, scale: float, factor: float) -> None:
    here = delta_of(epsilon, scale)
    assert 0 <= here <= 1
    assert delta_of(epsilon, scale * factor) <= here + 1e-15
    assert delta_of(epsilon + factor - 1, scale) <= here + 1e-15


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_parameters_are_refused(bad: float) -> None:
    for call in (scale_of_sigma, epsilon_of, scale_of_epsilon):
        with pytest.raises(UsageError):
            call(bad)
    with pytest.raises(UsageError, match="sensitivity"):
        epsilon_of(1.0, bad)
    with pytest.raises(UsageError, match="scale"):
        delta_of(0.1, bad)
    with pytest.raises(UsageError, match="epsilon"):
        delta_of(math.nan, 1.0)
