from __future__ import annotations

import math

import pytest

from p2pdp.experiments.figures.decor import DECOR, PRINTED, exact_of
from p2pdp.mechanisms import gaussian
from tests.support.quick_figures import line, quick


def test_printed_epsilons_are_renyi_divergences_of_more_than_the_noise_has() -> None:
    """[AKFJG24]; the exact curve gives these to three digits."""
    for printed, exact in zip(PRINTED, (2.90, 8.97, 8.77, 9.27, 36.6), strict=True):
        mu, found = exact_of(printed)
        # the least over all orders of alpha mu^2 / 2 + ln(1 / delta) / (alpha - 1)
        least = min(a * mu**2 / 2 + math.log(1e5) / (a - 1) for a in (1 + 0.001 * step for step in range(1, 60_000)))
        assert least == pytest.approx(printed, rel=1e-5)
        assert found == pytest.approx(exact, rel=2e-3)
        assert gaussian.delta_of(found, mu) == pytest.approx(1e-5, rel=1e-9)


def test_the_quick_form() -> None:
    made, answers = quick(DECOR)
    cases = {(one["n"], one["degree"], one["colluders"]): one for one in answers["sums"]["cases"]}
    assert cases[16, 4, 2]["error"] == pytest.approx(1.12, rel=0.03)
    assert cases[100, 10, 30]["error"] == pytest.approx(1.25, rel=0.03)
    alone = 70 * math.comb(30, 4) / math.comb(99, 4)  # honest users whose four neighbours all collude, on average
    assert cases[100, 4, 30]["broken"] == pytest.approx(1.0 - math.exp(-alone), abs=0.1)
    for (n, degree, colluders), case in cases.items():
        if degree == 10 or n == 16:
            assert case["error"] == pytest.approx(math.sqrt(1.1 * n / (n - colluders)), rel=1e-6)
    assert line(made, "epsilon of the noise for which 3.59").verdict == "agrees"
    assert made.lines[-1].verdict == "cannot be known"  # of stand-ins nothing is said
    assert DECOR.paper.startswith("The Privacy Power")
