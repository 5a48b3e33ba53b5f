"""Each sampler against the exact distribution it promises; thresholds leave an error below 1e-7 a test."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from p2pdp.core.draws import Mechanism, Sampler
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import discrete
from p2pdp.mechanisms import sampler as sampler_module
from p2pdp.mechanisms.sampler import (
    SCALE_MAX,
    ExactSampler,
    FastSampler,
    SeededSampler,
    StreamSampler,
    _key_stream,
)
from tests.support.chacha import chacha20
from tests.support.slow_draws import SlowNoise

if TYPE_CHECKING:
    from collections.abc import Callable

P_MIN = 1e-7
LARGE = 2.0**20
SMALL = 3.0

MAKERS: dict[str, Callable[[], Sampler]] = {
    "exact": ExactSampler,
    "fast": FastSampler,
    "seeded": lambda: SeededSampler(11, "test"),
    "stream": lambda: StreamSampler(bytes(range(32))),
}


@pytest.fixture(params=sorted(MAKERS))
def sampler(request: pytest.FixtureRequest) -> Sampler:
    return MAKERS[request.param]()


def chi_square_p(observed: Any, chances: Any) -> float:
    """The p-value of a tally against the chances of its outcomes, scaled to the same total."""
    observed, chances = np.asarray(observed, dtype=float), np.asarray(chances, dtype=float)
    return float(stats.chisquare(observed, chances * observed.sum() / chances.sum()).pvalue)


def chances_of_steps(name: str, exact: bool, steps: np.ndarray) -> np.ndarray:
    """The discrete distribution itself for the exact sampler, the rounded continuous one for the others."""
    if not exact:
        law = stats.norm(scale=SMALL) if name == "gaussian" else stats.laplace(scale=SMALL)
        return np.asarray(law.cdf(steps + 0.5) - law.cdf(steps - 0.5))
    weights = np.exp(-(steps**2) / (2 * SMALL**2)) if name == "gaussian" else np.exp(-np.abs(steps) / SMALL)
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_many_draws_at_a_large_scale(sampler: Sampler, name: str) -> None:
    count = 300_000
    draws = np.array(sampler.batch(Mechanism(name, LARGE), (), count)) / LARGE
    law, variance, spread = (stats.norm, 1.0, 2.0) if name == "gaussian" else (stats.laplace, 2.0, 5.0)
    assert stats.kstest(draws, law.cdf).pvalue > P_MIN
    assert abs(draws.mean()) < 6 * math.sqrt(variance / count)
    assert abs(draws.var() / variance - 1) < 6 * math.sqrt(spread / count)
    neighbours = np.mean(draws[1:] * draws[:-1]) / variance
    assert abs(neighbours) < 6 / math.sqrt(count)


def small_scale_p(sampler: Sampler, name: str, scale: float) -> float:
    """How well draws at this scale fit the chances of the scale SMALL; rare steps are pooled at both ends."""
    count = 10**5
    steps = np.arange(-400, 401)
    chances = chances_of_steps(name, sampler.name in ("exact", "stream"), steps)
    draws = np.array(sampler.batch(Mechanism(name, scale), (), count))
    common = steps[chances * count >= 10]
    low, high = common[0], common[-1]
    tallies = np.bincount(np.clip(draws, low, high) - low, minlength=len(common))
    expected = chances[(steps >= low) & (steps <= high)].copy()
    expected[0] += chances[steps < low].sum()
    expected[-1] += chances[steps > high].sum()
    return chi_square_p(tallies, expected)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_whole_steps_at_a_small_scale(sampler: Sampler, name: str) -> None:
    assert small_scale_p(sampler, name, SMALL) > P_MIN


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_a_scale_that_is_a_twentieth_off_is_noticed(sampler: Sampler, name: str) -> None:
    assert small_scale_p(sampler, name, SMALL * 1.05) < P_MIN


@pytest.mark.parametrize(("gamma", "categories"), [(0.3, 5), (1.0, 2), (0.001, 3)])
def test_randomized_response_keeps_the_truth_or_is_uniform(sampler: Sampler, gamma: float, categories: int) -> None:
    count = 10**6 if gamma == 0.3 else 10**5
    draws = np.array(sampler.batch(Mechanism("randomized_response", gamma, categories), (), count))
    tallies = np.bincount(draws + 1, minlength=categories + 1)
    assert len(tallies) == categories + 1
    if gamma == 1.0:
        assert tallies[0] == 0
        tallies = tallies[1:]
        chances = [1 / categories] * categories
    else:
        chances = [1 - gamma] + [gamma / categories] * categories
    assert chi_square_p(tallies, chances) > P_MIN


def test_each_of_uniform_bits_is_a_fair_coin(sampler: Sampler) -> None:
    count = 4096
    words = np.array(sampler.batch(Mechanism("uniform_bits", 1.0), (4,), count)).astype(np.uint64)
    bits = (words[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.all(np.abs(bits.sum(axis=0).astype(float) - count / 2) < 6.5 * math.sqrt(count) / 2)


def test_uniform_counts_are_multinomial(sampler: Sampler) -> None:
    elements, categories, count = 100, 4, 10**4
    draws = np.array(sampler.batch(Mechanism("uniform_counts", elements, categories), (categories,), count))
    assert np.all(draws.sum(axis=1) == elements)
    assert chi_square_p(draws.sum(axis=0), [1 / categories] * categories) > P_MIN
    for column in draws.T:
        law = stats.binom(elements, 1 / categories)
        tallies = np.bincount(np.clip(column, 14, 36) - 14, minlength=23)
        chances = law.pmf(np.arange(14, 37))
        chances[0], chances[-1] = law.cdf(14), law.sf(35)
        assert chi_square_p(tallies, chances) > P_MIN


@pytest.mark.parametrize(("name", "power"), [("gaussian", 2), ("laplace", 1)])
@pytest.mark.parametrize("scale", [0.75, 3.0, 2.0**24, 2.0**40 + 1])
def test_a_stream_gives_what_exact_arithmetic_makes_of_the_cipher(name: str, power: int, scale: float) -> None:
    key = bytes(range(100, 132))
    mechanism, law = Mechanism(name, scale), discrete.noise(power, scale)
    expected, size = SlowNoise(power, scale).drawn(42, law.spare, chacha20(key, nonce=bytes(12), size=4096))
    stream = StreamSampler(key)
    assert np.array(stream.batch(mechanism, (7,), 6)).ravel().tolist() == expected
    (word,) = stream.batch(Mechanism("uniform_bits", 1.0), (), 1)
    assert word.to_bytes(8, "little", signed=True) == chacha20(key, nonce=bytes(12), size=4096)[size : size + 8]


def test_known_answers_of_a_stream() -> None:
    """On every machine and with every release of numpy: users who differ here would not cancel each other's noise."""

    def drawn(mechanism: Mechanism, count: int, shape: tuple[int, ...] = ()) -> list[Any]:
        return StreamSampler(bytes(range(32))).batch(mechanism, shape, count)

    assert drawn(Mechanism("gaussian", 2.0**24), 4) == [-34273880, 35188231, 23650224, -4233468]
    assert drawn(Mechanism("gaussian", 1e15), 3) == [-2076577626858284, 2137701489774143, 1415835603534373]
    assert drawn(Mechanism("gaussian", 2.5), 8) == [-6, 5, 3, -1, 2, 0, 0, 2]
    assert drawn(Mechanism("laplace", 2.0**24), 4) == [-56818264, 59305479, 30990256, -3184892]
    assert drawn(Mechanism("randomized_response", 0.5, 5), 8) == [1, 4, -1, -1, -1, 4, 3, 4]
    assert drawn(Mechanism("uniform_bits", 1.0), 2) == [7645359380336737593, 5281276197874154893]
    assert [row.tolist() for row in drawn(Mechanism("uniform_counts", 100.0, 3), 2, (3,))] == [
        [32, 29, 39],
        [29, 37, 34],
    ]
    choices = [StreamSampler(bytes(range(32))).choice(options) for options in (10, 2**63 - 1)]
    assert choices == [3, 7645359380336737593]


