"""Epsilon of network shuffling as [LTT22] prints it, and as it is proved here, at one delta for all figures.

The paper prints no delta. All its figures are made with 1e-6: Theorems 5.3 and 5.4 spend half of it on uneven loads
(delta_2), Theorems 5.5 and 5.6 and our own claim need no such part. Above epsilon_0 a claim says nothing, because
nobody learns more from a report than the report holds; [LTT22] draws its curves beyond that, and so do we.
"""

from __future__ import annotations

from typing import Final

from p2pdp.accounting.shuffle.krr import clones
from p2pdp.accounting.shuffle.published import epsilon_all, epsilon_single, load
from p2pdp.topology.walk_mixing import ETA

DELTA: Final = 1e-6
KAPPA_AUTO: Final = (1.0 - ETA) / (1.0 + ETA)
"""What walks of any two users overlap at least after the rounds that our own rule asks for."""


def printed_all(epsilon_0: float, n: int, sum_p2: float, rho: float = 1.0, *, corrected: bool = False) -> float:
    """Theorem 5.3, or 5.4 where rho is given; `corrected` adds the term that Lemma 5.1 misses."""
    return epsilon_all(epsilon_0, load(n, sum_p2, DELTA / 2.0, rho, corrected=corrected), DELTA / 2.0)


def printed_single(epsilon_0: float, sum_p2: float) -> float:
    """Theorems 5.5 and 5.6."""
    return epsilon_single(epsilon_0, sum_p2, DELTA)


def sound(epsilon_0: float, n: int, kappa: float) -> float:
    """For either protocol, any graph and any number of rounds: walks of any two users overlap by kappa."""
    return clones(epsilon_0, n, DELTA, kappa)[1] if kappa > 0.0 else epsilon_0
