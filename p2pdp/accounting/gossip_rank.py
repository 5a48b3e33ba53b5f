"""The ranks of what observers of gossip saw, modulo a prime, all at once.

Each user's y and each fresh draw is replaced by a few random residues, more than any rank in question, and the
layers are run forward over these. What an observer saw has the rank of its rows then, but for a chance of about
one in the prime for each of its rows. It is never above the true rank, so what is too small shows up as a float
rank above it, and a float rank below it as a leak that was missed: `raised` then takes all leaks to be whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from p2pdp.accounting.gossip_krylov import Span
from p2pdp.accounting.gossip_layers import Layers, View
from p2pdp.accounting.modular_rank import modular_rank, reduced

Rows = npt.NDArray[np.float32]  # residues below 2^20 are exact in it

_MORE_COLUMNS: Final = 8
_COLUMNS: Final = 64
_SLACK: Final = 1e-14
_SLACK_LEAST: Final = 1e-12
_DOUBTED: Final = 10.0


def modular_ranks(layers: Layers, views: Sequence[View], rank_most: int, prime: int) -> list[int]:
    """The rank of each view, its members' own knowledge included; as far as `rank_most`, beyond which none counts."""
    width = rank_most + max((len(view.drawn) for view in views), default=0) + _MORE_COLUMNS
    width = min(layers.users + layers.noises, width)
    rows: list[list[Rows]] = [[] for _ in views]
    for start in range(0, width, _COLUMNS):
        for found, some in zip(rows, _seen(layers, views, prime, start, min(_COLUMNS, width - start)), strict=True):
            found.append(some)
    return [
        modular_rank(np.concatenate(found, axis=1) if found else np.zeros((0, 0)), prime) - len(view.drawn)
        for view, found in zip(views, rows, strict=True)
    ]


def _seen(layers: Layers, views: Sequence[View], prime: int, start: int, width: int) -> list[Rows]:
    """What each observer saw, of random residues in some of the columns: so many at a time as a cache has room for."""
    random = np.random.Generator(np.random.Philox(key=[prime, start]))
    values = random.integers(0, prime, (layers.users, width)).astype(np.float64)
    draws = random.integers(0, prime, (layers.noises, width)).astype(np.float64)
    own = [[*values[list(view.members)], *draws[list(view.drawn)]] for view in views]
    rows: list[list[Rows]] = [[np.array(some, dtype=np.float32).reshape(-1, width)] for some in own]
    for number in range(1 + max((max(view.seen, default=0) for view in views), default=0)):
        if number:
            step = layers.steps[number - 1]
            moved = _residues(step.parents, step.residues, prime) @ values
            if step.noise is not None:
                moved = reduced(moved, prime) + _residues(step.noise, step.noise_residues, prime) @ draws
            values = reduced(moved, prime)
        for view, found in zip(views, rows, strict=True):
            if number in view.seen:
                found.append(values[list(view.seen[number])].astype(np.float32))
    return [np.concatenate(found) for found in rows]


def _residues(matrix: Any, residues: Any, prime: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array(((residues % prime).astype(np.float64), matrix.indices, matrix.indptr), shape=matrix.shape)


def slack_of(span: Span) -> float:
    """How much more rounding may have hidden of a leak."""
    return max(_SLACK_LEAST, _SLACK / span.kept, _DOUBTED * span.doubt)


def raised(span: Span, rank: int) -> Span:
    """Leaks rounded up: by what rounding may have hidden, and wholly where it has hidden some of the rows."""
    if rank > span.rank:
        return replace(span, leaks=np.ones_like(span.leaks), rank=rank)
    return replace(span, leaks=np.where(span.leaks > 0.0, np.minimum(1.0, span.leaks + slack_of(span)), 0.0))
