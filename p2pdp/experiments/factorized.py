"""Learning by gossip with noise correlated over time: what views tell by matrices, and the best correlation [BCFGLT26].

After each of T steps users average their models by W, a row of weights for each. All gradients G and noises Z of a
run, step after step, make what somebody sees: A G + B Z. Where A = B C for an encoder C of one user's steps (the same
for all users), noise C^-1 Z protects as if C G had been noised. A batch takes part in every `period`-th step, and
moving its gradients by 1 each moves C G by at most the root of the sum of |X_st| over two of its steps, X = C'C.

`best_gram` minimizes the noise in all models, the trace of K X^-1 for the Gram matrix K of the workload, over the X
with that root at most 1. `told` is the paper's number for what one user sees: X is then the projector on the rows of
its view. It assumes gradients that do not follow the models; `told_following` is exact where they do, for quadratic
losses.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.topology.graphs import Graph

_KEPT: Final = 10  # pairs of steps and changes that a direction is made of
_STEPS_MAX: Final = 250
_RANK: Final = 1e-9


def neighbour_means(graph: Graph) -> Floats:
    """Return the paper's weights: every user takes the mean over itself and its neighbours."""
    weights = np.eye(graph.n)
    for user in range(graph.n):
        weights[user, list(graph.neighbours[user])] = 1.0
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def prefix_gram(steps: int) -> Floats:
    """Return the Gram matrix of one user that adds up its steps alone."""
    counts = np.arange(steps, 0, -1, dtype=np.float64)
    return np.minimum.outer(counts, counts)


def gossip_gram(weights: Floats, steps: int) -> Floats:
    """Return the Gram matrix of all models after each averaging, over the steps of a user, summed over users."""
    power, powers = np.eye(len(weights)), []
    for _ in range(steps):
        power = weights @ power
        powers.append(power.reshape(-1))
    stacked = np.array(powers)
    products = stacked @ stacked.T  # of W^(i+1) and W^(j+1)
    found = np.zeros((steps, steps))
    for s in range(steps):
        for t in range(s, steps):  # the models after steps t, ..., steps - 1 hold both
            found[s, t] = found[t, s] = np.trace(products[t - s : steps - s, : steps - t])
    return found


def _shared(steps: int, period: int) -> Any:
    """Return where two different steps are of the same batch."""
    at = np.arange(steps) % period
    return (at[:, None] == at[None, :]) & ~np.eye(steps, dtype=bool)


def best_gram(gram: Floats, period: int) -> Floats:
    """Return X of the least trace of gram X^-1, where steps of one batch are apart and their diagonal sums to 1.

    Steps along directions of limited memory stay in that space, because gradients are projected on it.
    """
    steps = len(gram)
    shared, times = _shared(steps, period), steps // period

    def value(point: Floats) -> tuple[float, Floats]:
        try:
            np.linalg.cholesky(point)
        except np.linalg.LinAlgError:
            return np.inf, point
        inverse = np.linalg.inv(point)
        change = -inverse @ gram @ inverse
        change[shared] = 0.0
        diagonal = np.diag(change).reshape(times, period)
        np.fill_diagonal(change, (diagonal - diagonal.mean(axis=0)).reshape(-1))
        return float(np.sum(inverse * gram)), change

    point = np.eye(steps) / times
    least, change = value(point)
    pairs: list[tuple[Floats, Floats]] = []
    for _ in range(_STEPS_MAX):
        direction = _direction(change, pairs)
        if float(np.sum(direction * change)) <= 0.0:
            direction, pairs = change, []
        length = 1.0 if pairs else 0.1 / (times * max(float(np.abs(change).max()), 1e-300))
        for _ in range(40):
            tried = point - length * direction
            found, after = value(tried)
            if found <= least - 1e-4 * length * float(np.sum(direction * change)):
                break
            length *= 0.5
        else:
            return point
        if float(np.sum((tried - point) * (after - change))) > 0.0:
            pairs = [*pairs[-_KEPT:], (tried - point, after - change)]
        gained, point, least, change = least - found, tried, found, after
        if gained <= 1e-7 * least:
            break
    return point


def _direction(change: Floats, pairs: list[tuple[Floats, Floats]]) -> Floats:
    """Return the direction of descent that the last pairs of steps and changes of gradients suggest (L-BFGS)."""
    found, parts = change.copy(), []
    for moved, changed in reversed(pairs):
        part = np.sum(moved * found) / np.sum(moved * changed)
        parts.append(part)
        found -= part * changed
    if pairs:
        moved, changed = pairs[-1]
        found *= np.sum(moved * changed) / np.sum(changed * changed)
    for (moved, changed), part in zip(pairs, reversed(parts), strict=True):
        found += moved * (part - np.sum(changed * found) / np.sum(moved * changed))
    return found


def encoder_of(gram: Floats) -> Floats:
    """Return the lower triangular C with C'C the Gram matrix: noise of a step depends on draws up to that step."""
    flipped = np.linalg.cholesky(gram[::-1, ::-1])
    return np.asarray(flipped[::-1, ::-1].T)


def sensitivity(gram: Floats, period: int) -> float:
    """Return how far the encoder moves by a batch: an upper bound, attained where no entry is negative."""
    return float(np.sqrt(max(np.abs(gram[first::period, first::period]).sum() for first in range(period))))


def total_error(gram: Floats, encoded: Floats, period: int) -> float:
    """Return the squared error that noise leaves in all models, over steps and users, at mu 1 and clip 1."""
    return float(np.trace(np.linalg.solve(encoded, gram))) * sensitivity(encoded, period) ** 2


def rows_of(weights: Floats, steps: int, observer: int, curvature: Floats | None = None) -> Floats:
    """Return what a user sees of all contributions, user by user and step after step: its neighbours' models, its own.

    `curvature` is each user's loss's, times the rate: models shrink by it at each step, which is known.
    """
    users = len(weights)
    kept = np.ones(users) if curvature is None else 1.0 - curvature
    near = np.flatnonzero(weights[observer] > 0.0)
    models, found = np.zeros((users, users * steps)), []
    for step in range(steps):
        models = kept[:, None] * (weights @ models)
        models[:, step * users : (step + 1) * users] += np.eye(users)
        own = np.zeros((1, users * steps))
        own[0, step * users + observer] = 1.0
        found += [models[near], own]
    return np.concatenate(found)


def projector(rows: Floats) -> Floats:
    _, sizes, vectors = np.linalg.svd(rows, full_matrices=False)
    basis = vectors[: int((sizes > _RANK * sizes[0]).sum())]
    return np.asarray(basis.T @ basis)


def told(weights: Floats, steps: int, observer: int) -> Floats:
    """Return the paper's squared mu (sensitivity and noise 1) of each user for this observer; infinite for its own."""
    whole, users = projector(rows_of(weights, steps, observer)), len(weights)
    found = np.array([np.abs(whole[user::users, user::users]).sum() for user in range(users)])
    found[observer] = np.inf
    return found


def told_following(weights: Floats, steps: int, observer: int, user: int, curvature: Floats) -> float:
    """Return the exact squared mu where each step moves by 1 and all gradients follow the models they are taken at."""
    whole, users = projector(rows_of(weights, steps, observer, curvature)), len(weights)
    return float(whole[user::users, user::users].sum())
