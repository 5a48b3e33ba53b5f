"""The law of dithers, by tables, by exact convolution of small ones, and by what is drawn."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
import pytest
from scipy import special, stats

from p2pdp.mechanisms import dither
from p2pdp.mechanisms.dither import SCALE, unfolded
from tests.support.chacha import chacha20

SEED = np.array([3, -1, 4, 1], dtype=np.int64)


def discrete_gaussian(variance: float, end: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-end, end + 1) ** 2) / (2.0 * variance))
    return np.asarray(weights / weights.sum())


def test_the_stream_is_the_cipher_of_the_rfc() -> None:
    key = bytes(range(32))
    for counter, purpose in ((0, 1), (2**40 + 5, 3)):
        nonce = purpose.to_bytes(4, "little") + counter.to_bytes(8, "little")
        assert dither._stream(key, counter, purpose, 300) == chacha20(key, nonce=nonce, size=300)


def test_known_answers() -> None:
    """On every machine: another answer would make a restarted node send other noise than before."""
    assert unfolded(np.arange(4), 0, 6).tolist() == [-2577472, -4569777, 5884680, -1165305, -353871, 965439]
    assert unfolded(np.arange(4), 2**33, 3).tolist() == [-6978061, 2896779, -1837080]


def test_the_table_is_the_distribution_function() -> None:
    ends = np.array([0, *dither._table(256).thresholds, 2**dither._BITS], dtype=object)
    found = np.array((ends[1:] - ends[:-1]) / 2**dither._BITS, dtype=float)
    expected = discrete_gaussian(256.0**2, dither._END)
    near = expected > 1e-30
    assert near.sum() > 22 * 128
    np.testing.assert_allclose(found[near], expected[near], rtol=1e-12)
    assert found.min() >= 0.0


def test_cells_name_the_value_that_the_whole_number_would_give() -> None:
    table = dither._table(256)
    width = dither._BITS - 16
    for cell in (*range(300), *range(30_000, 33_000), *range(65_300, 65_536)):
        first, last = (bisect_right(table.thresholds, bits) for bits in (cell << width, ((cell + 1) << width) - 1))
        value = int(table.cells[cell])
        if value == dither._OPEN:
            assert bisect_right(table.thresholds, (cell << width) - 1) < last
        else:
            assert first == last == value + dither._END


def test_open_cells_are_decided_as_all_200_bits_say() -> None:
    table, key = dither._table(256), b"k" * 32
    opened = np.flatnonzero(table.cells == dither._OPEN)
    assert len(opened) > 1000
    values = dither._decided(table, key, 7, opened.astype(np.uint16))
    more = np.frombuffer(chacha20(key, nonce=b"\2\0\0\0\7" + bytes(7), size=8 * len(opened)), dtype="<u8")
    for cell, bits, value in zip(opened.tolist(), more.tolist(), values.tolist(), strict=True):
        head = (cell << 48 | bits >> 16) << 136
        low, high = (bisect_right(table.thresholds, head + rest) for rest in (0, 2**136 - 1))
        assert low <= value + dither._END <= high


def test_where_64_bits_are_those_of_a_threshold_200_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that hit a threshold, one below it, and the first of all bits, where several have the same 64 bits."""
    table = dither._table(256)
    threshold = table.thresholds[dither._END + 3]
    for uniform in (threshold, threshold - 1, 0, table.thresholds[0], 2**200 - 1):
        rest, cell = uniform % 2**136, uniform >> 184
        told = {2: ((uniform >> 136) % 2**48 << 16).to_bytes(8, "little"), 3: rest.to_bytes(17, "little")}
        monkeypatch.setattr(dither, "_stream", lambda key, counter, purpose, size, told=told: told[purpose])
        (value,) = dither._decided(table, b"", 0, np.array([cell], dtype=np.uint16))
        assert value + dither._END == bisect_right(table.thresholds, uniform)


def test_three_levels_make_a_discrete_gaussian() -> None:
    """The same with deviation 16 and stride 8, where all can be added up: off by less than floats can tell."""
    level = discrete_gaussian(16.0**2, 16 * 12)
    wide, middle = np.zeros(64 * (len(level) - 1) + 1), np.zeros(8 * (len(level) - 1) + 1)
    wide[::64], middle[::8] = level, level
    found = np.convolve(np.convolve(wide, middle), level)
    expected = discrete_gaussian(16.0**2 * (64**2 + 8**2 + 1), len(found) // 2)
    near = expected > 1e-13
    assert near.sum() > 10_000
    np.testing.assert_allclose(found[near], expected[near], rtol=1e-11)
    assert pytest.approx(dither._STRIDE**4 + dither._STRIDE**2 + 1) == (SCALE / 256) ** 2


@pytest.mark.parametrize("deviation", [2.0, 4.0, 8.0])
def test_it_is_a_rounded_normal_variable_but_for_what_is_said(deviation: float) -> None:
    variance, end = deviation**2, round(8 * deviation)
    places = np.arange(-end, 1)
    sigma = math.sqrt(variance - 1 / 12)
    rounded = special.ndtr((places + 0.5) / sigma) - special.ndtr((places - 0.5) / sigma)
    off = np.log(rounded / discrete_gaussian(variance, round(40 * deviation))[round(40 * deviation) + places])
    said = ((places / deviation) ** 4 / 2880 + (places / deviation) ** 2 / 200 + 0.01) / variance**2
    assert np.all(np.abs(off) <= said + 1e-12)


def test_what_is_drawn_is_normal_to_the_last_bits() -> None:
    found = unfolded(SEED, 0, 200_000)
    assert found.dtype == np.int32
    assert stats.kstest(found / SCALE, "norm").pvalue > 1e-7
    for modulus in (2, 64, 128, 1000):
        counts = np.bincount(found % modulus, minlength=modulus)
        assert stats.chisquare(counts).pvalue > 1e-7
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.02


def test_a_seed_and_a_counter_give_the_same_again_and_nothing_else_does() -> None:
    first = unfolded(SEED, 5, 100)
    np.testing.assert_array_equal(first, unfolded(SEED.tolist(), 5, 100))
    assert not set(first.tolist()) & set(unfolded(SEED, 6, 100).tolist())
    assert not set(first.tolist()) & set(unfolded(SEED + 1, 5, 100).tolist())
