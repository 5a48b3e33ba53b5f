"""Stochastic gradient descent by a walk on the complete graph: what the steps that follow hide.

Guarantee: `walk_divergence` bounds the Rényi divergence of everything that one user learns about another from a token
that T uniformly drawn users update in turn, final model included, given that the other contributes at most N times. It
needs convex, Lipschitz and smooth losses, a step of at most 2/smoothness, projection on a convex set after
the noise, and no active clipping: then every later step is a contraction, and a gradient step of sensitivity 2L that
G noisy steps (its own included) follow before anybody looks has divergence alpha (2L)^2 / (2 G sigma^2) [FMTT18,
Theorem 22].

How: reveal the token to v also whenever it comes back to u. Seen from the end of the walk backwards, the gaps before
visits of u or v are independent and geometric with p = 2/n, and each visit is u's with probability 1/2 whatever
the gap after it was. A gap that the walk's beginning cuts off belongs to no visit. So the moment of the whole is at
most the N-th power of E[e^(x/G)], x = (alpha - 1) 2 alpha L^2 / sigma^2: no truncation at the end of the walk, and no
condition on sigma. Where sigma^2 >= 2 L^2 alpha (alpha - 1), this is at most the closed form
N 8 alpha L^2 ln(n/2) / (sigma^2 (n - 2)).

Departure from [ABR23, Algorithm 4]: the published account misses visits of u before v's next one, so it is
no bound (`published_divergence`); and noise comes before projection.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats

_EXACT_GAPS: Final = 4096  # beyond them e^y - 1 is bounded by a multiple of y
_EXPONENT_MAX: Final = 500.0  # for larger exponents the first gap alone makes up the moment
_MARGIN: Final = 1e-12


def mean_inverse_gap(n: int) -> float:
    """E[1/G] for G geometric with p = 2/n: p ln(1/p) / (1 - p)."""
    p = 2.0 / n
    return p * -math.log(p) / (1.0 - p) if n > 2 else 1.0


def walk_divergence(excess: Floats, ratio: float, n: int, visits: int) -> Floats:
    """Of orders 1 + excess; `ratio` is lipschitz / sigma."""
    per_step = 2.0 * (1.0 + excess) * ratio**2
    return visits * np.minimum(per_step, _log_moment(excess * per_step, n) / excess)


def published_divergence(alpha: float, ratio: float, n: int, visits: int) -> float:
    """4 N alpha L^2 ln n / (sigma^2 (n - 1)), for sigma^2 >= 2 L^2 alpha (alpha - 1)."""
    return 4.0 * visits * alpha * ratio**2 * math.log(n) / (n - 1)


def published_excess(ratio: float) -> float:
    """The largest order, minus 1, that the published account admits."""
    return 1.0 / (ratio**2 * (math.sqrt(1.0 + 2.0 / ratio**2) + 1.0))


def _log_moment(exponent: Floats, n: int) -> Floats:
    """Logarithms of E[e^(x/G)] for each x, rounded up.

    The first gaps are summed; of the others e^y - 1 <= y (e^Y - 1)/Y with Y the largest of them.
    """
    p = 2.0 / n
    gaps = np.arange(1.0, _EXACT_GAPS + 1.0)
    weights = p * (1.0 - p) ** (gaps - 1.0)
    x = np.minimum(exponent, _EXPONENT_MAX)[:, None]
    first = (weights * np.expm1(x / gaps)).sum(axis=1)
    rest = max(0.0, mean_inverse_gap(n) * (1.0 + _MARGIN) - float(np.sum(weights / gaps)))
    last = x[:, 0] / _EXACT_GAPS
    tail = rest * x[:, 0] * np.where(last > 0.0, np.expm1(last) / np.maximum(last, 1e-300), 1.0)
    found = np.log1p(first + tail) * (1.0 + _MARGIN)
    return np.asarray(np.where(exponent > _EXPONENT_MAX, exponent, found))
