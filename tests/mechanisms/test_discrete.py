"""Integer noise and categories against their laws and against other arithmetic; each test errs below 1e-7."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from p2pdp.mechanisms import discrete
from tests.support.slow_draws import BITS, SlowNoise

P_MIN = 1e-7
POWERS = pytest.mark.parametrize("power", [1, 2])


class Record:
    """Bytes of a generator with a fixed seed, of which a record is kept."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.data = b""

    def __call__(self, size: int) -> bytes:
        self.data += self.generator.bytes(size)
        return self.data[-size:]


class Words:
    """Bytes that are given word by word."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def __call__(self, size: int) -> bytes:
        taken, self.left = self.left[: size // 8], self.left[size // 8 :]
        assert 8 * len(taken) == size
        return b"".join(word.to_bytes(8, "little") for word in taken)


def density(power: int, scale: float, values: np.ndarray) -> np.ndarray:
    far = np.abs(values) / scale
    return np.asarray(np.exp(-(far**2) / 2 if power == 2 else -far))


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.3, 63.9, 64.0, 300.7])
@POWERS
def test_whole_numbers_have_their_chances(power: int, scale: float) -> None:
    count = 10**5
    draws = discrete.noise(power, scale).drawn(count, os.urandom)
    end = round(60 * scale) + 3
    values = np.arange(-end, end + 1)
    chances = density(power, scale, values)
    expected = count * chances / chances.sum()
    cells = np.cumsum(expected) // max(10.0, count / 1000)  # neighbours in one cell, until enough is expected there
    _, cells = np.unique(cells, return_inverse=True)
    tallies = np.bincount(cells[np.clip(draws, -end, end) + end], minlength=cells.max() + 1)
    together = np.bincount(cells, expected)
    assert stats.chisquare(tallies, together * count / together.sum()).pvalue > P_MIN


@pytest.mark.parametrize(
    "scale", [2.0**-10, 0.3, 1.0, 5.5, 63.99, 64.0, 1000.0, 2.0**24, 1.1e7, 2.0**38, 2.0**39, 1.7e15, 2.0**56]
)
@POWERS
def test_draws_are_those_of_exact_arithmetic(power: int, scale: float) -> None:
    law, slow = discrete.noise(power, scale), SlowNoise(power, scale)
    assert law.sizes[:-1] == slow.sizes
    for seed in range(3):
        record = Record(seed)
        draws = law.drawn(60, record)
        assert (draws.tolist(), len(record.data)) == slow.drawn(60, law.spare, record.data)


def crafted(slow: SlowNoise, generator: np.random.Generator, count: int) -> tuple[list[int], list[int], list[int]]:
    """Words, places and further words of proposals in which U comes as near to bounds as it can."""
    words, places, more = [], [], []
    for _ in range(count):
        step, sign = int(generator.integers(slow.tail + (generator.random() < 0.5))), int(generator.integers(2))
        place = int(generator.integers(slow.width)) if generator.random() < 0.8 else slow.width - 1
        edges = [0, 2**slow.bits]
        digits = 0
        if step < slow.tail:
            first, last = (step, step + 1) if slow.place_bits else (step + sign, step + sign)
            edges += [slow.chance(step, edge * slow.width)[0] >> BITS - slow.bits for edge in (first, last)]
            digits = slow.chance(step, step * slow.width + place + sign)[0] >> BITS - slow.bits - 64
        known = digits >> 64 if generator.random() < 0.7 else edges[generator.integers(len(edges))]
        known = min(max(known + int(generator.integers(-1, 2)) * (generator.random() < 0.3), 0), 2**slow.bits - 1)
        slot = sum(slow.sizes[:step]) + int(generator.integers(1 if step == slow.tail else slow.sizes[step]))
        in_word = slow.place_bits <= 32
        rest = known << slow.place_bits | place if in_word else known
        words.append(slot + (sign << 14) + (rest << 15))
        places.append(0 if in_word else place + (int(generator.integers(2**7)) << 57))
        if slow.verdict(step, sign, known) is None:
            shift = int(
                generator.choice([0, 0, 1, -1, 2**20, -(2**20), 2 ** (slow.bits + 24), -(2 ** (slow.bits + 24))])
            )
            more.append((digits + shift) % 2**64)
    return words, places, more


@pytest.mark.parametrize("scale", [2.0**-10, 1.5, 64.0, 2.0**24, 1.1e7, 2.0**38, 2.0**39, 2.0**56])
@POWERS
def test_what_is_nearest_to_bounds_is_decided_by_exact_arithmetic(power: int, scale: float) -> None:
    law, slow, generator = discrete.noise(power, scale), SlowNoise(power, scale), np.random.default_rng(1)
    words, places, more = crafted(slow, generator, 200)
    further = [int(word) for word in generator.integers(2**64, size=1000, dtype=np.uint64)]
    stream = Words(*words, *(places if slow.place_bits > 32 else []), *more, *further)
    rest = iter([*more, *further])
    expected = slow.accepted(words, places, lambda: next(rest))
    assert law._accepted(len(words), stream).tolist() == expected
    assert stream.left == list(rest)
    assert 20 < len(expected) < 180


@pytest.mark.parametrize("scale", [64.0, 100.1, 2.0**24, 1.1e7, 1.99 * 2.0**30, 2.0**56])
@POWERS
def test_floats_are_as_near_as_is_said(power: int, scale: float) -> None:
    law, slow, generator = discrete.noise(power, scale), SlowNoise(power, scale), np.random.default_rng(2)
    steps = np.concatenate([generator.integers(slow.tail, size=300), [0, slow.tail - 1]])
    values = steps * slow.width + generator.integers(slow.width + 1, size=len(steps))
    chances, near = law.chances(steps, values)
    assert near.mean() > 0.9
    for step, value, chance in zip(steps[near].tolist(), values[near].tolist(), chances[near].tolist(), strict=True):
        low, high = slow.chance(step, value)
        assert (
            Fraction(low, 2**BITS) - Fraction(2) ** -44
            < Fraction(chance)
            < Fraction(high, 2**BITS) + Fraction(2) ** -44
        )


@pytest.mark.parametrize("scale", [0.7, 63.0, 2.0**24, 3.3e15])
@POWERS
def test_bounds_of_a_step_are_those_of_ball_arithmetic(power: int, scale: float) -> None:
    law = discrete.noise(power, scale)
    width, slope = 2**law.place_bits, fmpq(*scale.as_integer_ratio())
    ctx.prec = 400
    for row in range(2 * (len(law.sizes) - 1)):
        step, sign = divmod(row, 2)
        first, last = (step, step + 1) if law.place_bits else (step + sign, step + sign)
        edges = [
            arb(fmpq(law.factor, law.sizes[step] << 32)) * (-(arb(fmpq(place) / slope) ** power) / power).exp()
            for place in (last * width, first * width)
        ]
        least, most = ((edge * 2**law.bits) for edge in edges)
        assert int(law.floor[row]) == int(least.floor().unique_fmpz())
        assert int(law.ceiling[row]) == int(most.ceil().unique_fmpz())
        assert most <= 2**law.bits


@settings(deadline=None)
@given(
    st.one_of(st.integers(1, 2**40), st.integers(1, 2**2000)),
    st.one_of(st.integers(1, 2**40), st.integers(1, 2**2000)),
    st.integers(1, 700),
)
def test_enclosures_of_exp(numerator: int, denominator: int, bits: int) -> None:
    lower, upper = discrete.exp_bounds(numerator, denominator, bits)
    ctx.prec = 3000
    exact = (-arb(fmpq(numerator, denominator))).exp() * arb(2) ** bits
    assert lower <= exact <= upper
    assert 0 <= lower <= upper <= lower + 2


def test_the_decision_takes_as_many_bits_as_it_needs() -> None:
    low, _ = SlowNoise(2, 3.0).chance(0, 2)
    sizes, factor = SlowNoise(2, 3.0).sizes, SlowNoise(2, 3.0).factor
    digits = [low >> BITS - 64 * (place + 1) & 2**64 - 1 for place in range(5)]
    ratio = factor.numerator, factor.denominator * sizes[0]
    for last, verdict in ((-1, True), (1, False)):
        read = Words(*digits[1:4], digits[4] + last, 5)
        assert discrete.below(*ratio, 4, 18, digits[0], 64, read) is verdict
        assert read.left == [5]
    assert discrete.below(1, 1, 1000, 1, 0, 0, Words(*[0] * 22, 2**42)) is False  # exp(-1000) is 2^-1442.7


def test_a_probability_of_fractions_is_exact() -> None:
    assert discrete.below(1, 3, 0, 1, 0, 0, Words(2**64 // 3, 2**64 // 3, 2**64 // 3 - 1))
    assert not discrete.below(1, 2, 0, 1, 2**63, 64, Words())
    assert discrete.below(1, 2, 0, 1, 2**63 - 1, 64, Words())


def test_uniform_numbers_are_those_below_the_last_whole_multiple() -> None:
    third = 3 * 2**61
    read = Words(5, 2 * third, 2**64 - 1, third, 2 * third + 1, 2 * third - 1, 7)
    assert discrete.uniform(read, third, 4).tolist() == [5, 7, third - 1, 0]
    assert read.left == []
    assert discrete.uniform(Words(2**64 - 1, 2**63), 2**63, 2).tolist() == [2**63 - 1, 0]
    assert discrete.uniform(Words(2**64 - 1), 1, 1).tolist() == [0]


def test_the_truth_is_replaced_with_the_probability_of_the_fraction() -> None:
    gamma = 1e-10
    numerator, denominator = gamma.as_integer_ratio()
    first, rest = divmod(numerator << 64, denominator)
    second, none = divmod(rest << 64, denominator)
    assert rest > 0
    assert none == 0
    read = Words(first - 1, first, first, first + 1, 2**64 - 1, second - 1, second, 4, 3)
    assert discrete.randomized(read, gamma, 3, 5).tolist() == [1, 0, -1, -1, -1]
    assert read.left == []
    assert discrete.randomized(Words(2**63 - 1, 2**63, 9), 0.5, 4, 2).tolist() == [1, -1]
    assert discrete.randomized(Words(2**64 - 1, 2**64 - 2), 1.0, 4, 2).tolist() == [3, 2]


def test_tallies_have_all_elements_of_their_own() -> None:
    elements, count = 40_000, 5
    found = discrete.tallies(Record(1), elements, 3, count).reshape(count, 3)
    numbers = discrete.uniform(Record(1), 3, elements * count).reshape(count, elements)
    assert found.tolist() == [np.bincount(row).tolist() for row in numbers]


@pytest.mark.parametrize("scale", [50.0, 1000.0])
@POWERS
def test_the_tail_goes_on_as_the_law_does(power: int, scale: float) -> None:
    law, count = discrete.noise(power, scale), 8000
    start = (len(law.sizes) - 1) << law.place_bits
    proposals = [law._of_tail(index % 2 == 0, os.urandom) for index in range(count)]
    values = np.array([-1 - value if value < 0 else value for accepted, value in proposals if accepted])
    assert len(values) > count / 40
    negative = np.array([value < 0 for accepted, value in proposals if accepted])
    for side in (False, True):
        places = start + np.arange(round(30 * scale) + 8)
        chances = density(power, scale, places + side)
        cells = np.floor(np.cumsum(chances) / chances.sum() * (1 - 1e-12) * 8).astype(int)
        _, cells = np.unique(cells, return_inverse=True)
        some = values[negative == side]
        tallies = np.bincount(cells[some - start], minlength=cells.max() + 1)
        expected = np.bincount(cells, chances) * len(some) / chances.sum()
        assert len(expected) > 6
        assert stats.chisquare(tallies, expected).pvalue > P_MIN


@POWERS
def test_what_does_not_fit_an_int64_is_not_proposed(power: int) -> None:
    law = discrete.noise(power, 2.0**56)
    start = len(law.sizes) - 1 << law.place_bits
    last_piece, place = divmod(2**63 - 1 - start, 2**57)
    read = Words(2 ** (63 - last_piece), place + 1)
    assert law._of_tail(True, read) == (False, 0)
    assert read.left == [], "and U is not looked at"
    for far in (Words(0, 0, 2**63, 1), Words(1, 2**57 - 1)):
        assert law._of_tail(False, far) == (False, 0)
    assert law._of_tail(True, Words(2 ** (63 - last_piece), place, 1))[1] == -(2**63)


def distribution(power: int, scale: float, ends: np.ndarray) -> np.ndarray:
    """The chances of values up to these ends; at large scales sums are integrals but for some 2^-40."""
    if power == 2 and scale > 2**20:
        return np.asarray(stats.norm.cdf((ends + 0.5) / scale))
    if power == 1:
        ratio = math.exp(-1 / scale)
        far = np.where(ends < 0, -ends, ends + 1.0)
        tail = np.exp(-far / scale) / (1 + ratio)
        return np.asarray(np.where(ends < 0, tail, 1 - tail))
    end = round(40 * scale) + 3
    sums = np.cumsum(density(power, scale, np.arange(-end, end + 1)))
    return np.asarray((sums / sums[-1])[np.clip(ends.astype(np.int64), -end - 1, end) + end])


def edges_of(power: int, scale: float, count: int) -> np.ndarray:
    """Ends of cells: many of them alike, and ever rarer ones outwards; each is expected 10 times at least."""
    law = stats.norm if power == 2 else stats.laplace
    rare = np.array([30 / count * 2.0**index for index in range(40) if 30 / count * 2.0**index < 0.002])
    shares = np.concatenate([rare, np.linspace(0.002, 0.998, 400), 1 - rare[::-1]])
    ends = np.unique(np.floor(law.ppf(shares) * scale))
    chances = np.diff(distribution(power, scale, ends), prepend=0.0)
    while (few := np.flatnonzero(chances * count < 10)).size:
        ends = np.delete(ends, few[0] if few[0] < len(ends) - 1 else few[0] - 1)
        chances = np.diff(distribution(power, scale, ends), prepend=0.0)
    return np.asarray(ends)


@pytest.mark.parametrize("scale", [2.0**-10, 0.4, 3.0, 63.5, 64.0, 1234.5, 2.0**24, 1.1e7, 2.0**30, 2.0**45, 2.0**56])
@POWERS
def test_ten_million_draws_have_their_chances(power: int, scale: float) -> None:
    count = 10**7
    draws = discrete.noise(power, scale).drawn(count, os.urandom)
    if scale < 0.01:
        assert np.all(draws == 0)
        return
    ends = edges_of(power, scale, count)
    assert len(ends) >= 2
    tallies = np.bincount(np.searchsorted(ends, draws), minlength=len(ends) + 1)
    chances = np.diff(distribution(power, scale, ends), prepend=0.0, append=1.0)
    assert chances.min() * count > 9
    assert stats.chisquare(tallies, chances / chances.sum() * count).pvalue > P_MIN


@pytest.mark.parametrize("scale", [2.0**24, 1.1e7, 2.0**45])
def test_places_in_a_step_are_alike(scale: float) -> None:
    law = discrete.noise(2, scale)
    places = law.drawn(10**7, os.urandom) & 2**law.place_bits - 1
    for shift in (0, law.place_bits - 8):
        tallies = np.bincount(places >> shift & 255, minlength=256)
        assert stats.chisquare(tallies).pvalue > P_MIN


@pytest.mark.parametrize("scale", [1.7, 2.0**24])
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_opendp_draws_the_same_law(name: str, scale: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain, count = dp.vector_domain(dp.atom_domain(T="i64")), 500_000
    make, metric = (dp.m.make_gaussian, dp.l2_distance) if name == "gaussian" else (dp.m.make_laplace, dp.l1_distance)
    theirs = np.array(make(domain, metric(T="i64"), scale=scale)(np.zeros(count, dtype=np.int64)))
    ours = discrete.noise(2 if name == "gaussian" else 1, scale).drawn(count, os.urandom)
    both = np.sort(np.concatenate([theirs, ours]))
    ends = np.unique(both[:: count // 100])
    tables = np.array([np.bincount(np.searchsorted(ends, some), minlength=len(ends) + 1) for some in (theirs, ours)])
    tables = tables[:, tables.sum(axis=0) > 20]
    assert stats.chi2_contingency(tables).pvalue > P_MIN
