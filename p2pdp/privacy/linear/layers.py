"""Gossip as layers of linear steps: leaks of any set of messages, whatever was late, lost or noised on its way.

Layer 0 are the users' noised values y_u. A value of layer k is a weighted sum of values of the layer before (which
carries on what is needed later), and of fresh draws: noise of single messages, in units of a user's own noise. An
observer saw some values of some layers, and knows the y and the draws of its members.

`layered_span` gives its leaks exactly: the rows that it saw are carried down from the last layer to the first and
made orthonormal every few layers, which never mixes rounding with high powers (compare `krylov.py`). Rows
with noise of their own are not parallel, and are whitened at once at the end.

`modular_ranks` has the ranks of what observers saw, modulo a prime, all at once. Each user's y and each fresh draw is
replaced by a few random residues, more than any rank in question, and the layers are run forward over these. What an
observer saw has the rank of its rows then, but for a chance of about one in the prime for each of its rows. It is never
above the true rank, so what is too small shows up as a float rank above it, and a float rank below it as a leak that
was missed: `raised` then takes all leaks to be whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from p2pdp.core.arrays import Each, Floats, Ints, one_by_one
from p2pdp.privacy.linear.krylov import DROPPED_BELOW, Span, extended, leaks_of
from p2pdp.privacy.linear.modular import MODULUS, modular_rank, reduced, residue

Seen = Mapping[int, Sequence[int]]  # layer -> which of its values

_STRIDES: Final = (4, 3)
_DROPPED_VARIANCE: Final = 1e-12  # of the largest


@dataclass(frozen=True, slots=True)
class Layer:
    """`parents` is sparse, a row a value; `residues` are its entries modulo all primes, in the same order.

    `noise` has a column for each fresh draw of the whole run, with its weight, and `noise_residues` likewise.
    """

    parents: Any
    residues: Ints
    noise: Any | None = None
    noise_residues: Ints | None = None


@dataclass(frozen=True, slots=True)
class Layers:
    """`steps[k]` leads from layer k to layer k + 1; there are `noises` fresh draws of this standard deviation."""

    users: int
    steps: Sequence[Layer]
    noises: int = 0
    deviation: float = 0.0


@dataclass(frozen=True, slots=True)
class View:
    """The values that an observer saw, the members whose y it knows, and the fresh draws that it knows.

    `spread` is the covariance of the y of all others, given what it knows; None where these are independent.
    """

    seen: Seen
    members: Sequence[int] = ()
    drawn: Sequence[int] = ()
    spread: Floats | None = None


def fixed_layers(weights: Any, rounds: int) -> Layers:
    """Return the states of synchronous gossip with fixed weights; after `rounds` - 1 steps nothing is sent any more."""
    step = Layer(weights, stochastic_residues(weights))
    return Layers(weights.shape[0], [step] * max(0, rounds - 1))


def stochastic_residues(weights: Any) -> Ints:
    """Return residues of a matrix whose rows add up to 1, whatever rounding has done to its diagonal."""
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    found = [0 if row == column else residue(float(weight)) for row, column, weight in
             zip(rows.tolist(), weights.indices.tolist(), weights.data, strict=True)]  # fmt: skip
    left = [1] * weights.shape[0]
    for row, value in zip(rows.tolist(), found, strict=True):
        left[row] -= value
    for place in np.nonzero(rows == weights.indices)[0].tolist():
        found[place] = left[rows[place]] % MODULUS
    return np.array(found, dtype=np.int64)


def layered_span(layers: Layers, view: View, strides: tuple[int, int] = _STRIDES, below: float = DROPPED_BELOW) -> Span:
    """Return what a view leaks; what members know of themselves counts, and pivots `below` are taken for rounding.

    Without fresh noise the same is done twice, in strides of different lengths: rounding that grew on the way
    down shows as a difference between the two, which `doubt` tells.
    """
    known = np.array(sorted(view.members), dtype=np.int64)
    count = len(known) + sum(len(values) for values in view.seen.values())
    if layers.noises:
        rows, noise, _, _ = _carried_down(layers, view.seen, None)
        rows[:, known] = 0.0
        noise[:, np.array(view.drawn, dtype=np.int64)] = 0.0
        leaks, rank, kept, dropped = _whitened(rows, noise * layers.deviation, view.spread)
        leaks[known] = 1.0
        return Span(leaks, rank + len(known), count, kept, dropped)
    one, other = (_orthogonal_span(layers, view, known, count, stride, below) for stride in strides)
    return replace(one, doubt=float(np.abs(one.leaks - other.leaks).max(initial=0.0)))


def seen_rows(layers: Layers, seen: Seen, below: float = DROPPED_BELOW) -> tuple[Floats, float, float]:
    """Return rows over layer 0 that span what was seen, without fresh noise, and the pivots on their way."""
    rows, _, kept, dropped = _carried_down(layers, seen, _STRIDES[0], below)
    return rows, kept, dropped


def _orthogonal_span(layers: Layers, view: View, known: Ints, count: int, stride: int, below: float) -> Span:
    rows, _, kept, dropped = _carried_down(layers, view.seen, stride, below)
    rows[:, known] = 0.0
    basis, smallest, largest = extended(np.zeros((layers.users, 0)), rows.T, below)
    leaks = leaks_of(basis, view.spread)
    leaks[known] = 1.0
    return Span(leaks, basis.shape[1] + len(known), count, min(kept, smallest), max(dropped, largest))


def _carried_down(
    layers: Layers, seen: Seen, stride: int | None, below: float = DROPPED_BELOW
) -> tuple[Floats, Floats, float, float]:
    """Return the rows that were seen, over y and over fresh draws, and the pivots of the way there.

    With a stride they are replaced by an orthonormal basis of their span every so many layers.
    """
    noise = np.zeros((0, layers.noises))
    last = max(seen, default=0)
    rows = np.zeros((0, layers.steps[last - 1].parents.shape[0] if last else layers.users))
    kept, dropped = 1.0, 0.0
    for number in range(last, -1, -1):
        found = np.array(seen.get(number, ()), dtype=np.int64)
        rows = np.concatenate([rows, np.zeros((len(found), rows.shape[1]))])
        rows[len(rows) - len(found) + np.arange(len(found)), found] = 1.0
        noise = np.concatenate([noise, np.zeros((len(found), layers.noises))])
        if stride is not None and number % stride == 0 and number < last:
            basis, smallest, largest = extended(np.zeros((rows.shape[1], 0)), rows.T, below)
            rows, kept, dropped = np.ascontiguousarray(basis.T), min(kept, smallest), max(dropped, largest)
            noise = noise[: len(rows)]
        if number:
            step = layers.steps[number - 1]
            if step.noise is not None:
                noise += (step.noise.T @ rows.T).T
            rows = np.ascontiguousarray((step.parents.T @ rows.T).T)
    return rows, noise, kept, dropped


def _whitened(rows: Floats, noise: Floats, spread: Floats | None) -> tuple[Floats, int, float, float]:
    """Return leaks, rank, and the smallest deviation kept and the largest dropped, relative to the largest."""
    if not len(rows):
        return np.zeros(rows.shape[1]), 0, 1.0, 0.0
    own = rows if spread is None else rows @ spread
    values, vectors = np.linalg.eigh(own @ rows.T + noise @ noise.T)
    largest = float(values[-1])
    if largest <= 0.0:
        return np.zeros(rows.shape[1]), 0, 1.0, 0.0
    chosen = values > _DROPPED_VARIANCE * largest
    scaled = vectors[:, chosen].T @ rows / np.sqrt(values[chosen])[:, None]
    deviations = np.sqrt(np.maximum(values, 0.0) / largest)
    kept, dropped = float(deviations[chosen].min()), float(deviations[~chosen].max(initial=0.0))
    return np.einsum("ij,ij->j", scaled, scaled), int(chosen.sum()), kept, dropped


Rows = npt.NDArray[np.float32]  # residues below 2^20 are exact in it

_MORE_COLUMNS: Final = 8
_COLUMNS: Final = 64
_SLACK: Final = 1e-14
_SLACK_LEAST: Final = 1e-12
_DOUBTED: Final = 10.0


def modular_ranks(
    layers: Layers, views: Sequence[View], rank_most: int, prime: int, each: Each = one_by_one
) -> list[int]:
    """Return the rank of each view, its members' own knowledge included; no rank counts beyond `rank_most`."""
    width = rank_most + max((len(view.drawn) for view in views), default=0) + _MORE_COLUMNS
    width = min(layers.users + layers.noises, width)
    told = _Told(layers, views, prime, width)

    def row(place: int) -> Floats:
        return np.array([float(modular_rank(told.rows(views[place]), prime) - len(views[place].drawn))])

    return [int(rank) for (rank,) in each(len(views), row)]