def test_an_exact_choice_draws_words_again_that_would_favour_some_options(monkeypatch: pytest.MonkeyPatch) -> None:
    words = iter([2**64 - 1, 2**64 - 6, 2**64 - 7, 2**63, 2**63 - 2, 5, 2**64 - 1])
    monkeypatch.setattr(os, "urandom", lambda size: next(words).to_bytes(size, "little"))
    choice = ExactSampler().choice
    assert 2**64 % 10 == 6
    assert choice(10) == 9, "the last word that fits"
    assert (choice(2**63 - 1), choice(2**63 - 1)) == (1, 2**63 - 2)
    assert choice(1) == 0
    assert choice(2) == 1
    assert next(words, None) is None


def test_a_stream_is_the_same_however_it_is_split() -> None:
    key = bytes(range(32))
    whole = _key_stream(key)(300)
    for at in range(301):
        read = _key_stream(key)
        assert read(at) + read(300 - at) == whole


def test_streams_of_other_keys_are_others_and_no_key_is_shown() -> None:
    keys = [bytes(32), bytes(31) + b"\1", b"\1" + bytes(31)]
    drawn = [tuple(StreamSampler(key).batch(Mechanism("gaussian", 2.0**40), (), 4)) for key in keys]
    assert len({value for values in drawn for value in values}) == 12
    assert repr(StreamSampler(b"k" * 32)) == "StreamSampler()"
    for size in (0, 16, 31, 33):
        with pytest.raises(UsageError):
            StreamSampler(bytes(size))


