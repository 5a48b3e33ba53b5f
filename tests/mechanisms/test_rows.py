from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import ROWS, Mechanism
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rows import chosen, drawn, mechanism_of, packed
from p2pdp.mechanisms.sampler import ExactSampler, SeededSampler, StreamSampler


@given(st.integers(1, 300), st.integers(0, 10**6))
def test_bits_come_back_as_places(rows: int, seed: int) -> None:
    bits = np.random.default_rng(seed).random((3, rows)) < 0.4
    words = packed(bits)
    assert words.shape == (3, -(-rows // 64))
    for word, bit in zip(words, bits, strict=True):
        assert chosen(word, rows).tolist() == np.flatnonzero(bit).tolist()


@pytest.mark.parametrize("share", [0.5, 0.3, 1e-3, 2.0**-30, 1e-17, math.nextafter(1.0, 0.0)])
def test_a_row_enters_for_the_words_below_its_share_and_no_others(share: float) -> None:
    """The chance is that of the float, or the next multiple of 2^-64 above it."""
    threshold = math.ceil(Fraction(share) * 2**64)
    assert 0 <= Fraction(threshold, 2**64) - Fraction(share) < Fraction(1, 2**64)
    for word, enters in ((0, True), (threshold - 1, True), (threshold, False), (2**64 - 1, False)):
        mechanism, shape = mechanism_of(share, 1)
        found = drawn(lambda size, word=word: word.to_bytes(size, "little"), mechanism, 1)
        assert (found.shape, bool(found[0, 0])) == ((1, *shape), enters)


@pytest.mark.parametrize("sampler", [ExactSampler(), SeededSampler(3, "x"), StreamSampler(bytes(32))])
def test_every_sampler_draws_rows_with_their_share(sampler: ExactSampler) -> None:
    mechanism, shape = mechanism_of(0.3, 200)
    draws = sampler.batch(mechanism, shape, 500)
    assert {(draw.shape, draw.dtype) for draw in draws} == {((4,), np.dtype(np.int64))}
    taken = np.array([np.bincount(chosen(draw, 200), minlength=200) for draw in draws])
    assert abs(taken.mean() - 0.3) < 5.5 * math.sqrt(0.21 / taken.size)  # a chance of 4e-8
    assert np.abs(taken.mean(axis=0) - 0.3).max() < 6.5 * math.sqrt(0.21 / 500)
    assert np.abs(np.corrcoef(taken[:, :5].T) - np.eye(5)).max() < 6.5 / math.sqrt(500)
    assert all(int(draw[3]) >> 8 == 0 for draw in draws), "no bits beyond the last row"


@pytest.mark.parametrize(
    ("mechanism", "shape"),
    [
        (Mechanism(ROWS, 1.5, 10), (1,)),
        (Mechanism(ROWS, 0.0, 10), (1,)),
        (Mechanism(ROWS, 0.5, 0), (1,)),
        (Mechanism(ROWS, 0.5, 10), (2,)),
        (Mechanism(ROWS, 0.5, 65), (1,)),
    ],
)
def test_what_is_no_draw_of_rows_is_refused(mechanism: Mechanism, shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError):
        ExactSampler().batch(mechanism, shape, 1)


def test_all_rows_enter_where_their_share_is_1() -> None:
    mechanism, shape = mechanism_of(1.0, 70)
    assert chosen(ExactSampler().batch(mechanism, shape, 1)[0], 70).tolist() == list(range(70))
