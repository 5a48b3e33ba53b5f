from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.reporting.contract import MalformedReport, drawn_of
from p2pdp.mechanisms.reporting.privunit import UnitReports, cap_share, split
from p2pdp.mechanisms.sampler import ExactSampler, SeededSampler
from tests.support.randomizers import OneSampler


def density(d: int) -> tuple[float, float]:
    """The constant and the power of the density of <v, u> for uniform v."""
    return math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2)) / math.sqrt(math.pi), (d - 3) / 2


@pytest.mark.parametrize("d", [3, 5, 50, 200])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_cap_length_and_square_are_the_integrals(d: int, epsilon: float) -> None:
    found = split(epsilon, d)
    constant, power = density(d)

    def moment(k: int, low: float, high: float) -> float:
        return float(integrate.quad(lambda t: t**k * constant * (1 - t * t) ** power, low, high, epsabs=1e-14)[0])

    chance = 1 / (1 + math.exp(-found.coin_epsilon))
    cap = moment(0, found.threshold, 1.0)
    assert cap_share(found.threshold, d) == found.cap == pytest.approx(cap, rel=1e-7)
    for k, mean in ((1, found.length), (2, found.square)):
        mixed = chance / cap * moment(k, found.threshold, 1) + (1 - chance) / (1 - cap) * moment(k, -1, found.threshold)
        assert mean == pytest.approx(mixed, rel=1e-6)


@given(epsilon=st.floats(0.01, 200.0), d=st.integers(2, 2000))
@settings(max_examples=60)
def test_epsilon_is_spent_whole_and_never_exceeded(epsilon: float, d: int) -> None:
    """[BDFKR18, Algorithm 1]. The densities within and outside of the cap have the ratio p (1 - q) / ((1 - p) q)."""
    found = split(epsilon, d)
    ratio = found.coin_epsilon + math.log1p(-found.cap) - math.log(found.cap)
    assert ratio == pytest.approx(epsilon, rel=1e-8)
    assert ratio <= epsilon
    made = UnitReports(d, epsilon)
    assert made.epsilon is not None
    assert ratio * (1 - 1e-12) <= made.epsilon <= epsilon


def test_the_split_is_the_best_one() -> None:
    """Where the length is largest, it equals the threshold: its derivative is in proportion to their difference."""
    for d, epsilon in ((3, 1.0), (20, 4.0), (200, 8.0)):
        found = split(epsilon, d)
        assert found.length == pytest.approx(found.threshold, rel=1e-5)


@pytest.mark.parametrize(("d", "epsilon"), [(2, 1.0), (3, 4.0), (20, 2.0), (200, 10.0)])
def test_reports_have_the_law_of_the_mechanism(d: int, epsilon: float) -> None:
    """[BDFKR18, Algorithm 1].

    In the cap with the coin's chance; there and elsewhere uniform; across u without direction.
    """
    count, made = 20_000, UnitReports(d, epsilon)
    u = np.zeros(d)
    u[0] = 1.0
    rotated = np.linalg.qr(np.random.default_rng(8).standard_normal((d, d)))[0]
    value = rotated @ u
    drawn = drawn_of(made.needs, count, SeededSampler(6, "unit"))
    reports = made.applied(np.tile(value, (count, 1)), drawn) / 2**30
    along = reports @ value
    inside = along >= made.split.threshold
    chance = 1 / (1 + math.exp(-made.split.coin_epsilon))
    assert stats.binomtest(int(inside.sum()), count, chance).pvalue > 1e-7
    half = (d - 1) / 2
    share = stats.beta(half, half).sf((1 + along) / 2)
    assert stats.kstest(share[inside] / made.split.cap, "uniform").pvalue > 1e-7
    assert stats.kstest((1 - share[~inside]) / (1 - made.split.cap), "uniform").pvalue > 1e-7
    across = (reports - along[:, None] * value) @ rotated[:, 1:]
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    if d > 2:
        side = stats.beta((d - 2) / 2, (d - 2) / 2).cdf((1 + across[:, 0]) / 2)
        assert stats.kstest(side, "uniform").pvalue > 1e-7
    assert np.all(np.abs(across.mean(axis=0)) < 6 / math.sqrt(count))
    np.testing.assert_allclose(np.linalg.norm(reports, axis=1), 1.0, atol=1e-7)


@pytest.mark.parametrize(("d", "epsilon"), [(4, 1.0), (30, 6.0)])
def test_weights_are_unbiased(d: int, epsilon: float) -> None:
    count, made = 40_000, UnitReports(d, epsilon)
    value = np.linspace(-1, 2, d)
    value /= np.linalg.norm(value)
    drawn = drawn_of(made.needs, count, SeededSampler(2, "w"))
    weights = made.weights(made.applied(np.tile(value, (count, 1)), drawn))
    error = weights.std(axis=0) / math.sqrt(count)
    assert np.all(np.abs(weights.mean(axis=0) - value) < 6 * error)
    squares = np.sum((weights - value) ** 2, axis=1)
    wanted = 1 / made.split.length**2 - 1
    assert squares.mean() == pytest.approx(wanted, abs=6 * squares.std() / math.sqrt(count))


