"""The slow modes of a walk, found by Lanczos and counted by a factorization, and what they say of all starts at once.

With r_j(t) the row of user j of P^t less the stationary law, in eigenvectors u_m of the symmetric form N of the walk

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

from p2pdp.core.arrays import Floats
from p2pdp.topology.walk_matrix import WalkMatrix, symmetric_form

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
        """Upper ends of the length of r_j(t), for every start j."""
        parts = self.vectors * self.values**rounds
        slow = np.sqrt(np.maximum(np.einsum("jk,jk->j", parts @ self.gram, parts), 0.0) / self.weights)
        reach = np.sqrt(self.weights.max() / self.weights)
        return np.asarray(slow + reach * (self.rho ** max(0, rounds - self.begun) * self.rest + self.drift))


def slow_modes(walk: WalkMatrix, count: int, begun: int, returns: Floats) -> SlowModes | None:
    """So many modes but the first, certified; `returns` holds P^(2s)_jj at s = begun. None where that fails."""
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
    """How many eigenvalues lie above rho and below -rho, and the error of the factorizations that say so."""
    counts, error = [], 0.0
    for sign in (1.0, -1.0):
        counted = positive_eigenvalues(form, sign, rho)
        if counted is None:
            return None
        counts.append(counted[0])
        error = max(error, counted[1])
    return counts[0], counts[1], error


def positive_eigenvalues(form: Any, sign: float, rho: float) -> tuple[int, float] | None:
    """How many eigenvalues of sign * N - rho I are positive, and how exact its factorization is; None if not at all."""
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
