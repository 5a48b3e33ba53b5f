from __future__ import annotations

import math

import pytest

from p2pdp.accounting.contract import account
from p2pdp.experiments.shuffle_claims import DELTA, KAPPA_AUTO, printed_all, printed_single, sound


def test_printed_epsilons_are_those_of_the_named_theorems() -> None:
    n, sum_p2 = 22_470, 4.0 / 22_470
    asked = {"epsilon0": 0.5, "n": n, "sum_p2": sum_p2, "delta": DELTA / 2.0, "delta2": DELTA / 2.0}
    found = account("network_shuffle_all", asked).outputs
    assert printed_all(0.5, n, sum_p2) == found["epsilon"]
    assert printed_all(0.5, n, sum_p2, corrected=True) == found["epsilon_corrected"]
    single = account("network_shuffle_single", {**asked, "delta": DELTA}).outputs
    assert printed_single(0.5, sum_p2) == single["epsilon"]
    assert printed_all(0.5, 10_000, 1e-4) == pytest.approx(0.460404, abs=1e-6)  # guide/accounting.md, section 6


def test_sound_epsilon_is_that_of_the_report_where_walks_do_not_overlap() -> None:
    assert sound(0.7, 1000, 0.0) == 0.7
    assert sound(1.0, 22_470, 1.0) == pytest.approx(0.034, abs=5e-4)
    assert sound(1.0, 22_470, KAPPA_AUTO) == pytest.approx(0.038, abs=5e-4)
    assert math.isclose(KAPPA_AUTO, 0.9 / 1.1)
