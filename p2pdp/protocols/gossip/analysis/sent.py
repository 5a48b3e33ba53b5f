"""The number of messages of gossip in rounds, counted from the weights of each round."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Ints

_TABLE_MAX: Final = 8192  # users of whom a table of pairs is kept: 64 MiB


class Sent:
    """Counts messages: an exchange each way along each edge of a round, and one in the end for each pair that met."""

    def __init__(self, n: int) -> None:
        self.messages, self._n, self._last = 0, n, None
        self._known = np.zeros(n * n, dtype=np.bool_) if n <= _TABLE_MAX else None  # both orders of those who met
        self._met = np.zeros(0, dtype=np.int64)  # the same for more users

    def add(self, matrix: Any, rounds: int = 1) -> None:
        to, sender, _ = edges_of(matrix)
        self.messages += rounds * len(to)
        if matrix is not self._last:
            self._last = matrix
            self.messages += self._new(to * self._n + sender) // 2

    def _new(self, ways: Ints) -> int:
        if self._known is not None:
            count = len(ways) - int(np.count_nonzero(self._known[ways]))
            self._known[ways] = True
            return count
        before, both = len(self._met), np.concatenate([self._met, ways])
        both.sort(kind="stable")  # two runs that are merged; `numpy.unique` would hash each number
        self._met = both[np.concatenate([[True], both[1:] != both[:-1]])] if len(both) else both
        return len(self._met) - before


def edges_of(matrix: Any) -> tuple[Any, Any, Any]:
    """Return receiver, sender and weight of each message of a round, by receiver."""
    entries = matrix.tocoo()
    across = entries.row != entries.col
    return entries.row[across], entries.col[across], entries.data[across]
