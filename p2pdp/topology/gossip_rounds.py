"""The number of rounds that gossip takes, from public numbers only, and its acceleration [CEBM22].

`lambda` is the spectral gap of the weights: 1 minus the largest absolute value of their other eigenvalues. The
paper's stopping times hold V, the spread of the users' values, which is private: for values within bounds of
width Delta it is at most Delta^2 / 4 a coordinate (Popoviciu's inequality), and that is what is used here.
"""

from __future__ import annotations

import math

from p2pdp.core.errors import UsageError


def acceleration(gap: float) -> float:
    """Return gamma of the re-scaled Chebyshev polynomials (Algorithm 1): x' = gamma W x + (1 - gamma) x_before.

    The recursion holds from the second round on; the first one is x' = W x and so keeps the mean.
    """
    _check_gap(gap)
    if gap == 1.0:
        return 2.0 * (1.0 - math.sqrt(0.75)) / 0.25
    return 2.0 * (1.0 - math.sqrt(gap * (1.0 - gap / 4.0))) / (1.0 - gap / 2.0) ** 2


def rounds_needed(
    gap: float, n: int, sigma: float, span: float, dimensions: int, *, accelerated: bool, shared: float = 0.0
) -> int:
    """Return the rounds to a mean square error of 3 sigma^2 / n [CEBM22, Theorem 2], or 2 sigma^2 / n where plain.

    1/sqrt(lambda) ln(n/sigma^2 max(sigma^2, V)) with acceleration, 1/lambda times that without. Without any noise
    the accuracy asked for is 1/n of the largest spread. `shared` is the deviation of noise that a user shares with its
    neighbours: it is part of V, and cancels in the mean.
    """
    _check_gap(gap)
    rate = math.sqrt(gap) if accelerated else gap
    return max(1, math.ceil(_logarithm(n, sigma, span, dimensions, shared) / rate))


def activations_needed(gap: float, n: int, sigma: float, span: float, dimensions: int) -> int:
    """Return the same for randomized gossip [CEBM22, Theorem 3]; `gap` is that of the activation probabilities."""
    _check_gap(gap)
    return max(1, math.ceil(_logarithm(n, sigma, span, dimensions) / gap))


def _logarithm(n: int, sigma: float, span: float, dimensions: int, shared: float = 0.0) -> float:
    spread = dimensions * (span**2 / 4.0 + shared**2)
    noise = sigma**2 if sigma > 0.0 else spread / n
    if noise == 0.0:  # nothing differs, so nothing is to be averaged
        return 0.0
    return math.log(n) + math.log(max(noise, spread) / noise)


def _check_gap(gap: float) -> None:
    if not 0.0 < gap <= 1.0:
        raise UsageError(
            "[graph] weights: their spectral gap is 0, so gossip does not converge; choose others or another graph."
        )