class _Told:
    """Random residues of all values that some observer saw or knows, each once however many saw it."""

    def __init__(self, layers: Layers, views: Sequence[View], prime: int, width: int) -> None:
        self._seen = {
            number: _places(view.seen[number] for view in views if number in view.seen)
            for number in sorted({number for view in views for number in view.seen})
        }
        self._members, self._drawn = _places(view.members for view in views), _places(view.drawn for view in views)
        sizes = {number: len(places) for number, places in self._seen.items()}
        self._rows: dict[int, Rows] = {number: np.zeros((size, width), np.float32) for number, size in sizes.items()}
        self._own: Rows = np.zeros((len(self._members), width), np.float32)
        self._draws: Rows = np.zeros((len(self._drawn), width), np.float32)
        for start in range(0, width, _COLUMNS):
            self._fill(layers, prime, slice(start, min(start + _COLUMNS, width)))

    def _fill(self, layers: Layers, prime: int, columns: slice) -> None:
        """Fill in some of the columns, as many as a cache has room for."""
        random = np.random.Generator(np.random.Philox(key=[prime, columns.start]))
        width = columns.stop - columns.start
        values = random.integers(0, prime, (layers.users, width)).astype(np.float64)
        draws = random.integers(0, prime, (layers.noises, width)).astype(np.float64)
        self._own[:, columns], self._draws[:, columns] = values[self._members], draws[self._drawn]
        for number in range(1 + max(self._seen, default=0)):
            if number:
                step = layers.steps[number - 1]
                moved = _residues(step.parents, step.residues, prime) @ values
                if step.noise is not None:
                    moved = reduced(moved, prime) + _residues(step.noise, step.noise_residues, prime) @ draws
                values = reduced(moved, prime)
            if number in self._seen:
                self._rows[number][:, columns] = values[self._seen[number]]

    def rows(self, view: View) -> Rows:
        """Return the residues of what one observer knows and saw."""
        parts = [(self._own, self._members, view.members), (self._draws, self._drawn, view.drawn)]
        parts += [(self._rows[number], self._seen[number], view.seen[number]) for number in sorted(view.seen)]
        chosen = [rows[np.searchsorted(places, list(some))] for rows, places, some in parts]
        return np.concatenate(chosen)


def _places(several: Iterable[Sequence[int]]) -> Ints:
    return np.array(sorted({place for some in several for place in some}), dtype=np.int64)


def _residues(matrix: Any, residues: Any, prime: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array(((residues % prime).astype(np.float64), matrix.indices, matrix.indptr), shape=matrix.shape)


def slack_of(span: Span) -> float:
    """Return how much more rounding may have hidden of a leak."""
    return max(_SLACK_LEAST, _SLACK / span.kept, _DOUBTED * span.doubt)


def raised(span: Span, rank: int) -> Span:
    """Return leaks rounded up: by what rounding may have hidden, and to 1 where it has hidden some of the rows."""
    if rank > span.rank:
        return replace(span, leaks=np.ones_like(span.leaks), rank=rank)
    return replace(span, leaks=np.where(span.leaks > 0.0, np.minimum(1.0, span.leaks + slack_of(span)), 0.0))
