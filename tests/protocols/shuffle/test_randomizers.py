from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms.reporting.categories import BinaryReports, KaryReports, UnaryReports
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.mechanisms.reporting.privunit import UnitReports
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.protocols.shuffle.randomizers import randomizer_of, reported_value

HEAD = """
[run]
protocol = "shuffle.all"
nodes = 8
seed = 1
[graph]
kind = "complete"
[shuffle]
rounds = 3
"""
COUNTS = '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 5\n'
MEAN = '[data]\nkind = "uniform"\nclip = [0.0, 2.0]\n[task]\nkind = "mean"\n'
DIRECTIONS = '[data]\nkind = "unit_mixture"\n[task]\nkind = "mean"\n'


def made(noise: str, rest: str, dimensions: int = 1) -> Randomizer:
    return randomizer_of(parse_spec(f"{HEAD}\n[noise]\n{noise}\n{rest}", None), dimensions)


@pytest.mark.parametrize(
    ("noise", "rest", "dimensions", "kind", "epsilon"),
    [
        ('mechanism = "randomized_response"\nepsilon = 1.5', COUNTS, 1, KaryReports, 1.5),
        ('mechanism = "randomized_response"\nepsilon = 1.5\nencoding = "unary"', COUNTS, 1, UnaryReports, 1.5),
        ('mechanism = "randomized_response"\nepsilon = 1.5\nencoding = "binary"', COUNTS, 1, BinaryReports, 1.5),
        ('mechanism = "none"', COUNTS, 1, KaryReports, math.inf),
        ('mechanism = "laplace"\nepsilon = 1.5', MEAN, 1, RealReports, 1.5),
        ('mechanism = "laplace"\nepsilon = 1.5', MEAN, 4, RealReports, 1.5),
        ('mechanism = "none"', MEAN, 1, RealReports, math.inf),
        ('mechanism = "privunit"\nepsilon = 1.5', DIRECTIONS, 4, UnitReports, 1.5),
    ],
)
def test_the_spec_says_which(noise: str, rest: str, dimensions: int, kind: type[Randomizer], epsilon: float) -> None:
    found = made(noise, rest, dimensions)
    assert type(found) is kind
    assert found.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert found.outputs == (5 if rest is COUNTS else dimensions)


def test_gaussian_noise_by_sigma_or_by_epsilon() -> None:
    assert made('mechanism = "gaussian"\nsigma = 0.5', MEAN).epsilon is None
    assert made('mechanism = "gaussian"\nepsilon = 1.0\ndelta = 1e-5', MEAN).epsilon is None


def test_a_user_reports_its_first_row() -> None:
    assert reported_value(KaryReports(5, 1.0), np.array([3.0, 1.0])) == 3
    unit = reported_value(UnitReports(2, 1.0), np.array([[3.0, 4.0], [1.0, 0.0]]))
    np.testing.assert_allclose(unit, [0.6, 0.8])
    real = made('mechanism = "none"', MEAN)
    np.testing.assert_array_equal(reported_value(real, np.array([0.5, 1.0])), [0.5])


def test_a_row_without_direction_is_refused() -> None:
    with pytest.raises(UsageError, match="direction"):
        reported_value(UnitReports(2, 1.0), np.zeros((1, 2)))
