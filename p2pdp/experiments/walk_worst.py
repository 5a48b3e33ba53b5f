"""The worst start of a walk: the largest S_j(t) = sum of P_ji(t)^2 over all starts j, for every t, with a proof.

With r_j row j of P^t less the stationary law pi, S_j = ||pi||^2 + 2 ((P^t pi)_j - ||pi||^2) + ||r_j||^2. The first two
terms are one vector, carried on by P. The length of r_j has an upper end b_j(t) = (P b(t-1))_j, because row j of P^t
is a mean of rows of P^(t-1); it starts from all starts' exact values at round `_BEGUN`. Some starts are computed
exactly, by sparse products: their exact lengths take the place of b_j, which keeps those of their neighbours down,
round after round. Wherever an upper end exceeds the largest exact value, more starts are computed. Where they become
many, `slow_modes` gives another upper end, if it could be certified. Users with the same neighbours have the same law
from round 1 on and count as one start.

Guarantee: `lower` is the exact S of the start that is named, `upper` is at least the S of any start, both up to
rounding (`ROUNDING`). They are equal wherever the search closed; `starts_max` ends it early, and then they may differ.

*Slow modes* are found by Lanczos and counted by a factorization. In eigenvectors u_m of the symmetric form N of the
walk

    r_j(t) = d_j^(-1/2) (sum over m of lambda_m^t u_m(j) u_m)' D^(1/2),

so the Euclidean length of r_j(t) is at most that of the slow modes, a small quadratic form, and of the rest, which is
at most sqrt(d_max / d_j) rho^(t - s) ||N^s w_j||, w_j being e_j less the slow modes and rho the largest absolute value
of the other eigenvalues. ||N^s w_j||^2 = P^(2s)_jj less the slow modes' part.

Guarantee: that no eigenvalue beyond rho was missed is not left to Lanczos: Sylvester's law of inertia counts those of
N above rho and below -rho by the signs in a factorization LDL' of N -+ rho I, and `slow_modes` answers None where
the counts differ. The error of the factorization is measured on random vectors and rho is raised by it. What the
eigenvectors' residuals E do is added: at most 4 ||E|| / (1 - |lambda_2|) (of a perturbed recursion, by its two ends).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.topology.graphs import Graph
from p2pdp.topology.report_walks.matrix import WalkMatrix, checked_rounds, point_laws, symmetric_form, walk_matrix

ROUNDING: Final = 1e-9  # relative: an upper end that exceeds the best by less is no other value
STARTS_MAX: Final = 1024
_BEGUN: Final = 3
_BLOCK: Final = 64  # starts that are carried on together
_WINDOW: Final = 16  # rounds
_ADDED: Final = 16  # starts at a time
_MODES: Final = 24
_MODES_FROM: Final = 128  # starts computed, before slow modes are looked for
_MODES_USERS: Final = 600, 60_000  # below, all starts are few; above, factors do not fit
_DROPPED: Final = 0.5  # of the best: starts below it are carried on no more, once there are slow modes


@dataclass(frozen=True, eq=False)
class WorstSpread:
    """Index t is the number of rounds. `starts` of the users were computed exactly beyond round `begun`.

    `columns` counts products of the sparse matrix with one column. `modes` is 0 where none were needed.
    """

    lower: Floats
    upper: Floats
    start: Ints
    starts: int
    begun: int
    columns: int
    modes: int

    @property
    def closed(self) -> bool:
        """Return whether the maximum is known for every t, with a start that has it."""
        return bool(np.array_equal(self.lower, self.upper))


def worst_spread(graph: Graph, rounds: int, stay: float = 0.0, starts_max: int = STARTS_MAX) -> WorstSpread:
    """Return the largest S(t) over all starts, for t = 0 … rounds."""
    if starts_max < 1:
        raise UsageError("the search for the worst start has to compute one start at least.")
    search = _Search(graph, walk_matrix(graph, stay), checked_rounds(rounds), starts_max)
    while search.round < rounds:
        search.window()
    return WorstSpread(
        search.lower,
        search.upper,
        search.start,
        len(search.computed),
        min(_BEGUN, rounds),
        search.columns,
        0 if search.modes is None else len(search.modes.values),
    )


def _first_alike(graph: Graph, stay: float) -> Ints:
    """Return for each user the first one with the same neighbours: their reports are alike after one round."""
    if stay > 0.0:
        return np.arange(graph.n)
    seen: dict[tuple[int, ...], int] = {}
    rows = (tuple(graph.neighbours[user]) for user in range(graph.n))
    return np.array([seen.setdefault(row or (user,), user) for user, row in enumerate(rows)], dtype=np.int64)


class _Search:
    def __init__(self, graph: Graph, walk: WalkMatrix, rounds: int, starts_max: int) -> None:
        self._walk, self._starts_max = walk, starts_max
        self._alike = _first_alike(graph, walk.stay)
        self.lower, self.upper = np.ones(rounds + 1), np.ones(rounds + 1)
        self.start = np.zeros(rounds + 1, dtype=np.int64)
        self.round = min(_BEGUN, rounds)
        self.computed: set[int] = set()
        self.modes: SlowModes | None = None
        self.columns = 0
        self._modes_tried = not _MODES_USERS[0] < walk.n <= _MODES_USERS[1]
        self._returns = np.empty(walk.n)
        self._rest = float(walk.stationary @ walk.stationary)
        spread = self._begin()
        self._mean = walk.stationary  # P^t pi
        for _ in range(self.round):
            self._mean = walk.forward @ self._mean
        self._lengths = np.sqrt(np.maximum(0.0, spread - self._base(self._mean)))
        self._active = np.empty(0, dtype=np.int64)
        self._laws = np.empty((walk.n, 0))

    def _base(self, mean: Floats) -> Floats:
        return np.asarray(2.0 * mean - self._rest)

    def _begin(self) -> Floats:
        """Compute all starts exactly for the first rounds."""
        walk, spread = self._walk, np.ones(self._walk.n)
        best, self.lower[: self.round + 1] = np.zeros(self.round + 1), 0.0
        for first in range(0, walk.n, _BLOCK):
            starts = np.arange(first, min(first + _BLOCK, walk.n))
            laws = point_laws(walk, starts)
            for t in range(self.round + 1):
                if t == 1:  # the first product is a choice of columns
                    laws = walk.backward[:, starts].toarray()
                elif t:
                    laws = walk.backward @ laws
                    self.columns += len(starts)
                spread[starts] = np.einsum("ij,ij->j", laws, laws)
                most = int(np.argmax(spread[starts]))
                if spread[first + most] > best[t]:
                    best[t], self.start[t] = spread[first + most], first + most
            weights = walk.weights
            self._returns[starts] = np.einsum("ij,ij,i->j", laws, laws, 1.0 / weights) * weights[starts]
        self.lower[: self.round + 1] = self.upper[: self.round + 1] = best
        return spread

    def window(self) -> None:
        """Compute the next rounds, with as many more starts as it takes."""
        rounds = min(_WINDOW, len(self.lower) - 1 - self.round)
        means = [self._mean]
        for _ in range(rounds):
            means.append(self._walk.forward @ means[-1])
        bases = np.array([self._base(mean) for mean in means[1:]])
        exact, laws = self._carry(self._laws, rounds)
        refined = False
        while True:
            excess, lengths = self._bounds(rounds, bases, exact)
            open_ones = np.nonzero(excess > 0.0)[0]
            if not len(open_ones) or len(self.computed) >= self._starts_max:
                break
            if not refined and self._refine():
                refined = True
                continue
            added = self._most_open(open_ones, excess)
            begun = self._carry(point_laws(self._walk, added), self.round)[1]
            more, ended = self._carry(begun, rounds)
            self._active = np.concatenate((self._active, added))
            self._laws = np.concatenate((self._laws, begun), axis=1)
            exact, laws = np.concatenate((exact, more), axis=1), np.concatenate((laws, ended), axis=1)
            self.computed.update(added.tolist())
        self._laws, self._lengths, self._mean = laws, lengths, means[-1]
        self.round += rounds
        if self.modes is not None:
            kept = exact[-1] >= _DROPPED * self.lower[self.round]
            self._active, self._laws = self._active[kept], np.ascontiguousarray(self._laws[:, kept])

    def _carry(self, laws: Floats, rounds: int) -> tuple[Floats, Floats]:
        """Return S of these laws in each of the next rounds, and the laws after them."""
        found = np.empty((rounds, laws.shape[1]))
        ended = np.empty_like(laws)
        for first in range(0, laws.shape[1], _BLOCK):
            block = slice(first, first + _BLOCK)
            some = np.ascontiguousarray(laws[:, block])
            for t in range(rounds):
                some = self._walk.backward @ some
                found[t, block] = np.einsum("ij,ij->j", some, some)
            ended[:, block] = some
            self.columns += rounds * some.shape[1]
        return found, ended

    def _bounds(self, rounds: int, bases: Floats, exact: Floats) -> tuple[Floats, Floats]:
        """Return the relative excess of each start's upper end over the best, and all lengths at the window's end."""
        place = np.full(self._walk.n, -1)
        place[self._active] = np.arange(len(self._active))
        place = place[self._alike]
        known = np.nonzero(place >= 0)[0]
        excess, lengths = np.zeros(self._walk.n), self._lengths
        for t in range(rounds):
            lengths = self._walk.forward @ lengths
            if len(known):
                lengths[known] = np.sqrt(np.maximum(0.0, exact[t, place[known]] - bases[t, known]))
            upper = bases[t] + lengths**2
            upper[known] = 0.0
            at = self.round + 1 + t
            most = int(np.argmax(exact[t])) if len(known) else -1
            best = float(exact[t, most]) if len(known) else 0.0
            over = upper - best * (1.0 + ROUNDING)
            np.maximum(excess, over / max(best, self._rest), out=excess)
            self.lower[at], self.start[at] = best, self._active[most] if len(known) else 0
            self.upper[at] = max(best, float(upper.max())) if over.max() > 0.0 else best
        return excess, lengths

    def _refine(self) -> bool:
        """Lower the upper ends by the slow modes, which are looked for when many starts have been computed."""
        if self.modes is None and not self._modes_tried and len(self.computed) >= _MODES_FROM:
            self._modes_tried = True
            self.modes = slow_modes(self._walk, _MODES, _BEGUN, self._returns)
        if self.modes is None:
            return False
        self._lengths = np.minimum(self._lengths, self.modes.lengths(self.round))
        return True

    def _most_open(self, open_ones: Ints, excess: Floats) -> Ints:
        """Return the starts that exceed the best most, no two of them alike."""
        order = open_ones[np.argsort(-excess[open_ones], kind="stable")]
        firsts = self._alike[order]
        unique = firsts[np.sort(np.unique(firsts, return_index=True)[1])]
        return np.asarray(unique[: min(_ADDED, self._starts_max - len(self.computed))])


_TOLERANCE: Final = 1e-9
_GROWTH: Final = 16.0  # a random vector shows less than the whole error of a factorization
_PROBES: Final = 4
_ERROR_MAX: Final = 1e-6
_EXPECTED: Final = 1e-12


@dataclass(frozen=True, eq=False)
class SlowModes:
    """`values` and `vectors` are all eigenpairs beyond `rho` in absolute value but the first, the stationary one."""

    values: Floats
    vectors: Floats
    rho: float
    drift: float
    weights: Floats
    gram: Floats
    begun: int
    rest: Floats  # ||N^s w_j|| at s = begun

    def lengths(self, rounds: int) -> Floats:
        """Return upper ends of the length of r_j(t), for every start j."""
        parts = self.vectors * self.values**rounds
        slow = np.sqrt(np.maximum(np.einsum("jk,jk->j", parts @ self.gram, parts), 0.0) / self.weights)
        reach = np.sqrt(self.weights.max() / self.weights)
        return np.asarray(slow + reach * (self.rho ** max(0, rounds - self.begun) * self.rest + self.drift))


def slow_modes(walk: WalkMatrix, count: int, begun: int, returns: Floats) -> SlowModes | None:
    """Return `count` modes but the first, certified; `returns` holds P^(2s)_jj at s = begun. None where that fails."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    form = symmetric_form(walk)
    first = np.sqrt(walk.stationary)
    rest = LinearOperator(form.shape, matvec=lambda x: form @ x - first * (first @ x), dtype=np.float64)
    start = np.random.Generator(np.random.Philox(key=2)).standard_normal(walk.n)
    values, vectors = eigsh(rest, k=count + 1, which="LM", v0=start, tol=_TOLERANCE, ncv=3 * count)
    order = np.argsort(-np.abs(values))
    values, vectors = values[order], vectors[:, order]
    rho = float(abs(values[-2]) + abs(values[-1])) / 2.0
    values, vectors = values[:-1], np.linalg.qr(vectors[:, :-1])[0]
    residual = float(np.linalg.norm(form @ vectors - vectors * values))
    found = _beyond(form, rho)
    wanted = 1 + int(np.count_nonzero(values > 0.0)), int(np.count_nonzero(values < 0.0))
    if found is None or found[:2] != wanted or abs(values[-1]) - rho <= residual + found[2]:
        return None
    rest_squared = returns - walk.stationary - np.sum((vectors * values**begun) ** 2, axis=1)
    return SlowModes(
        values,
        vectors,
        rho + residual + found[2],
        4.0 * (residual + _EXPECTED) / (1.0 - abs(float(values[0]))),
        walk.weights,
        vectors.T @ (vectors * walk.weights[:, None]),
        begun,
        np.sqrt(np.maximum(rest_squared, 0.0) + _EXPECTED),
    )


