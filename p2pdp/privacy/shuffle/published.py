"""Network shuffling as printed [LTT22, Theorems 5.3 to 5.6], kept to be compared: no bounds.

The proofs need the same law P of a report's place for every user, which no graph but the complete one gives after a
finite number of rounds, and Lemma 5.1 forgets that E|L|^2 = n + (n^2 - n) sum P_i^2. With S = sum P_i^2:

    all:     A^2 e1^2 / 2 + A e1 sqrt(2 ln(1/delta)),  A = e^(2 epsilon0) (e^epsilon0 - 1),
             e1 = sqrt((1 - 1/n) rho^2 S) + sqrt(ln(1/delta2) / n)
    single:  B^2 S / 2 + B sqrt(2 S ln(1/delta)),      B = e^epsilon0 (e^epsilon0 - 1)

rho is 1 for stationary walks (Theorem 5.3), and for symmetric ones (5.4) the largest over the smallest chance of a
place. Where a report is (epsilon0, delta0)-private with delta0 small beside delta1, epsilon0 becomes 8 epsilon0 and
n (e^epsilon + 1) delta1 is added to delta.
"""

from __future__ import annotations

import math

import numpy as np

from p2pdp.core.errors import Refused


def load(n: int, sum_p2: float, delta_2: float, rho: float, *, corrected: bool) -> float:
    """Return e1, the length of the holders' loads over n; with the term 1/n of the mean that is missing in print."""
    missing = 1.0 / n if corrected else 0.0
    return math.sqrt(missing + (1.0 - 1.0 / n) * rho**2 * sum_p2) + math.sqrt(-math.log(delta_2) / n)


def epsilon_all(epsilon_0: float, e1: float, delta: float) -> float:
    """Return epsilon of Theorem 5.3, or of 5.4 where rho went into e1."""
    return _quadratic(_power(2.0 * epsilon_0) * _less_one(epsilon_0) * e1, delta)


def epsilon_single(epsilon_0: float, sum_p2: float, delta: float) -> float:
    """Return epsilon of Theorem 5.5, or of 5.6 with the sum of the one law that is meant there."""
    return _quadratic(_power(epsilon_0) * _less_one(epsilon_0) * math.sqrt(sum_p2), delta)


def check_approximate(epsilon_0: float, delta_0: float, delta_1: float) -> None:
    """Check the theorems' condition on delta0."""
    decay = math.exp(-5.0 * epsilon_0)
    log_kept = math.log1p(-decay) if decay < 0.5 else math.log(-math.expm1(-5.0 * epsilon_0))
    ratio = math.log(2.0 / delta_1) / -log_kept if log_kept < 0.0 else math.inf
    most = -math.expm1(-epsilon_0) * delta_1 / (4.0 * math.exp(epsilon_0) * (2.0 + ratio))
    if delta_0 > most:
        raise Refused(f"the theorem assumes a delta0 of at most {most:.6g} for this delta1")


def delta_approximate(epsilon: float, n: int, delta_1: float) -> float:
    """Return what approximate reports add to delta; it may well be above 1."""
    return n * (_power(epsilon) + 1.0) * delta_1


def _quadratic(slope: float, delta: float) -> float:
    return slope**2 / 2.0 + slope * math.sqrt(-2.0 * math.log(delta)) if slope < 1e150 else math.inf


def _power(exponent: float) -> float:
    """Return e^exponent, infinite where it is no float."""
    with np.errstate(over="ignore"):
        return float(np.exp(exponent))


def _less_one(exponent: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.expm1(exponent))
