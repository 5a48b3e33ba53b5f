"""Amplification by iteration for descent by a random walk on the complete graph, before it takes place.

Guarantee: `log_moment` bounds ln E e^((alpha - 1) D), D the Rényi divergence of order alpha, given who is where, of
what an observer sees of a user: the token at its own visits (or never) and at the end. The token is revealed also at
each visit of the user, and a contribution that G noisy steps follow before that, its own included, costs
alpha Delta^2 / (2 G sigma^2) [FMTT18, Theorem 22]. Who is where does not depend on
data, so averaging over it is allowed, whatever is seen of it. The caller owes steps that contract, and one rate.

How: of T uniform steps m are visits of either, m binomial. Their places cut the T + 1 steps (the end included) into
m + 1 parts, which are a uniform composition. Parts of a composition are geometric numbers given their sum, hence
negatively associated (Joag-Dev and Proschan 1983), so the mean of a product of decreasing functions of them is at most
the product of the means. Each visit is the user's with the same chance. A user who starts the walk has one contribution
more, exposed for the first part: this covers user 0, which the closed form of guide/accounting.md, section 2, does not.

`walk_divergence` is for a known number of visits: it bounds the Rényi divergence of everything that one user learns
about another from a token that T uniformly drawn users update in turn, final model included, given that the other
contributes at most N times. It needs convex, Lipschitz and smooth losses, a step of at most 2/smoothness, projection on
a convex set after the noise, and no active clipping: then every later step is a contraction, and a gradient step of
sensitivity 2L that G noisy steps (its own included) follow before anybody looks has divergence alpha (2L)^2 / (2 G
sigma^2) [FMTT18, Theorem 22].

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
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.privacy.renyi import best_epsilon
from p2pdp.privacy.shuffle.blanket import binomial

_EXACT_PARTS: Final = 256  # longer parts are taken together, as the shortest of them
_WIDER: Final = 1.02
_EXPONENT_MAX: Final = 600.0
_MARGIN: Final = 1e-7  # for the error of logarithms of factorials
_CUT: Final = 1e-6  # of delta: what the law of the visits leaves out


@dataclass(frozen=True)
class Exposure:
    """`steps` are drawn uniformly from `n` users; with `starts` the user takes one more, before all others.

    `watched`: the observer sees the token whenever it comes by; otherwise it sees what it is in the end.
    """

    n: int
    steps: int
    starts: bool
    watched: bool = True


def epsilon(ratio: float, exposure: Exposure, tokens: int, delta: float) -> float:
    """Return epsilon at delta, if one contribution moves by `ratio` of its noise; tokens go independent ways."""
    if ratio == math.inf:
        return math.inf
    cut = _CUT * delta / tokens
    law = _Law(exposure, cut)

    def divergence(excess: Floats) -> Floats:
        exponent = excess * (1.0 + excess) * ratio**2 / 2.0
        return tokens * law.log_moments(exponent) / excess

    return best_epsilon(divergence, delta * (1.0 - 2.0 * _CUT))


def log_moment(exponent: Floats, exposure: Exposure, cut: float) -> Floats:
    """Return the log moment for each exponent x, the cost of a contribution that one noisy step follows."""
    return _Law(exposure, cut).log_moments(exponent)


class _Law:
    """The laws of how many visits there are, and of the parts between them."""

    def __init__(self, exposure: Exposure, cut: float) -> None:
        watchers = 2.0 if exposure.watched else 1.0
        chance = min(1.0, watchers / exposure.n)
        if exposure.steps == 0 or chance == 1.0:
            first, masses = (exposure.steps, np.ones(1))
        else:
            window = binomial(exposure.steps, chance, cut)
            first, masses = window.first, window.masses
        self._visits: Floats = first + np.arange(len(masses), dtype=np.float64)
        with np.errstate(divide="ignore"):
            self._log_masses = np.log(masses)
        self._share = 1.0 / watchers
        self._starts = exposure.starts
        self._lengths, self._weights = _parts(exposure.steps + 1, self._visits)

    def log_moments(self, exponent: Floats) -> Floats:
        x = np.minimum(exponent, _EXPONENT_MAX)[:, None]
        grown = np.expm1(x / self._lengths) @ self._weights.T * (1.0 + _MARGIN)  # [exponent, visits]
        logs = self._visits * np.log1p(self._share * grown) + self._log_masses
        if self._starts:
            logs = logs + np.log1p(grown)
        peak = logs.max(axis=1)
        found = peak + np.log(np.exp(logs - peak[:, None]).sum(axis=1))
        most = self._visits[-1] + self._starts
        return np.asarray(np.where(exponent > _EXPONENT_MAX, exponent * most, np.maximum(found, 0.0) * (1.0 + 1e-9)))


def _parts(total: int, cuts: Floats) -> tuple[Floats, Floats]:
    """Return lengths, and for each number of cuts the chance that a part is about that long, and no shorter."""
    from scipy.special import gammaln

    lengths = [float(length) for length in range(1, min(total, _EXACT_PARTS) + 1)]
    while lengths[-1] * _WIDER < total:
        lengths.append(math.ceil(lengths[-1] * _WIDER))
    grid = np.array(lengths)
    left = total - grid[None, :]
    fits = left >= cuts[:, None]
    rest = np.where(fits, left, cuts[:, None])
    tails = np.exp(
        gammaln(rest + 1.0) - gammaln(rest - cuts[:, None] + 1.0) - gammaln(total) + gammaln(total - cuts[:, None])
    )
    tails = np.where(fits, np.minimum(tails, 1.0), 0.0)
    tails[:, 0] = 1.0
    return grid, tails - np.concatenate([tails[:, 1:], np.zeros((len(cuts), 1))], axis=1)


_EXACT_GAPS: Final = 4096  # beyond them e^y - 1 is bounded by a multiple of y
_EXPONENT_MAX_ITERATION: Final = 500.0  # for larger exponents the first gap alone makes up the moment
_MARGIN_ITERATION: Final = 1e-12


def mean_inverse_gap(n: int) -> float:
    """Return E[1/G] for G geometric with p = 2/n: p ln(1/p) / (1 - p)."""
    p = 2.0 / n
    return p * -math.log(p) / (1.0 - p) if n > 2 else 1.0


def walk_divergence(excess: Floats, ratio: float, n: int, visits: int) -> Floats:
    """Return the divergences of orders 1 + excess; `ratio` is lipschitz / sigma."""
    per_step = 2.0 * (1.0 + excess) * ratio**2
    return visits * np.minimum(per_step, _log_moment(excess * per_step, n) / excess)


def published_divergence(alpha: float, ratio: float, n: int, visits: int) -> float:
    """Return 4 N alpha L^2 ln n / (sigma^2 (n - 1)), for sigma^2 >= 2 L^2 alpha (alpha - 1)."""
    return 4.0 * visits * alpha * ratio**2 * math.log(n) / (n - 1)


def published_excess(ratio: float) -> float:
    """Return the largest order, minus 1, that the published account admits."""
    return 1.0 / (ratio**2 * (math.sqrt(1.0 + 2.0 / ratio**2) + 1.0))


def _log_moment(exponent: Floats, n: int) -> Floats:
    """Return the logarithms of E[e^(x/G)] for each x, rounded up.

    The first gaps are summed; of the others e^y - 1 <= y (e^Y - 1)/Y with Y the largest of them.
    """
    p = 2.0 / n
    gaps = np.arange(1.0, _EXACT_GAPS + 1.0)
    weights = p * (1.0 - p) ** (gaps - 1.0)
    x = np.minimum(exponent, _EXPONENT_MAX_ITERATION)[:, None]
    first = (weights * np.expm1(x / gaps)).sum(axis=1)
    rest = max(0.0, mean_inverse_gap(n) * (1.0 + _MARGIN_ITERATION) - float(np.sum(weights / gaps)))
    last = x[:, 0] / _EXACT_GAPS
    tail = rest * x[:, 0] * np.where(last > 0.0, np.expm1(last) / np.maximum(last, 1e-300), 1.0)
    found = np.log1p(first + tail) * (1.0 + _MARGIN_ITERATION)
    return np.asarray(np.where(exponent > _EXPONENT_MAX_ITERATION, exponent, found))
