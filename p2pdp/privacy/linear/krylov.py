"""The exact leaks of gossip with fixed weights, where every message of every round arrived.

After T rounds an observer v has seen (W^t y)_w of each neighbour w, t < T, and knows its own y_v; y_u is a user's
value with its own noise. What it learns about u is the squared length of the projection of e_u on the span of the
rows that it saw (guide/accounting.md, section 3), in units of what it would learn from y_u itself. Acceleration only
combines these rows, so it changes nothing. Observers who pool what they saw are one observer.

Rows of high powers are parallel up to rounding, so the span is built as a block Krylov space: what a round adds is
W times what the round before added, made orthogonal twice to all there is, then by a pivoted factorization within
the block. What adds nothing is dropped, and with it all its descendants, which add nothing either. `kept` and
`dropped` are the smallest pivot that was kept and the largest that was not: as long as they are far apart the rank
is that of W. `layers.modular_ranks` decides where it matters.

Noise that users share with each other makes their noised values dependent: `spread` is the covariance of these values,
in units of a user's own noise, given what the observer knows of it. On an orthonormal basis Q of the span the leak is

    leak_u = (Q e_u)' (Q spread Q')^-1 (Q e_u).

`noised_leaks` is what noise on messages leaves of these leaks: a bound that a plan can afford.

The observer knows what it sent itself, so its own column and row are cut out of the weights, and what it hears in
round t are the rows P_t(W~)_w of its neighbours w, each with fresh noise of deviation ratio * sigma. The noise that
others add to what they send each other is taken to be known to it, which can only raise a leak (guide/accounting.md,
section 3: checked against the exact replay, at most a fifth above it). In units of a user's own noised value

    leak_u = r_u' (R R' + ratio^2 I)^-1 r_u,    r_u the column of user u in R.

Rows that are parallel up to rounding do not matter here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats

DROPPED_BELOW: Final = 1e-11


@dataclass(frozen=True, slots=True)
class Span:
    """The span of what an observer saw: the leak of each user, between 0 and 1, and how the rank came about.

    `rank` counts what members know themselves. `rows` is how many rows, their own values included, they had.
    `doubt` is by how much a second way to the same leaks came to others.
    """

    leaks: Floats
    rank: int
    rows: int
    kept: float
    dropped: float
    doubt: float = 0.0


_NUMBERS: Final = 5  # of a span, behind its leaks


def packed(span: Span) -> Floats:
    """Return a span as one row of numbers."""
    return np.append(span.leaks, (span.rank, span.rows, span.kept, span.dropped, span.doubt))


def unpacked(row: Floats) -> Span:
    rank, rows, kept, dropped, doubt = row[-_NUMBERS:].tolist()
    return Span(row[:-_NUMBERS], int(rank), int(rows), kept, dropped, doubt)


def leaks_of(basis: Floats, spread: Floats | None) -> Floats:
    """Return the leak of each user from an orthonormal basis (columns) of what was seen.

    `spread` is the covariance of the users' noised values; None where these are independent.
    """
    if spread is None:
        return np.asarray(np.einsum("ij,ij->i", basis, basis))
    if not basis.shape[1]:
        return np.zeros(len(basis))
    white = np.linalg.solve(np.linalg.cholesky(basis.T @ spread @ basis), basis.T)
    return np.asarray(np.einsum("ij,ij->j", white, white))


def fixed_span(
    weights: Any,
    neighbours: Sequence[Sequence[int]],
    members: Sequence[int],
    rounds: int,
    spread: Floats | None = None,
) -> Span:
    """Return what members saw who pool it; `weights` is symmetric and sparse, `neighbours` whom each user hears."""
    inside = set(members)
    heard = sorted({near for member in members for near in neighbours[member]} - inside)
    filled, kept, dropped = heard_basis(weights, sorted(inside), heard, rounds)
    rows = len(inside) + len(heard) * rounds
    return Span(leaks_of(filled, spread), filled.shape[1], rows, kept, dropped)


def heard_basis(weights: Any, inside: Sequence[int], heard: Sequence[int], rounds: int) -> tuple[Floats, float, float]:
    """Return an orthonormal basis (columns): the unit vectors of members, then what `heard` sent in so many rounds.

    With it come the smallest pivot that was kept and the largest that was dropped.
    """
    size, rounds = weights.shape[0], rounds if heard else 0
    basis = np.zeros((size, min(size, len(inside) + len(heard) * rounds)), order="F")
    start = [*inside, *(heard if rounds else ())]
    basis[start, np.arange(len(start))] = 1.0
    rank, kept, dropped = len(start), 1.0, 0.0
    block = basis[:, len(inside) : rank]
    for _ in range(1, rounds):
        added, smallest, largest = extended(basis[:, :rank], weights @ block)
        kept, dropped = min(kept, smallest), max(dropped, largest)
        if not added.shape[1]:
            break
        basis[:, rank : rank + added.shape[1]] = added
        block = basis[:, rank : rank + added.shape[1]]
        rank += added.shape[1]
    return basis[:, :rank], kept, dropped


def extended(basis: Floats, block: Floats, below: float = DROPPED_BELOW) -> tuple[Floats, float, float]:
    """Return what a block adds to an orthonormal basis, its smallest pivot and the largest that was dropped.

    Columns of the block have a length of at most about 1, against which pivots are measured.
    """
    from scipy.linalg import qr

    if not block.shape[1]:
        return block, 1.0, 0.0
    outside = ~(np.any(block, axis=1) | np.any(basis, axis=1))  # of the span: reflections leave dust there
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
    found, triangle, _ = qr(block, mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
    pivots = np.abs(np.diag(triangle))
    count = min(int(np.sum(pivots > below)), basis.shape[0] - basis.shape[1])
    largest = float(pivots[count:].max(initial=0.0))
    if not count:
        return found[:, :0], 1.0, largest
    found = found[:, :count]
    found = found - basis @ (basis.T @ found)  # small pivots have left something of the basis in them
    found, _ = np.linalg.qr(found)
    found[outside] = 0.0
    return found, float(pivots[:count].min()), largest


def noised_leaks(
    weights: Any,
    heard: Sequence[int],
    observer: int,
    rounds: int,
    gamma: float,
    ratios: Sequence[float],
    spread: Floats | None = None,
) -> Floats:
    """Return a row for each ratio above 0; `heard` are the observer's neighbours, `gamma` is 1 if not accelerated.

    What the observer knows of itself is given as 0.
    """
    size = weights.shape[0]
    before = np.zeros((size, len(heard)))
    now = before.copy()
    now[list(heard), np.arange(len(heard))] = 1.0
    wide = rounds * len(heard) < size
    root = None if spread is None else np.linalg.cholesky(spread)
    rows = []
    square = np.zeros((0, 0) if wide else (size, size))
    for number in range(rounds):
        if wide:
            rows.append(now)
        else:
            square += now @ now.T
        moved = weights @ now
        moved[observer] = 0.0
        before, now = now, moved if number == 0 else gamma * moved + (1.0 - gamma) * before
    if wide:
        every = np.concatenate(rows, axis=1) if rows else now[:, :0]
        noised = every if root is None else root.T @ every
        values, vectors = np.linalg.eigh(noised.T @ noised)
        parts = (every @ vectors) ** 2
        return np.stack([parts @ (1.0 / (np.maximum(values, 0.0) + ratio**2)) for ratio in ratios])
    values, vectors = np.linalg.eigh(square if root is None else root.T @ square @ root)
    values = np.maximum(values, 0.0)
    if root is not None:
        vectors = np.linalg.solve(root.T, vectors)
        vectors[observer] = 0.0
    return np.stack([vectors**2 @ (values / (values + ratio**2)) for ratio in ratios])
