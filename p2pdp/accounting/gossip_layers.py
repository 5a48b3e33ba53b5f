"""Gossip as layers of linear steps: what any set of messages tells, whatever was late, lost or noised on its way.

Layer 0 are the users' noised values y_u. A value of layer k is a weighted sum of values of the layer before (which
carries on what is needed later), and of fresh draws: noise of single messages, in units of a user's own noise. An
observer saw some values of some layers, and knows the y and the draws of its members.

`layered_span` gives its leaks exactly: the rows that it saw are carried down from the last layer to the first and
made orthonormal every few layers, which never mixes rounding with high powers (compare `gossip_krylov.py`). Rows
with noise of their own are not parallel, and are whitened at once at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from p2pdp.accounting.gossip_krylov import DROPPED_BELOW, Span, extended
from p2pdp.accounting.modular_rank import MODULUS, residue
from p2pdp.core.arrays import Floats, Ints

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
    """What somebody saw, whose y it knows, and which fresh draws."""

    seen: Seen
    members: Sequence[int] = ()
    drawn: Sequence[int] = ()


def fixed_layers(weights: Any, rounds: int) -> Layers:
    """The states of synchronous gossip with fixed weights; after `rounds` - 1 steps nothing is sent any more."""
    step = Layer(weights, stochastic_residues(weights))
    return Layers(weights.shape[0], [step] * max(0, rounds - 1))


def stochastic_residues(weights: Any) -> Ints:
    """Residues of a matrix whose rows add up to 1, whatever rounding has done to its diagonal."""
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
    """What members know of themselves counts as leaked; pivots `below` are taken for rounding.

    Without fresh noise the same is done twice, in strides of different lengths: rounding that grew on the way
    down shows as a difference between the two, which `doubt` tells.
    """
    known = np.array(sorted(view.members), dtype=np.int64)
    count = len(known) + sum(len(values) for values in view.seen.values())
    if layers.noises:
        rows, noise, _, _ = _carried_down(layers, view.seen, None)
        rows[:, known] = 0.0
        noise[:, np.array(view.drawn, dtype=np.int64)] = 0.0
        leaks, rank, kept, dropped = _whitened(rows, noise * layers.deviation)
        leaks[known] = 1.0
        return Span(leaks, rank + len(known), count, kept, dropped)
    one, other = (_orthogonal_span(layers, view.seen, known, count, stride, below) for stride in strides)
    return replace(one, doubt=float(np.abs(one.leaks - other.leaks).max(initial=0.0)))


def seen_rows(layers: Layers, seen: Seen, below: float = DROPPED_BELOW) -> tuple[Floats, float, float]:
    """Rows over the values of layer 0 that span what was seen, without fresh noise, and the pivots on their way."""
    rows, _, kept, dropped = _carried_down(layers, seen, _STRIDES[0], below)
    return rows, kept, dropped


def _orthogonal_span(layers: Layers, seen: Seen, known: Ints, count: int, stride: int, below: float) -> Span:
    rows, _, kept, dropped = _carried_down(layers, seen, stride, below)
    rows[:, known] = 0.0
    basis, smallest, largest = extended(np.zeros((layers.users, 0)), rows.T, below)
    leaks = np.einsum("ij,ij->i", basis, basis)
    leaks[known] = 1.0
    return Span(leaks, basis.shape[1] + len(known), count, min(kept, smallest), max(dropped, largest))


def _carried_down(
    layers: Layers, seen: Seen, stride: int | None, below: float = DROPPED_BELOW
) -> tuple[Floats, Floats, float, float]:
    """The rows that were seen, over y and over fresh draws, and the pivots of the way there.

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


def _whitened(rows: Floats, noise: Floats) -> tuple[Floats, int, float, float]:
    """Leaks, rank, and the smallest and largest deviations that were kept and dropped, relative to the largest."""
    if not len(rows):
        return np.zeros(rows.shape[1]), 0, 1.0, 0.0
    values, vectors = np.linalg.eigh(rows @ rows.T + noise @ noise.T)
    largest = float(values[-1])
    if largest <= 0.0:
        return np.zeros(rows.shape[1]), 0, 1.0, 0.0
    chosen = values > _DROPPED_VARIANCE * largest
    scaled = vectors[:, chosen].T @ rows / np.sqrt(values[chosen])[:, None]
    deviations = np.sqrt(np.maximum(values, 0.0) / largest)
    kept, dropped = float(deviations[chosen].min()), float(deviations[~chosen].max(initial=0.0))
    return np.einsum("ij,ij->j", scaled, scaled), int(chosen.sum()), kept, dropped
