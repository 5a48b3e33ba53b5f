"""Estimates are unbiased and err as much as they say: for all reports, and for one report of each user with dummies."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import randomized_response
from p2pdp.mechanisms.reporting.categories import KaryReports
from p2pdp.mechanisms.reporting.contract import Randomizer, drawn_of
from p2pdp.mechanisms.reporting.estimates import expected, of_all, of_single
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.topology.report_walks.matrix import empty_places_at_rest
from tests.support.randomizers import MAKERS, values_for, vectors_of

USERS, TRIALS = 400, 300
EXPECTED = empty_places_at_rest(np.full(USERS, 1 / USERS))


def handed_in(randomizer: Randomizer, reports: np.ndarray, sampler: SeededSampler, seed: int) -> np.ndarray:
    """One uniform report of each user, and dummies: every report's place is uniform."""
    generator = np.random.default_rng(seed)
    places, order = generator.integers(USERS, size=USERS), generator.permutation(USERS)
    chosen = np.full(USERS, -1)
    chosen[places[order]] = order
    empty = np.nonzero(chosen < 0)[0]
    found = reports[chosen]
    found[empty] = randomizer.dummies(len(empty), drawn_of(randomizer.needs, len(empty), sampler))
    return found


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"kary many"}))
@pytest.mark.parametrize("single", [False, True])
def test_estimates_are_unbiased_with_their_standard_errors(name: str, single: bool) -> None:
    randomizer, sampler = MAKERS[name](), SeededSampler(7, name)
    values = values_for(randomizer, USERS)
    truth = vectors_of(randomizer, values).sum(axis=0) / (1 if randomizer.counted else USERS)
    found, said = [], []
    for trial in range(TRIALS):
        reports = randomizer.applied(values, drawn_of(randomizer.needs, USERS, sampler))
        if single:
            one = of_single(randomizer, handed_in(randomizer, reports, sampler, trial), *EXPECTED)
        else:
            one = of_all(randomizer, reports)
        found.append(one.value)
        said.append(one.standard_error)
    deviation = np.std(found, axis=0)
    assert np.all(np.abs(np.mean(found, axis=0) - truth) <= 5.5 * deviation / TRIALS**0.5 + 1e-6)
    claimed = np.sqrt(np.mean(np.square(said), axis=0))
    np.testing.assert_allclose(deviation, claimed, rtol=0.3, atol=1e-6)
    assert np.mean(deviation) == pytest.approx(np.mean(claimed), rel=0.15, abs=1e-6)


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"kary many", "unary many"}))
@pytest.mark.parametrize("single", [False, True])
def test_errors_are_known_beforehand_for_values_that_may_be_anything(name: str, single: bool) -> None:
    randomizer, sampler = MAKERS[name](), SeededSampler(9, name)
    values = any_values(randomizer, USERS)
    said = []
    for trial in range(40):
        reports = randomizer.applied(values, drawn_of(randomizer.needs, USERS, sampler))
        handed = handed_in(randomizer, reports, sampler, trial) if single else reports
        one = of_single(randomizer, handed, *EXPECTED) if single else of_all(randomizer, handed)
        said.append(float(np.mean(one.standard_error**2)))
    before = expected(randomizer, USERS, EXPECTED if single else None)
    assert before.value.shape == before.standard_error.shape == (randomizer.outputs,)
    assert np.mean(said) == pytest.approx(float(np.mean(before.standard_error**2)), rel=0.06, abs=1e-9)


def any_values(randomizer: Randomizer, count: int) -> np.ndarray:
    """Categories as often as each other, numbers evenly between their bounds, directions of all kinds."""
    generator = np.random.default_rng(3)
    if randomizer.counted:
        return np.arange(count) % randomizer.outputs
    if isinstance(randomizer, RealReports):
        even = np.linspace(randomizer.bounds.low, randomizer.bounds.high, count)
        return np.stack([generator.permutation(even) for _ in range(randomizer.width)], axis=1)
    rows = generator.standard_normal((count, randomizer.width))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_all_of_kary_reports_are_estimated_as_elsewhere() -> None:
    randomizer = KaryReports(4, 1.0)
    values = values_for(randomizer, 1000)
    reports = randomizer.applied(values, drawn_of(randomizer.needs, 1000, SeededSampler(1, "x")))
    found = of_all(randomizer, reports)
    counts = randomized_response.estimate(np.bincount(reports[:, 0], minlength=4), 1000, randomizer.gamma)
    np.testing.assert_allclose(found.value, counts, rtol=1e-9)
    known = randomized_response.standard_error(counts, 1000, randomizer.gamma)
    np.testing.assert_allclose(found.standard_error, known, rtol=0.1)


def test_large_inputs_are_added_up_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from p2pdp.mechanisms.reporting import estimates as report_estimates

    randomizer = KaryReports(4, 1.0)
    reports = np.arange(50)[:, None] % 4
    whole = of_all(randomizer, reports)
    monkeypatch.setattr(report_estimates, "_CHUNK", 28)
    np.testing.assert_allclose(of_all(randomizer, reports).value, whole.value)


def test_without_dummies_and_with_every_report_single_is_all() -> None:
    randomizer = KaryReports(3, None)
    reports = np.array([[0], [1], [1], [2]])
    np.testing.assert_allclose(of_single(randomizer, reports, 0.0, 0.0).value, [1, 2, 1])
    np.testing.assert_allclose(of_single(randomizer, reports, 0.0, 0.0).standard_error, 0.0, atol=1e-7)


@pytest.mark.parametrize(("dummies", "variance"), [(-1.0, 0.0), (4.0, 0.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.nan)])
def test_impossible_numbers_of_dummies_are_refused(dummies: float, variance: float) -> None:
    with pytest.raises(UsageError, match="dummies"):
        of_single(KaryReports(3, 1.0), np.zeros((4, 1), dtype=np.int64), dummies, variance)


@pytest.mark.parametrize("shape", [(0, 1), (3, 2), (3,)])
def test_no_reports_and_other_reports_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="one report at least"):
        of_all(KaryReports(3, 1.0), np.zeros(shape, dtype=np.int64))


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 6.0])
def test_a_category_that_nobody_of_few_reported_has_an_error_all_the_same(epsilon: float) -> None:
    """At least that of a category which nobody has: the root of n p (1 - p) / (1 - gamma)^2, p = gamma / 3."""
    randomizer, reports = KaryReports(3, epsilon), np.zeros((6, 1), dtype=np.int64)
    least = randomized_response.standard_error([0.0, 0.0, 0.0], 6, randomizer.gamma)[0]
    for found in (of_all(randomizer, reports), of_single(randomizer, reports, 2.0, 0.7)):
        assert np.all(found.standard_error >= least * (1.0 - 1e-12))


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"kary many"}))
def test_no_value_has_reports_that_vary_less_than_is_said(name: str) -> None:
    randomizer, sampler = MAKERS[name](), SeededSampler(11, name)
    values = np.repeat(values_for(randomizer, 3), 4000, axis=0)
    weights = randomizer.weights(randomizer.applied(values, drawn_of(randomizer.needs, len(values), sampler)))
    varied = weights.reshape(3, 4000, -1).var(axis=1)
    assert np.all(varied >= randomizer.least_variance * 0.6 - 1e-12)
    assert randomizer.least_variance >= 0.0
