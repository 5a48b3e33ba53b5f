"""Leaks of each user's gradients to one observer of learning by gossip, as if gradients had been fixed beforehand.

Each user u puts in a noised gradient y_ur at the beginning of each block r of rounds, and all that is sent is a
weighted sum of them: states are scaled by `shrink[r]`, take `gain[r]` y_ur, and are mixed by the weights of the block's
rounds. For each user the result is X, the block of the Gram matrix of all that the observer learned that belongs to
its gradients, in units of what each of them tells by itself: 0 <= X <= 1. If the gradients of round r move by d_r, the
observer's view moves by mu^2 = sum X_rs <d_r, d_s>, in units of the noise; `worst` is the most that this can be. It is
the exact leak where gradients do not depend on what was sent, and that of a model of the run where they do.

The observer is a Kalman filter: what it heard in a block is an innovation, whose deviation from what it expected
from all before is white once divided by its spread. So nothing larger than the users' square is ever worked on, and a
block's basis of rows is the only decision about ranks: its own noise taken out, a fresh gradient of everybody else is
in each of these rows. Noise on messages takes away even that one, and is filtered round by round.

`members` pool what they saw, know their own gradients and noise, and so their own states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.privacy.linear.krylov import extended, heard_basis
from p2pdp.privacy.linear.layers import Layer, Layers, seen_rows


@dataclass(frozen=True)
class Course:
    """The mixing of gradients; `ratio` is the deviation of noise on messages in units of a gradient's.

    `matrices` has the weights of each round, symmetric and sparse; of a graph that stays the same object again.
    `shared` is what the variance of noise that users share adds to the covariance of noised gradients: the Laplacian of
    those who share any, times its variance in units of a gradient's own noise.
    """

    matrices: Sequence[Any]
    block: int
    gamma: float
    shrink: Sequence[float]
    gain: Sequence[float]
    ratio: float = 0.0
    shared: Floats | None = None

    @property
    def users(self) -> int:
        return int(self.matrices[0].shape[0])

    @property
    def gradients(self) -> int:
        return len(self.gain)

    @property
    def is_fixed(self) -> bool:
        return all(matrix is self.matrices[0] for matrix in self.matrices)


@dataclass(frozen=True)
class Told:
    """`grams` is [user, gradient, gradient], 0 for members; kept and dropped are pivots of the blocks' bases."""

    grams: Floats
    kept: float
    dropped: float


def told(course: Course, members: Sequence[int]) -> Told:
    """Return what members who pool learn of everybody."""
    size, count = course.users, course.gradients
    inside = np.array(sorted(members), dtype=np.int64)
    outside = np.setdiff1d(np.arange(size), inside)
    spread = np.zeros((size, size))  # of what the members do not know of all states, in units of one gradient's noise
    common = None if course.shared is None else without(course.shared, inside)
    moves: list[Floats] = []
    grams = np.zeros((size, count, count))
    kept, dropped = 1.0, 0.0
    fixed: tuple[Floats, float, float] | None = None
    for number in range(count):
        spread *= course.shrink[number] ** 2
        spread[outside, outside] += course.gain[number] ** 2
        if common is not None:
            spread += course.gain[number] ** 2 * common
        rounds = course.matrices[number * course.block : (number + 1) * course.block]
        if course.ratio:
            seen, move, spread = _noised_block(course, rounds, inside, spread)
        else:
            if fixed is None or not course.is_fixed:
                fixed = _basis(course, rounds, inside)
            kept, dropped = min(kept, fixed[1]), max(dropped, fixed[2])
            seen, move, spread = _clean_block(course, rounds, fixed[0], spread)
        _add(grams, course, seen, moves)
        moves.append(move)
    grams[inside] = 0.0
    return Told(grams, kept, dropped)


def without(laplacian: Floats, members: Any) -> Floats:
    """Return a graph's Laplacian without the edges of these users."""
    found = laplacian.copy()
    found[members] = found[:, members] = 0.0
    np.fill_diagonal(found, 0.0)
    np.fill_diagonal(found, -found.sum(axis=1))
    return found