def test_operating_system_entropy_serves_as_well() -> None:
    made = UnitReports(3, 2.0)
    drawn = drawn_of(made.needs, 200, ExactSampler())
    np.testing.assert_allclose(np.linalg.norm(made.applied(np.tile([0, 0, 1.0], (200, 1)), drawn), axis=1), 2**30)


def test_values_that_are_no_unit_vectors_are_refused() -> None:
    made = UnitReports(3, 1.0)
    for wrong in ([0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [math.nan, 0.0, 1.0], [1.0, 0.0]):
        with pytest.raises(UsageError, match="unit vector"):
            made.randomize(np.array(wrong), OneSampler())


@pytest.mark.parametrize(("epsilon", "d"), [(0.0, 3), (-1.0, 3), (math.nan, 3), (math.inf, 3), (601.0, 3), (1.0, 1)])
def test_what_cannot_be_split_is_refused(epsilon: float, d: int) -> None:
    with pytest.raises(UsageError):
        split(epsilon, d)


def test_bytes_that_are_no_unit_vector_are_malformed() -> None:
    made = UnitReports(3, 1.0)
    for wrong in (bytes(12), b"\x7f" * 12):
        with pytest.raises(MalformedReport):
            made.decode(wrong)


def report_at(made: UnitReports, shares: np.ndarray, *, inside: bool, across: np.ndarray) -> np.ndarray:
    """Reports of (1, 0, ...), at these shares of the cap or of the rest, before they are rounded to integers."""
    count = len(shares)
    drawn = [np.full(count, int(inside)), (shares * 2.0**53 - 2.0**52).astype(np.int64) << 11, across]
    value = np.zeros((count, made.width))
    value[:, 0] = 1.0
    return made.applied(value, drawn)


@pytest.mark.parametrize("inside", [True, False])
def test_in_two_dimensions_reports_next_to_the_value_and_opposite_are_as_likely_as_others(*, inside: bool) -> None:
    """The angle is uniform: each integer of the coordinate across has the same share, from the first on."""
    made = UnitReports(2, 1.0)
    size = made.split.cap if inside else 1.0 - made.split.cap
    shares = np.arange(200_000.0) * 2.0**-45
    reports = report_at(made, shares, inside=inside, across=np.tile([0.0, 1.0], (len(shares), 1)))
    last = int(math.sin(math.pi * size * shares[-1]) * 2**30)
    assert last > 6
    counts = np.bincount(reports[:, 1])[:last]
    each = 2.0**45 / (math.pi * size * 2**30)
    np.testing.assert_allclose(counts[1:], each, rtol=1e-3)
    assert counts[0] == pytest.approx(each / 2, rel=1e-3)
    assert set(reports[:, 0].tolist()) == {2**30 if inside else -(2**30)}


@pytest.mark.parametrize("d", [2, 3, 10])
def test_places_are_those_of_the_law_to_the_last_digits(d: int) -> None:
    """Against the integral of the density with fifty digits: log ratios between values are differences of these."""
    mpmath = pytest.importorskip("mpmath")
    made = UnitReports(d, 1.0)
    half = (d - 1) / 2
    for inside, size in ((True, made.split.cap), (False, 1.0 - made.split.cap)):
        shares = np.concatenate([2.0 ** -np.arange(1.0, 53.0), 1.0 - 2.0 ** -np.arange(2.0, 20.0)])
        across = np.zeros((len(shares), d))
        across[:, 1] = 2.0**40
        reports = report_at(made, shares, inside=inside, across=across)
        for share, report in zip(shares.tolist(), reports.tolist(), strict=True):
            angle = math.atan2(report[1], report[0] if inside else -report[0])
            with mpmath.workdps(50):
                beyond = (1 - mpmath.cos(mpmath.mpf(angle))) / 2
                found = mpmath.betainc(half, half, 0, beyond, regularized=True)
                per_unit = beyond ** (half - 0.5) * (1 - beyond) ** (half - 0.5) / mpmath.beta(half, half)
                assert abs(found - size * mpmath.mpf(share)) <= 2.0**-30 * (per_unit + 2.0**-30 * d) + 2.0**-53 * size


def test_a_direction_that_is_nearly_the_value_is_turned_across_it() -> None:
    for d in (2, 3, 10):
        made = UnitReports(d, 1.0)
        value = np.linspace(1.0, 2.0, d) / np.linalg.norm(np.linspace(1.0, 2.0, d))
        drawn = [np.ones(3), np.zeros(3, dtype=np.int64), np.tile(np.rint(value * 2**40), (3, 1))]
        reports = made.applied(np.tile(value, (3, 1)), drawn) / 2**30
        along = 1.0 - 2.0 * stats.beta((d - 1) / 2, (d - 1) / 2).ppf(made.split.cap / 2)
        np.testing.assert_allclose(reports @ value, along, atol=1e-8)
    made = UnitReports(2, 1.0)
    parallel = [np.ones(1), np.zeros(1, dtype=np.int64), np.array([[7.0, 0.0]])]
    assert abs(np.linalg.norm(made.applied(np.array([[1.0, 0.0]]), parallel)) / 2**30 - 1.0) < 1e-8
