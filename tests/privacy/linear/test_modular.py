from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.privacy.linear.modular import MODULUS, PRIMES, TERMS_MAX, modular_rank, reduced, residue


def exact_rank(matrix: Any) -> int:
    rows = [[Fraction(int(value)) for value in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0]) if rows else 0):
        at = next((row for row in range(rank, len(rows)) if rows[row][column]), None)
        if at is None:
            continue
        rows[rank], rows[at] = rows[at], rows[rank]
        for row in range(rank + 1, len(rows)):
            factor = rows[row][column] / rows[rank][column]
            rows[row] = [one - factor * other for one, other in zip(rows[row], rows[rank], strict=True)]
        rank += 1
    return rank


def test_the_primes_are_primes_whose_products_add_up_exactly() -> None:
    assert all(prime % divisor for prime in PRIMES for divisor in range(2, 1025))
    assert len(set(PRIMES)) == 3
    assert max(PRIMES) ** 2 * TERMS_MAX <= 2**53
    assert MODULUS < 2**63


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 12), st.integers(0, 2**32), st.sampled_from(PRIMES))
def test_small_matrices_have_their_rational_rank(rows: int, columns: int, rank: int, seed: int, prime: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.integers(-3, 4, (rows, rank)) @ random.integers(-3, 4, (rank, columns))
    assert modular_rank(matrix % prime, prime) == exact_rank(matrix)


@pytest.mark.parametrize(("rows", "columns", "rank"), [(100, 140, 57), (140, 90, 90), (70, 70, 33), (65, 200, 64)])
def test_blocks_fit_together(rows: int, columns: int, rank: int) -> None:
    random, prime = np.random.default_rng(1), PRIMES[0]
    left, right = random.integers(0, prime, (rows, rank)), random.integers(0, prime, (rank, columns))
    product = (left.astype(object) @ right.astype(object)) % prime
    assert modular_rank(product.astype(np.float64), prime) == rank


def test_nothing_has_rank_zero() -> None:
    assert modular_rank(np.zeros((3, 4)), PRIMES[0]) == modular_rank(np.zeros((0, 4)), PRIMES[0]) == 0
    assert modular_rank(np.zeros((40, 0)), PRIMES[0]) == 0


def test_the_largest_entries_do_not_overflow() -> None:
    prime = PRIMES[0]
    assert modular_rank(np.full((200, 200), prime - 1.0), prime) == 1
    assert modular_rank(np.full((200, 200), prime - 1.0) - np.eye(200), prime) == 200


def test_reduced_is_the_remainder() -> None:
    values = np.array([0.0, 1.0, 2.0**53 - 1.0, PRIMES[1] * 5.0, PRIMES[1] - 1.0])
    assert reduced(values, PRIMES[1]).tolist() == [int(value) % PRIMES[1] for value in values.tolist()]


@given(st.integers(1, 4096), st.integers(-4096, 4096))
def test_a_rounded_fraction_stands_for_itself(denominator: int, numerator: int) -> None:
    assert residue(numerator / denominator) * denominator % MODULUS == numerator % MODULUS


@given(st.floats(0.1, 3.0))
def test_any_other_float_is_the_dyadic_number_it_is(value: float) -> None:
    exact = Fraction(value)
    near = exact.limit_denominator(4096)
    if abs(near - exact) > Fraction(1, 2**45):
        assert residue(value) * exact.denominator % MODULUS == exact.numerator % MODULUS


def test_fractions_add_up_where_floats_do_not() -> None:
    assert 0.1 + 0.2 != 0.3
    assert (residue(0.1) + residue(0.2)) % MODULUS == residue(0.3)
    assert (residue(1 / 3) + residue(1 / 7) + residue(11 / 21)) % MODULUS == 1