def worst(grams: Floats) -> Floats:
    """Return the most by which any gradients of a user, each moved by 1 at most, move the view, squared.

    sum X_rs <d_r, d_s> is at most the sum of all |X_rs|, and at most the largest eigenvalue of X for each gradient
    (guide/accounting.md, section 1). Where no X_rs is negative the first is reached.
    """
    sums = np.abs(grams).sum(axis=(1, 2))
    largest = np.linalg.eigvalsh(grams)[:, -1] if grams.shape[1] else sums
    return np.asarray(np.minimum(sums, grams.shape[1] * np.clip(largest, 0.0, 1.0)))


def _add(grams: Floats, course: Course, seen: Floats, moves: Sequence[Floats]) -> None:
    """Add whitened innovations of a block, led back to each gradient by what it has been through since."""
    if not len(seen):
        return
    count = len(moves) + 1
    responses = np.empty((grams.shape[0], len(seen), count))
    for number in range(count - 1, -1, -1):
        responses[:, :, number] = (seen * course.gain[number]).T
        if number:
            seen = (seen * course.shrink[number]) @ moves[number - 1]
    grams[:, :count, :count] += responses.transpose(0, 2, 1) @ responses


def _clean_block(course: Course, rounds: Sequence[Any], basis: Floats, spread: Floats) -> tuple[Floats, Floats, Floats]:
    """Return a block's innovations in terms of what was unknown before it, what is left of that, and its spread."""
    end = _mixed(course, rounds)
    if not basis.shape[1]:
        return np.zeros((0, len(spread))), end, end @ spread @ end.T
    across = spread @ basis
    root = np.linalg.cholesky(basis.T @ across)
    white = np.linalg.solve(root, basis.T)
    gain = np.linalg.solve(root, across.T).T
    left = end - (end @ gain) @ white
    remaining = spread - gain @ gain.T
    moved = end @ remaining @ end.T
    return white, left, (moved + moved.T) / 2.0


def _mixed(course: Course, rounds: Sequence[Any]) -> Floats:
    """Return what a block of rounds makes of the states at its beginning."""
    now = before = np.eye(course.users)
    for number, matrix in enumerate(rounds):
        gamma = course.gamma if number else 1.0
        before, now = now, gamma * (matrix @ now) + (1.0 - gamma) * before
    return now


