"""Theorems 5.3 to 5.6 of the paper as printed, by numbers that were worked out from the print."""

from __future__ import annotations

import math

import pytest

from p2pdp.core.errors import Refused
from p2pdp.privacy.shuffle.published import (
    check_approximate,
    delta_approximate,
    epsilon_all,
    epsilon_single,
    load,
)

HALF = 5e-7


@pytest.mark.parametrize(
    ("epsilon_0", "n", "printed", "corrected"), [(0.5, 10_000, 0.460404, 0.500398), (1.0, 22_470, 2.2771, 2.480997)]
)
def test_all_reports(epsilon_0: float, n: int, printed: float, corrected: float) -> None:
    """[LTT22, Theorem 5.3] as printed, and with its Lemma 5.1 corrected."""
    for wanted, is_corrected in ((printed, False), (corrected, True)):
        e1 = load(n, 1.0 / n, HALF, 1.0, corrected=is_corrected)
        assert epsilon_all(epsilon_0, e1, HALF) == pytest.approx(wanted, abs=5.1e-7)


@pytest.mark.parametrize(("epsilon_0", "n", "printed"), [(0.5, 10_000, 0.057672), (1.0, 22_470, 0.168333)])
def test_one_report_each(epsilon_0: float, n: int, printed: float) -> None:
    """[LTT22, Theorem 5.5] as printed."""
    assert epsilon_single(epsilon_0, 1.0 / n, HALF) == pytest.approx(printed, abs=5.1e-7)


def test_rho_multiplies_the_sum_by_its_square() -> None:
    """[LTT22, Theorem 5.4]."""
    assert load(100, 0.02, HALF, 3.0, corrected=False) == pytest.approx(load(100, 0.18, HALF, 1.0, corrected=False))


def test_the_condition_on_delta0() -> None:
    epsilon_0, delta_1 = 0.5, 1e-9
    ratio = math.log(2.0 / delta_1) / math.log(1.0 / (1.0 - math.exp(-5.0 * epsilon_0)))
    most = (1.0 - math.exp(-epsilon_0)) * delta_1 / (4.0 * math.exp(epsilon_0) * (2.0 + ratio))
    check_approximate(epsilon_0, most * (1.0 - 1e-9), delta_1)
    with pytest.raises(Refused, match="delta0"):
        check_approximate(epsilon_0, most * (1.0 + 1e-9), delta_1)


@pytest.mark.parametrize("epsilon_0", [1e-300, 1e-18, 1.0, 100.0, 200.0, 700.0])
def test_the_condition_is_never_met_by_rounding(epsilon_0: float) -> None:
    with pytest.raises(Refused):
        check_approximate(epsilon_0, 1e-3, 1e-3)


def test_approximate_reports_add_to_delta() -> None:
    assert delta_approximate(0.0, 10, 1e-9) == pytest.approx(2e-8)
    assert delta_approximate(1e4, 10, 1e-9) == math.inf


def test_large_epsilons_are_infinite_and_no_error() -> None:
    assert epsilon_all(700.0, 0.5, HALF) == math.inf
    assert epsilon_single(5600.0, 0.5, HALF) == math.inf
