from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.experiments.figures.decor_digits import DECOR_DIGITS, _Size, accounts, amounts, printed, step_mu
from p2pdp.mechanisms import gaussian
from tests.support.quick_figures import line, quick

SIZE = _Size(steps=9, epsilons=(2.0,))


def test_the_noise_meets_its_epsilon_exactly_and_a_colluder_undoes_some_of_it() -> None:
    for kind in ("ring", "torus", "complete"):
        ((_, asked, added, exact, colluding),) = accounts(SIZE, kind, 0.1)
        assert float(exact) == pytest.approx(float(asked), rel=1e-6)
        assert float(exact) < float(added)
        assert float(colluding) > float(exact)
    mu = gaussian.mu_of_curve(2.0, 1e-5)
    least = min(a * mu**2 / 2 + math.log(1e5) / (a - 1) for a in (1.0 + 0.001 * step for step in range(1, 60_000)))
    assert printed(mu) == pytest.approx(least, rel=1e-5)


def test_pair_noise_by_the_matrix_itself() -> None:
    """mu^2 = e_u' (sigma^2 I + pair_sigma^2 L)^-1 e_u on a ring, whatever user."""
    mu = step_mu(SIZE, 2.0)
    sigma, pair = amounts("ring", "pair noise", mu, 0.1)
    ring = 2.0 * np.eye(16) - np.roll(np.eye(16), 1, axis=0) - np.roll(np.eye(16), -1, axis=0)
    leaks = np.diag(np.linalg.inv(sigma**2 * np.eye(16) + pair**2 * ring))
    assert leaks == pytest.approx([mu**2] * 16, rel=1e-5)
    assert amounts("ring", "own noise", mu, 0.0) == (1.0 / mu, 0.0)


def test_the_quick_form() -> None:
    pytest.importorskip("sklearn")
    made, answers = quick(DECOR_DIGITS)
    assert line(made, "complete: accuracy").verdict == "agrees"
    assert line(made, "ring: epsilon of noise made for").verdict == "agrees"
    free = answers["complete-no-noise-1"]["found"][0]["accuracy"]
    assert free > 0.7
    assert DECOR_DIGITS.paper.startswith("The Privacy Power")