def _noised_block(course: Course, rounds: Sequence[Any], inside: Any, spread: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the same where messages carry noise: round by round, with the states before beside those of now."""
    size, both = course.users, course.gamma != 1.0
    unknown = np.concatenate([np.eye(size), np.zeros((size * both, size))])
    spread = np.pad(spread, (0, size * both))
    found = []
    for number, matrix in enumerate(rounds):
        heard, times = _heard(matrix, inside)
        if len(heard):
            across = spread[:, heard]
            root = np.linalg.cholesky(across[heard] + np.diag(course.ratio**2 / times))
            white = np.linalg.solve(root, unknown[heard])
            gain = np.linalg.solve(root, across.T).T
            found.append(white)
            unknown = unknown - gain @ white
            spread = spread - gain @ gain.T
        step, fresh = _step(course, matrix, inside, accelerated=both and number > 0)
        unknown, spread = step @ unknown, step @ spread @ step.T
        spread[np.arange(size), np.arange(size)] += fresh
        spread = (spread + spread.T) / 2.0
    return np.concatenate(found or [np.zeros((0, size))]), unknown[:size], spread[:size, :size]


def _step(course: Course, matrix: Any, inside: Any, *, accelerated: bool) -> tuple[Floats, Floats]:
    """Return what one round makes of states, and the variance of the noise that strangers add to each other's."""
    size, gamma = course.users, course.gamma if accelerated else 1.0
    dense = np.array(matrix.toarray())
    across = dense.copy()
    np.fill_diagonal(across, 0.0)
    across[:, inside] = 0.0  # what members send they noised themselves
    fresh = (gamma * course.ratio) ** 2 * (across**2).sum(axis=1)
    fresh[inside] = 0.0
    moved = gamma * dense
    moved[inside] = 0.0  # members know their own states
    if course.gamma == 1.0:
        return moved, fresh
    kept = np.eye(size) * (1.0 - gamma)
    kept[inside] = 0.0
    return np.block([[moved, kept], [np.eye(size), np.zeros((size, size))]]), fresh


def _heard(matrix: Any, inside: Any) -> tuple[Any, Any]:
    """Return whose messages members get in a round with these weights, and how many of each, each with own noise."""
    rows = matrix[inside].tocoo()
    near, times = np.unique(rows.col[rows.data != 0.0], return_counts=True)
    strange = ~np.isin(near, inside)
    return near[strange], times[strange]


def _basis(course: Course, rounds: Sequence[Any], inside: Any) -> tuple[Floats, float, float]:
    """Return an orthonormal basis (columns) of what members hear in a block, beyond what they know themselves."""
    if course.is_fixed:
        heard = _heard(rounds[0], inside)[0].tolist()
        basis, kept, dropped = heard_basis(rounds[0], inside.tolist(), heard, len(rounds))
        return basis[:, len(inside) :], kept, dropped
    rows, kept, dropped = seen_rows(
        Layers(course.users, _layers(course, rounds)),
        {number: heard for number, matrix in enumerate(rounds) if len(heard := _heard(matrix, inside)[0])},
    )
    rows[:, inside] = 0.0
    basis, smallest, largest = extended(np.zeros((course.users, 0)), rows.T)
    return basis, min(kept, smallest), max(dropped, largest)


def _layers(course: Course, rounds: Sequence[Any]) -> list[Layer]:
    """Return the states of a block's rounds; with acceleration, those of the round before below them."""
    from scipy.sparse import block_array, csr_array, eye_array

    nothing = np.zeros(0, dtype=np.int64)
    if course.gamma == 1.0:
        return [Layer(matrix, nothing) for matrix in rounds[:-1]]
    same, found = eye_array(course.users, format="csr"), []
    for number, matrix in enumerate(rounds[:-1]):
        upper = [course.gamma * matrix, (1.0 - course.gamma) * same] if number else [matrix]
        lower = [same, None] if number else [same]
        found.append(Layer(csr_array(block_array([upper, lower])), nothing))
    return found


def unclipped(course: Course, reach: float, clip: float, sigma: float, dimension: int) -> float:
    """Bound the chance that some gradient of mean estimation is longer than `clip`, if none is clipped before.

    That is the distance of a user's state from one of its examples, which are no longer than `reach`. A state is a
    weighted sum of examples, whose length is added up here, and of Gaussian noise in each number, of which the
    chance is that of a chi-square variable; the chances of all states add up. Until something is clipped a run is the
    one without clipping, so this is the most by which the two differ.
    """
    from scipy.special import chdtrc

    size = course.users
    fresh = np.eye(size) if course.shared is None else np.eye(size) + course.shared
    spread, length, total = np.zeros((size, size)), np.zeros(size), 0.0
    nobody = np.zeros(0, dtype=np.int64)
    for number in range(course.gradients):
        room = clip - reach - length
        if np.any(room <= 0.0):
            return 1.0
        deviations = sigma * np.sqrt(np.maximum(np.diag(spread), 0.0))
        noised = deviations > 0.0
        total += float(chdtrc(dimension, (room[noised] / deviations[noised]) ** 2).sum())
        spread = spread * course.shrink[number] ** 2 + course.gain[number] ** 2 * fresh
        rounds = course.matrices[number * course.block : (number + 1) * course.block]
        if course.ratio:
            _, mixed, spread = _noised_block(course, rounds, nobody, spread)
        else:
            _, mixed, spread = _clean_block(course, rounds, np.zeros((size, 0)), spread)
        length = np.abs(mixed) @ (abs(course.shrink[number]) * length + course.gain[number] * reach)
    return min(1.0, total)
