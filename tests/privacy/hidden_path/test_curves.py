from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.hidden_path.curves import Curves, Part, law_cut

PLAIN = Part(np.array([0.0, 1.0]), 0.3, 0.3, 1.0)
HIDDEN = Part(np.array([0.6, 0.3, 0.1]), 0.3, 0.3, 0.4)
TOLD = Part(np.array([0.6, 0.3, 0.1]), 0.3, 0.3, 1.0)
SPLIT = Part(np.array([0.6, 0.3, 0.1]), 0.3, 0.2, 0.4)
PARTS = (PLAIN, HIDDEN, TOLD, SPLIT)


@pytest.fixture(scope="module")
def curves() -> Curves:
    return Curves(PARTS, np.ones(4), 1, 40, 1e-6)


def test_a_sum_is_the_same_however_it_is_told(curves: Curves) -> None:
    """Repeated, listed as a change, or both."""
    told = [
        curves.epsilons({1: 20, 0: 2}, [()]),
        curves.epsilons({1: 15}, [((1, 5), (0, 2))]),
        curves.epsilons({1: 30, 2: 1}, [((1, -10), (2, -1), (0, 2))]),
    ]
    for ends in told[1:]:
        np.testing.assert_allclose(ends.upper, told[0].upper, rtol=1e-6)
        np.testing.assert_allclose(ends.lower, told[0].lower, rtol=1e-6)


def test_plain_gaussians_are_met_from_both_sides(curves: Curves) -> None:
    for count in (1, 7, 40):
        ends = curves.epsilons({0: count}, [()])
        exact = gaussian.epsilon_of(1e-6, 0.3 * math.sqrt(count))
        assert exact * 0.995 <= ends.lower[0] <= exact <= ends.upper[0] <= exact * 1.005


def test_many_changes_are_answered_in_their_order(curves: Curves) -> None:
    changes = [((0, count),) for count in (0, 30, 3, 1, 9)]
    together = curves.epsilons({1: 3}, changes)
    alone = [curves.epsilons({1: 3}, [change]) for change in changes]
    np.testing.assert_array_equal(together.upper, [ends.upper[0] for ends in alone])
    np.testing.assert_array_equal(together.lower, [ends.lower[0] for ends in alone])


def test_hiding_protects_and_less_noise_does_not(curves: Curves) -> None:
    ends = {part: curves.epsilons({part: 10}, [()]) for part in range(4)}
    assert ends[1].upper < ends[2].upper < ends[0].upper * 2
    assert ends[3].upper == ends[1].upper
    assert ends[3].lower < ends[1].lower
    for one in ends.values():
        assert one.lower <= one.upper


def test_more_gaps_tell_no_less(curves: Curves) -> None:
    ends = curves.epsilons({}, [((1, count),) for count in range(1, 40, 3)])
    assert np.all(np.diff(ends.upper) > 0.0)
    assert np.all(np.diff(ends.lower) > 0.0)


def test_both_ends_are_wider_the_smaller_delta_is() -> None:
    found = [Curves(PARTS, np.ones(4), 1, 20, delta).epsilons({1: 20}, [()]) for delta in (1e-2, 1e-5, 1e-9, 1e-12)]
    for larger, smaller in itertools.pairwise(found):
        assert larger.upper < smaller.upper
        assert larger.lower < smaller.lower
    tiny = Curves(PARTS, np.ones(4), 1, 20, 1e-40).epsilons({0: 20}, [()])
    assert gaussian.epsilon_of(1e-40, 0.3 * math.sqrt(20)) <= tiny.upper[0] < math.inf


def test_what_tells_nothing_costs_nothing() -> None:
    silent = Part(np.ones(1), 0.3, 0.3, 1.0)
    curves = Curves((silent, PLAIN), np.ones(2), 1, 5, 1e-6)
    for common in ({}, {0: 5}):
        ends = curves.epsilons(common, [(), ((1, 0),)])
        assert ends.upper.tolist() == ends.lower.tolist() == [0.0, 0.0]


def test_laws_are_cut_far_below_delta() -> None:
    assert law_cut(1e-6, 100) * 100 <= 1e-5 * 1e-6 * (1 + 1e-9)
    assert law_cut(1e-300, 10**6) > 0.0


def test_lower_ends_can_be_left_out(curves: Curves) -> None:
    ends = Curves(PARTS, np.ones(4), 1, 40, 1e-6, lower=False).epsilons({1: 20}, [(), ((0, 3),)])
    np.testing.assert_array_equal(ends.variation, curves.epsilons({1: 20}, [(), ((0, 3),)]).variation)
    np.testing.assert_array_equal(ends.upper, curves.epsilons({1: 20}, [(), ((0, 3),)]).upper)
    assert np.isnan(ends.lower).all()


def test_parts_of_one_call_come_out_the_same_and_are_not_kept() -> None:
    kept, dropped = (Curves(PARTS, np.ones(4), 1, 40, 1e-6, once=once) for once in ((), (1, 2)))
    changes = [(), ((1, -3), (2, 5)), ((3, 1),)]
    for common in ({1: 9, 0: 2}, {2: 4}):
        for one, other in zip(kept.epsilons(common, changes), dropped.epsilons(common, changes), strict=True):
            assert one.tobytes() == other.tobytes()
    assert {part for part, _ in kept._spectra} == {0, 1, 2, 3}
    assert {part for part, _ in dropped._spectra} == {0, 3}
