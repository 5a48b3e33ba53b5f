"""The leaks of noise that cancels between pairs, and the amounts of it that meet a target.

User u sends x_u + own noise N(0, sigma^2) + for each edge a draw that the other end subtracts. Whoever sees all of
these values, and knows the pair draws of the users in `without` (colluders, who are one end of them, and users that are
gone, whose pair draws were revealed), learns of each other user as much as from one Gaussian with

    mu^2 = e_u' (sigma^2 I + pair_sigma^2 L)^-1 e_u        (Gaussian pair draws, L the Laplacian of those who are left)
    mu^2 = 1 / (sigma^2 size of u's component)             (uniform pair draws modulo 2^k: masks)

in units of the sensitivity squared: the noise of [SBR22], and the masks of [BIK17] and [BBGLR20]. It is
exact for whoever sees exactly that, and a bound for whoever sees less, or what was computed from it. Users in `unseen`
are gone too, but nobody knows their pair draws and nobody got their values: these draws stay as noise.

Guarantee: leaks are rounded up. The inverse X of the matrix N is computed in floats; its residual R = 1 - N X, with the
rounding of N and of R itself, bounds the error of each diagonal entry by |R e_u| (|X e_u| + |R e_u|), for all
eigenvalues of N are at least 1. A component without `unseen` neighbours has the constant vector as an eigenvector of
eigenvalue 1; it is taken out of the matrix first, which keeps the condition small however large pair_sigma is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats, Ints
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer
from p2pdp.mechanisms.rounding import positive, ratio_upper
from p2pdp.topology.components import component_labels, component_sizes, ends_of
from p2pdp.topology.graphs import Graph

COMPONENT_MAX: Final = 5_000
_UP: Final = 1.0 + 1e-14
_EPS: Final = float(np.finfo(np.float64).eps)
_RATIOS: Final = (1e-12, 1e18)  # pair variance over own variance, the range of the search
_STEPS: Final = 120
_MORE: Final = 1.0 + 1e-9
_ROUNDING_MAX: Final = 1e-3  # relative
_WORK_MAX: Final = 2e9


def mask_leaks(graph: Graph, sigma: float, without: Collection[Peer] = ()) -> Floats:
    """Return the leak of each user under uniform masks, infinite without own noise; NaN for users in `without`."""
    sizes = component_sizes(graph, without)
    with np.errstate(divide="ignore"):
        leaks = 1.0 / (sizes * sigma**2) * _UP
    return np.where(sizes > 0, leaks, np.nan)


def pair_leaks(
    graph: Graph, sigma: float, pair_sigma: float, without: Collection[Peer] = (), unseen: Collection[Peer] = ()
) -> Floats:
    """Return the leak of each user under Gaussian pair draws; NaN for users in `without` and `unseen`."""
    ratio = (positive("pair_sigma", pair_sigma) / positive("sigma", sigma)) ** 2 * (1.0 - 8.0 * _EPS)
    leaks = np.full(graph.n, np.nan)
    for part in _parts(graph, without, unseen):
        leaks[part.users] = np.minimum(part.diagonal(ratio), 1.0) / sigma**2 * _UP
    return leaks


def leaks_to_each(graph: Graph, sigma: float, pair_sigma: float) -> Floats:
    """Return the leak of each user (row) to each single user (column) who sees all values and knows its own draws.

    One inverse serves all columns: a user's own draws are taken out of it by a change of low rank. Leaks are raised by
    a bound on the relative rounding of that; where it is not small, or the graph is dense, this is refused.
    """
    ratio = (positive("pair_sigma", pair_sigma) / positive("sigma", sigma)) ** 2
    heads, tails = ends_of(graph)
    degrees = np.bincount(heads, minlength=graph.n) + np.bincount(tails, minlength=graph.n)
    rounding = 64.0 * _EPS * (1.0 + 2.0 * ratio * float(degrees.max(initial=0))) ** 2
    if rounding > _ROUNDING_MAX or graph.n > COMPONENT_MAX:
        raise Refused("pair noise: rounding leaves open what single users learn of so many users or so much noise")
    if graph.n * float(np.sum(degrees.astype(np.float64) ** 2)) > _WORK_MAX:
        raise Refused("pair noise: to work out what each user learns takes too long on so dense a graph")
    matrix = np.diag(1.0 + ratio * degrees)
    matrix[heads, tails] = matrix[tails, heads] = -ratio
    inverse = np.linalg.inv(matrix)
    found = np.empty((graph.n, graph.n))
    for user, near in enumerate(graph.neighbours):
        column = inverse[:, user]
        ends = inverse[:, near] - np.outer(column, column[list(near)] / column[user])
        found[:, user] = np.diagonal(inverse) - column**2 / column[user]
        if near:
            known = np.linalg.inv(np.eye(len(near)) / ratio - ends[list(near)])
            found[:, user] += np.einsum("ij,ij->i", ends @ known, ends)
        found[user, user] = np.nan
    return np.minimum(found * (1.0 + rounding), 1.0) / sigma**2 * _UP


def own_sigma(mu: float, hidden: int, sensitivity: float = 1.0) -> float:
    """Return the own noise at which a sum over `hidden` users tells no more than mu of each, rounded up."""
    variance = ratio_upper(1.0, hidden * mu * mu * (1.0 - 4.0 * _EPS))
    return sensitivity * math.sqrt(variance) * _UP


@dataclass(frozen=True, slots=True)
class PairNoise:
    """Own and pair noise that meet a target: users hide among `hidden` of their kind; the worst leak is `leak`."""

    sigma: float
    pair_sigma: float
    hidden: int
    leak: float


def pair_noise(graph: Graph, mu: float, slack: float, without: Collection[Peer] = ()) -> PairNoise:
    """Return the noise at which nobody who is left leaks more than mu^2, for sensitivity 1.

    The own variance is the least that any pair noise could do with, times 1 + `slack`; the pair noise is the least that
    does then.
    """
    positive("slack", slack)
    parts = list(_parts(graph, without, ()))
    hidden = min((len(part.users) for part in parts), default=0)
    if hidden == 0:
        raise Refused("pair noise: no honest user is left")
    sigma = own_sigma(mu, hidden) * math.sqrt(1.0 + slack)
    allowed = mu * mu * sigma * sigma
    ratio = max(part.least_ratio(allowed) for part in parts)
    for _ in range(_STEPS):
        if ratio == 0.0:
            return PairNoise(sigma, 0.0, hidden, 1.0 / sigma**2 * _UP)
        pair_sigma = sigma * math.sqrt(ratio)
        worst = float(np.nanmax(pair_leaks(graph, sigma, pair_sigma, without)))
        if worst <= mu * mu:
            return PairNoise(sigma, pair_sigma, hidden, worst)
        ratio *= _MORE
    raise Refused(f"pair noise: no amount was found with slack {slack:g}; allow for more own noise")


class _Part:
    """One component of the honest users that are left, with how many unseen neighbours each of them has."""

    def __init__(self, users: Ints, heads: Ints, tails: Ints, unseen: Ints) -> None:
        if len(users) > COMPONENT_MAX:
            raise Refused(
                f"pair noise: a component of {len(users):,} honest users; leaks are computed for at most "
                f"{COMPONENT_MAX:,}"
            )
        self.users = users
        self._unseen = unseen
        self._loose = not unseen.any()
        places = np.full(int(users[-1]) + 1, -1, dtype=np.int64)
        places[users] = np.arange(len(users))
        self._ends = np.concatenate([places[heads], places[tails]]), np.concatenate([places[tails], places[heads]])
        self._degrees = np.bincount(self._ends[0], minlength=len(users))

    def diagonal(self, ratio: float) -> Floats:
        """Return the diagonal of (1 + ratio (L + unseen))^-1, rounded up."""
        from scipy.linalg.lapack import dpotrf, dpotri
        from scipy.sparse import csr_array

        m = len(self.users)
        if m == 1:
            return np.array([1.0 / (1.0 + ratio * float(self._unseen[0]))]) * _UP
        lifted = ratio * float(self._degrees.mean()) if self._loose else 0.0
        every = np.arange(m)
        rows, columns = np.concatenate([self._ends[0], every]), np.concatenate([self._ends[1], every])
        kept = 1.0 + ratio * (self._degrees + self._unseen)
        entries = np.concatenate([np.full(len(self._ends[0]), -ratio), kept])
        sparse: Any = csr_array((entries, (rows, columns)), shape=(m, m))
        factor, failed = dpotrf(sparse.toarray() + lifted / m, lower=True)
        inverse, singular = dpotri(factor, lower=True)
        if failed or singular:
            raise ArithmeticError("the covariance of pair noise came out as not positive")
        found = np.tril(inverse) + np.tril(inverse, -1).T
        product = sparse @ found + lifted / m * found.sum(axis=0)
        bulk = np.abs(found)
        size = abs(sparse) @ bulk + lifted / m * bulk.sum(axis=0)
        doubt = (m + float(self._degrees.max()) + 16.0) * _EPS
        residual = (_lengths(np.eye(m) - product) + doubt * _lengths(size)) * (1.0 + m * _EPS)
        upper = np.diagonal(found) + residual * (_lengths(found) * (1.0 + m * _EPS) + residual)
        constant = lifted / (1.0 + lifted) / m
        return np.asarray((upper + constant) * (1.0 + 16.0 * _EPS))

    def least_ratio(self, allowed: float) -> float:
        """Return about the least ratio at which no entry of the diagonal exceeds `allowed`; 0 if none is needed."""
        if allowed >= 1.0:
            return 0.0
        laplacian = np.diag((self._degrees + self._unseen).astype(np.float64))
        np.add.at(laplacian, self._ends, -1.0)
        values, vectors = np.linalg.eigh(laplacian)
        weights, values = vectors**2, np.maximum(values, 0.0)
        low, high = _RATIOS
        if float((weights @ (1.0 / (1.0 + high * values))).max()) > allowed:
            raise Refused("pair noise: no amount is enough for so little own noise; allow for more slack")
        for _ in range(_STEPS):
            middle = math.sqrt(low * high)
            if float((weights @ (1.0 / (1.0 + middle * values))).max()) <= allowed:
                high = middle
            else:
                low = middle
        return high


def _lengths(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.norm(matrix, axis=0))


def _parts(graph: Graph, without: Collection[Peer], unseen: Collection[Peer]) -> Iterator[_Part]:
    gone = np.zeros(graph.n, dtype=np.bool_)
    gone[[*without, *unseen]] = True
    hidden: Bools = np.zeros(graph.n, dtype=np.bool_)
    hidden[list(unseen)] = True
    hidden[list(without)] = False
    heads, tails = ends_of(graph)
    to_unseen = np.bincount(heads[hidden[tails]], minlength=graph.n) + np.bincount(
        tails[hidden[heads]], minlength=graph.n
    )
    labels = component_labels(graph, [*without, *unseen])
    kept = ~(gone[heads] | gone[tails])
    heads, tails = heads[kept], tails[kept]
    of_edge = labels[heads]
    edges = np.argsort(of_edge, kind="stable")
    order = np.argsort(np.where(gone, graph.n, labels), kind="stable")[: graph.n - int(gone.sum())]
    found, starts = np.unique(labels[order], return_index=True)
    for label, users in zip(found, np.split(order, starts[1:]) if len(found) else (), strict=True):
        begin, end = np.searchsorted(of_edge[edges], [label, label + 1])
        mine = edges[begin:end]
        yield _Part(users, heads[mine], tails[mine], to_unseen[users])