def test_a_fork_shares_no_noise() -> None:
    sampler, mechanism = ExactSampler(), Mechanism("gaussian", 2.0**50)
    sampler.batch(mechanism, (), 3)
    seen = []
    for _ in range(2):
        source, target = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(target, np.array(sampler.batch(mechanism, (), 8)).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        seen += np.frombuffer(os.read(source, 64), dtype=np.int64).tolist()
        os.close(source)
        os.close(target)
    seen += sampler.batch(mechanism, (), 8)
    assert len(set(seen)) == 24


def test_what_is_to_fork_has_its_table_beforehand() -> None:
    mechanism = Mechanism("gaussian", 12345.625)
    sampler_module.warm(mechanism)
    built = discrete.noise.cache_info().misses
    ExactSampler().batch(mechanism, (3,), 2)
    assert discrete.noise.cache_info().misses == built


def test_the_largest_scale_stays_inside_int64(sampler: Sampler) -> None:
    for name in ("gaussian", "laplace"):
        draws = np.array(sampler.batch(Mechanism(name, SCALE_MAX), (), 1000), dtype=object)
        assert np.abs(draws).max() < 2**62
        with pytest.raises(UsageError, match="coarser grid"):
            sampler.batch(Mechanism(name, math.nextafter(SCALE_MAX, math.inf)), (), 1)


def test_the_exact_sampler_holds_no_random_state() -> None:
    assert vars(ExactSampler()) == {}


def test_the_fast_sampler_refuses_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = FastSampler()
    other = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: other)
    with pytest.raises(UsageError, match="after the fork"):
        fast.batch(Mechanism("gaussian", 5.0), (), 1)
    with pytest.raises(UsageError, match="after the fork"):
        fast.choice(3)


def test_a_seed_and_stream_give_the_same_draws_and_nothing_else_does() -> None:
    def draws(seed: int, stream: str) -> list[Any]:
        return SeededSampler(seed, stream).batch(Mechanism("gaussian", 2.0**40), (), 5)

    assert draws(1, "a") == draws(1, "a")
    others = [draws(1, "a"), draws(2, "a"), draws(1, "b"), draws(11, "a"), draws(1, "1/a")]
    assert len({tuple(other) for other in others}) == len(others)


def test_seeded_choices_and_noise_do_not_shift_each_other() -> None:
    noise, plain, mixed = Mechanism("laplace", 2.0**30), SeededSampler(5, "x"), SeededSampler(5, "x")
    expected = [plain.batch(noise, (), 1) for _ in range(4)]
    chosen = [SeededSampler(5, "x").choice(10**9)]
    seen = []
    for index in range(4):
        choice = mixed.choice(10**9)
        if index == 0:
            assert [choice] == chosen
        seen.append(mixed.batch(noise, (), 1))
    assert seen == expected


@pytest.mark.parametrize("seed", [-1, 0.5, math.nan])
def test_bad_seeds_are_refused(seed: int) -> None:
    with pytest.raises(UsageError, match="seed"):
        SeededSampler(seed, "x")


def test_importing_the_sampler_imports_nothing_heavy() -> None:
    code = (
        "import sys, p2pdp.mechanisms.sampler as s; from p2pdp.core.draws import Mechanism; "
        "s.ExactSampler().batch(Mechanism('gaussian', 1e9), (), 9); "
        "print([m for m in ('scipy', 'networkx', 'cryptography') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
