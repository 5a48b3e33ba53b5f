"""Randomness as a parameter: what a machine may ask for, and what names a mechanism.

A machine asks for noise and for routing choices through two separate streams, so that a
change in one never shifts the other. Live, both come from the operating system; in the
simulator from its seed; in a replay from the ledger; in the auditor they are symbols.
What two users draw together, coins and noise, comes from the secret that they share, and both record it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from p2pdp.core.ids import Peer


class Mechanism(NamedTuple):
    """The public facts of a draw, which the ledger keeps.

    `scale` is in grid units: for `gaussian` the standard deviation, for `laplace` the
    scale parameter b, for `randomized_response` the probability of a uniform answer,
    for `uniform_counts` the number of uniform elements. `categories` is 0 where there
    are none. A draw of `dither` is a seed of four words, from which noise of this standard
    deviation, in steps of the fine grid of states, is unfolded for each message. A draw of `rows` says which of
    `categories` rows enter a minibatch, each with the chance `scale`, as bits in words of 64.
    """

    name: str
    scale: float
    categories: int = 0


DITHER: Final = "dither"
ROWS: Final = "rows"
NO_NOISE: Final = Mechanism("none", 0.0)
UNIFORM: Final = Mechanism("uniform_bits", 1.0)
"""64 uniform bits. Added modulo 2^64 they hide a number from all who do not know them."""

Shape = tuple[int, ...]


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

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> Any:
        """Return the draw of this number that this peer shares with another: both ends get the same value.

        It follows from what the two share, the run and the number, so that nothing can draw it again.
        """

    def pair_key(self, peer: Peer, number: int) -> Any:
        """Return the secret from which that draw is unfolded, as a value to be sent to whoever is to know it."""


class Sampler(Protocol):
    """A source of independent draws of one mechanism, many at a time."""

    name: str

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]: ...

    def choice(self, options: int) -> int: ...
