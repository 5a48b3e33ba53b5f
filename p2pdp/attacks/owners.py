"""The owners of the reports that holders handed in: the joint likelihood over all routes, given only the loads.

Reports walk independently, P_u(h) being the chance that u's ends at holder h. An observer who knows how many each
holder had in the end (`all`), and no route, finds an assignment of users to places as likely as the product of their
P_u(h). The likelihood that u is at h is a ratio of permanents. For up to `EXACT_MAX` users it is summed over all sets
of users; for more it is approximated by scaling P to what its rows and columns must add up to (Sinkhorn). With `single`
each holder hands in one, so loads tell nothing: u's report is the one of h with the probability P_u(h) E[1 / (1 + N)],
where N is the number of other reports there, which is exact.

The caller owes laws that the run had; row u is that of user u's report.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import Refused

EXACT_MAX: Final = 14
_SCALINGS_MAX: Final = 20_000
_CLOSE: Final = 1e-9


def owners_of_all(laws: Floats, loads: Ints) -> Floats:
    """Return the chance that holder h (row) has user u's report (column); rows add up to loads, columns to 1."""
    likelihood = laws.T
    return by_sets(likelihood, loads) if len(laws) <= EXACT_MAX else by_scaling(likelihood, loads)


def by_sets(likelihood: Floats, loads: Ints) -> Floats:
    """Compute the chances exactly, by the likelihood that each set of users fills the first places."""
    n = likelihood.shape[1]
    places = np.repeat(np.arange(len(loads)), loads)
    sets = np.arange(1 << n)
    without = [sets[(sets >> user) & 1 == 0] for user in range(n)]
    first = np.zeros((n + 1, 1 << n))
    first[0, 0] = 1.0
    for at, holder in enumerate(places):
        for user, fitting in enumerate(without):
            first[at + 1, fitting | (1 << user)] += first[at, fitting] * likelihood[holder, user]
        first[at + 1] /= _whole(first[at + 1].sum())
    rest = np.zeros(1 << n)
    rest[-1] = 1.0
    chances = np.zeros(likelihood.shape)
    for at in range(n - 1, -1, -1):
        before, holder = np.zeros(1 << n), places[at]
        share = np.zeros(n)
        for user, fitting in enumerate(without):
            both = likelihood[holder, user] * rest[fitting | (1 << user)]
            before[fitting] += both
            share[user] = first[at, fitting] @ both
        chances[holder] += share / _whole(share.sum())
        rest = before / _whole(before.sum())
    return chances


def by_scaling(likelihood: Floats, loads: Ints) -> Floats:
    """Scale rows and columns in turns, until both add up to what they must."""
    chances = likelihood * (loads > 0)[:, None]
    for _ in range(_SCALINGS_MAX):
        chances = chances / np.array([_whole(total) for total in chances.sum(axis=0)])
        rows = chances.sum(axis=1)
        if np.all(np.abs(rows - loads) <= _CLOSE * np.maximum(loads, 1)):
            break
        chances = chances * (loads / np.where(rows > 0.0, rows, 1.0))[:, None]
    return np.asarray(chances / chances.sum(axis=0))


def owners_of_single(laws: Floats) -> Floats:
    """Return the chance that holder h (row) hands in user u's report; the rest of 1 is a dummy's.

    E[1 / (1 + N)] is the integral over z from 0 to 1 of E z^N, the product over the others of 1 - P + P z: a
    polynomial, which Gauss's rule integrates exactly.
    """
    n = len(laws)
    nodes, weights = np.polynomial.legendre.leggauss(n // 2 + 1)
    chances = np.zeros(laws.shape)
    for z, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
        here = 1.0 - laws * (1.0 - z)
        chances += weight * np.exp(np.log(here).sum(axis=0)) / here
    return (chances * laws).T


def _whole(total: float) -> float:
    if not total > 0.0:
        raise Refused("the holders of the reports cannot be told by this walk: somebody was late, or was put out")
    return total
