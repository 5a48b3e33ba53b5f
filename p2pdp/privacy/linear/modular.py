"""Ranks of rational matrices that rounding cannot change: elimination modulo primes.

The rank modulo a prime is never above the true one, so full rank is proved by one prime. Where it is less than
full it is the true one but for primes that divide certain minors; several primes make that improbable, and claims
then say so. Numbers stay below 2^20, so that sums of products of them are exact in floats and the work is done by
matrix products.

A float stands for the fraction with a denominator of at most 4096 that it is nearest to, if only rounding lies
between them (weights of gossip are such), and otherwise for itself.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats

PRIMES: Final = (1048573, 1048571, 1048559)
MODULUS: Final = PRIMES[0] * PRIMES[1] * PRIMES[2]  # residues of it tell those of all three
TERMS_MAX: Final = 1 << 13  # so many products of two residues add up to less than 2^53
_DENOMINATOR_MAX: Final = 4096
_ROUNDING: Final = 4 * float(np.finfo(np.float64).eps)
_BLOCK: Final = 32


@lru_cache(maxsize=65536)
def residue(weight: float) -> int:
    """Return the fraction that a weight stands for, modulo all primes at once."""
    exact = Fraction(weight)
    near = exact.limit_denominator(_DENOMINATOR_MAX)
    meant = near if abs(exact - near) <= _ROUNDING * abs(exact) else exact
    return meant.numerator * pow(meant.denominator, -1, MODULUS) % MODULUS


def reduced(values: Floats, prime: int) -> Floats:
    """Return whole numbers from 0 to 2^53 modulo a prime.

    A quotient is rounded to the next whole number only from right below it, which leaves -1.
    """
    found = values / prime
    np.floor(found, out=found)
    found *= -prime
    found += values
    found[found < 0.0] += prime
    return found


def modular_rank(rows: Any, prime: int) -> int:
    """Return the rank of a dense matrix of residues, by block elimination."""
    rows = np.asarray(rows, dtype=np.float64)
    basis = np.zeros((min(rows.shape), rows.shape[1]))
    pivots: list[int] = []
    for start in range(0, len(rows), _BLOCK):
        block, rank = rows[start : start + _BLOCK], len(pivots)
        if rank == len(basis):
            break
        block = reduced(block + prime * prime * float(rank) - _product(block[:, pivots], basis[:rank]), prime)
        block, found = _echelon(block, prime)
        found_columns = found[: len(basis) - rank]
        block = block[: len(found_columns)]
        if rank and len(block):
            factors = basis[:rank][:, found_columns]
            most = prime * prime * float(len(block))
            basis[:rank] = reduced(basis[:rank] + most - _product(factors, block), prime)
        basis[rank : rank + len(block)] = block
        pivots += found_columns
    return len(pivots)


def _product(left: Floats, right: Floats) -> Floats:
    assert left.shape[1] <= TERMS_MAX
    return left @ right


def _echelon(block: Floats, prime: int) -> tuple[Floats, list[int]]:
    """Return the reduced echelon form of a few rows of residues, without its empty rows, and its pivots' columns."""
    block = block.copy()
    rows: list[int] = []
    columns: list[int] = []
    for at in range(len(block)):
        row = block[at]
        column = int(row.argmax())
        if not row[column]:
            continue
        row *= float(pow(int(row[column]), -1, prime))
        _reduce(row, prime)
        factors = block[:, column].copy()
        factors[at] = 0.0
        block -= factors[:, None] * row
        _reduce(block, prime)
        rows.append(at)
        columns.append(column)
    return block[rows], columns


def _reduce(values: Floats, prime: int) -> None:
    """Reduce whole numbers below 2^40 in place: their quotients are too small to be rounded up to a whole one."""
    quotients = values / prime
    np.floor(quotients, out=quotients)
    quotients *= prime
    values -= quotients
