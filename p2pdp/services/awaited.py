"""Users who are waited for: how many they are, and the first of them, without a look at all of them each time."""

from __future__ import annotations

from itertools import islice
from typing import Final

from p2pdp.core.ids import Peer

FIRST_MAX: Final = 100


class Awaited:
    def __init__(self, n: int) -> None:
        """Wait for users 0 to n - 1."""
        self.users: set[Peer] = set(range(n))
        self._first: list[Peer] = []
        self._later = iter(range(n))

    def first(self) -> tuple[Peer, ...]:
        """Return the first `FIRST_MAX` of them, in order."""
        self._first = [user for user in self._first if user in self.users]
        others = (user for user in self._later if user in self.users)
        self._first += islice(others, FIRST_MAX - len(self._first))
        return tuple(self._first)
