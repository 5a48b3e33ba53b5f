"""Randomness as a parameter: what a machine may ask for, and what names a mechanism.

A machine asks for noise and for routing choices through two separate streams, so that a
change in one never shifts the other. Live, both come from the operating system; in the
simulator from its seed; in a replay from the ledger; in the auditor they are symbols.
Coins that a pair tosses together come from what the two share, and are recorded like choices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from p2pdp.core.ids import Peer


class Mechanism(NamedTuple):
    """The public facts of a draw, which the ledger keeps.

    `scale` is in grid units: for `gaussian` the standard deviation, for `laplace` the
    scale parameter b, for `randomized_response` the probability of a uniform answer,
    for `uniform_counts` the number of uniform elements. `categories` is 0 where there
    are none. A draw of `dither` is a seed of four words, from which noise of this standard
    deviation, in steps of the fine grid of states, is unfolded for each message.
    """

    name: str
    scale: float
    categories: int = 0


DITHER: Final = "dither"
NO_NOISE: Final = Mechanism("none", 0.0)

Shape = tuple[int, ...]
Expected = Mapping[tuple[Mechanism, Shape], int]
"""The expected number of draws of each kind."""


class Draws(Protocol):
    """The random streams that a machine is given with each call."""

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        """Return one draw: a grid integer for shape (), an int64 array for shape (d,)."""

    def choice(self, options: int) -> int:
        """Return a uniform number from 0 to options - 1."""

    def meet(self, number: int, coin: float) -> Sequence[Peer]:
        """Return whom this peer meets in a round, in rising order, peers that are gone included.

        Each pair tosses one coin, which both ends see and nobody else.
        """


class Sampler(Protocol):
    """A source of independent draws of one mechanism, many at a time."""

    name: str

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]: ...

    def choice(self, options: int) -> int: ...