def _beyond(form: Any, rho: float) -> tuple[int, int, float] | None:
    """Return how many eigenvalues lie above rho and below -rho, and the error of the factorizations."""
    counts, error = [], 0.0
    for sign in (1.0, -1.0):
        counted = positive_eigenvalues(form, sign, rho)
        if counted is None:
            return None
        counts.append(counted[0])
        error = max(error, counted[1])
    return counts[0], counts[1], error


def positive_eigenvalues(form: Any, sign: float, rho: float) -> tuple[int, float] | None:
    """Count positive eigenvalues of sign * N - rho I; return the factorization's error too, or None if it fails."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    shifted = (sign * form - rho * eye_array(form.shape[0])).tocsc()
    shifted.indices, shifted.indptr = shifted.indices.astype(np.int32), shifted.indptr.astype(np.int32)
    try:
        factors = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # a pivot that is 0
        return None
    if not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    probes = np.random.Generator(np.random.Philox(key=3)).standard_normal((form.shape[0], _PROBES))
    back = np.argsort(factors.perm_c)
    again = (factors.L @ (factors.U @ probes[back]))[factors.perm_c]
    error = _GROWTH * float(np.abs(again - shifted @ probes).max())
    return (int(np.count_nonzero(factors.U.diagonal() > 0.0)), error) if error <= _ERROR_MAX else None
