from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.reporting.categories import BinaryReports, KaryReports, UnaryReports
from p2pdp.mechanisms.reporting.contract import MalformedReport, Randomizer, drawn_of
from p2pdp.mechanisms.sampler import SeededSampler

KINDS = [KaryReports, UnaryReports, BinaryReports]


def exact_law(randomizer: Randomizer, value: int) -> dict[tuple[int, ...], float]:
    """The chance of each report, over all draws that there are."""
    outcomes = []
    for mechanism, shape in randomizer.needs:
        share = mechanism.scale / mechanism.categories
        one = [(-1, 1.0 - mechanism.scale), *((category, share) for category in range(mechanism.categories))]
        one = [(number, chance) for number, chance in one if chance > 0.0]
        outcomes.append([list(draw) for draw in itertools.product(one, repeat=math.prod(shape))])
    law: dict[tuple[int, ...], float] = {}
    for drawn in itertools.product(*outcomes):
        arrays = [
            np.array([number for number, _ in draw]).reshape(1, *shape)
            for draw, (_, shape) in zip(drawn, randomizer.needs, strict=True)
        ]
        chance = math.prod(chance for draw in drawn for _, chance in draw)
        report = tuple(randomizer.applied(np.array([value]), arrays)[0].tolist())
        law[report] = law.get(report, 0.0) + chance
    return law


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("categories", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_epsilon_is_exactly_the_largest_ratio_and_weights_are_unbiased(
    kind: type[Randomizer], categories: int, epsilon: float
) -> None:
    """Unary encoding is that of [WBLJ17]."""
    randomizer = kind(categories, epsilon)  # type: ignore[call-arg]
    laws = [exact_law(randomizer, value) for value in range(categories)]
    ratio = max(one[report] / other[report] for one in laws for other in laws for report in one)
    assert randomizer.epsilon is not None
    assert math.log(ratio) == pytest.approx(epsilon, rel=1e-9)
    assert math.log(ratio) <= randomizer.epsilon * (1.0 + 1e-13) <= epsilon * (1.0 + 1e-12)
    for value, law in enumerate(laws):
        weights = randomizer.weights(np.array(list(law)))
        np.testing.assert_allclose(np.array(list(law.values())) @ weights, np.eye(categories)[value], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_of_a_sampler_have_that_law(kind: type[Randomizer]) -> None:
    from scipy import stats

    randomizer, count = kind(3, 1.0), 50_000  # type: ignore[call-arg]
    drawn = drawn_of(randomizer.needs, count, SeededSampler(5, "law"))
    law = exact_law(randomizer, 1)
    seen = randomizer.applied(np.ones(count, dtype=np.int64), drawn)
    tally = [int(np.all(seen == report, axis=1).sum()) for report in law]
    assert sum(tally) == count
    assert stats.chisquare(tally, np.array(list(law.values())) * count).pvalue > 1e-7


def test_bytes_are_as_few_as_they_can_be() -> None:
    assert KaryReports(256, 1.0).report_bytes == 1
    assert KaryReports(257, 1.0).report_bytes == 2
    assert UnaryReports(9, 1.0).report_bytes == 2
    assert (BinaryReports(256, 1.0).report_bytes, BinaryReports(256, 1.0).width) == (1, 8)
    assert (BinaryReports(2, 1.0).report_bytes, BinaryReports(2, 1.0).width) == (1, 1)


@pytest.mark.parametrize(
    ("randomizer", "data"),
    [
        (KaryReports(5, 1.0), b"\x05"),
        (KaryReports(300, 1.0), b"\x01\x2c"),
        (UnaryReports(5, 1.0), b"\x04"),
        (BinaryReports(5, 1.0), b"\x10"),
    ],
)
def test_what_no_report_can_be_is_malformed(randomizer: Randomizer, data: bytes) -> None:
    with pytest.raises(MalformedReport):
        randomizer.decode(data)


def test_without_noise_the_category_is_told() -> None:
    plain = KaryReports(4, None)
    assert plain.epsilon == math.inf
    assert plain.needs == ()
    np.testing.assert_array_equal(plain.applied(np.array([3, 0]), []), [[3], [0]])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_category_is_refused_without_being_shown(kind: type[Randomizer]) -> None:
    randomizer = kind(4, 1.0)  # type: ignore[call-arg]
    drawn = drawn_of(randomizer.needs, 1, SeededSampler(1, "x"))
    for wrong in ([4], [-1], [1.5], [np.nan]):
        with pytest.raises(UsageError, match="from 0 to 3"):
            randomizer.applied(np.array(wrong), drawn)
    for categories, epsilon in ((1, 1.0), (4, 0.0), (4, math.inf), (4, math.nan)):
        with pytest.raises(UsageError):
            kind(categories, epsilon)  # type: ignore[call-arg]
