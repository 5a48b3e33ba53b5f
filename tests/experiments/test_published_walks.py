from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.accounting.composition import drawn_with_replacement, heterogeneous, sampled_epsilon
from p2pdp.accounting.iteration.path import exposures
from p2pdp.experiments.published_walks import pair_losses, separate_exposures


def test_gaps_cost_by_what_is_known_of_the_user() -> None:
    """Observer 0 is visited at 3 and 5: user 1 was next to it before, user 2 after; then user 1 on both sides."""
    path = np.array([0, 2, 3, 1, 0, 1, 0])

    def together(size: int) -> float:
        return 0.4 / math.sqrt(size)

    found = pair_losses(path, 4, together, 1e-7)
    far = [sampled_epsilon(together(size), drawn_with_replacement(4, size)) for size in (4, 2)]
    assert found[1, 0] == pytest.approx(heterogeneous([together(4), 2 * together(2)], 2e-7), rel=1e-12)
    assert found[2, 0] == pytest.approx(heterogeneous([together(4), far[1]], 2e-7), rel=1e-12)
    assert found[3, 0] == pytest.approx(heterogeneous(far, 2e-7), rel=1e-12)
    assert np.isnan(np.diag(found)).all()


def test_who_is_never_visited_learns_nothing() -> None:
    assert pair_losses(np.array([0, 1, 1]), 3, lambda _size: 1.0, 1e-7)[0, 2] == 0.0


def test_contributions_are_spread_over_the_steps_that_follow() -> None:
    gap, user = np.array([0, 0, 0, 1]), np.array([1, 2, 1, 2])
    assert separate_exposures(gap, user, 4).tolist() == pytest.approx([0.0, 1 / 3 + 1.0, 0.5 + 1.0, 0.0])
    assert separate_exposures(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 2).tolist() == [0.0, 0.0]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=40))
def test_adding_up_is_never_above_the_sound_account_and_meets_it_without_repeats(
    steps: list[tuple[bool, int]],
) -> None:
    gap = np.cumsum([new for new, _ in steps])
    user = np.array([who for _, who in steps])
    apart = separate_exposures(gap, user, 4)
    sound = exposures(gap, user, np.ones(len(steps)), 4)
    assert (apart <= sound * (1 + 1e-12)).all()
    for one in range(4):
        gaps = gap[user == one]
        if len(set(gaps.tolist())) == len(gaps):
            assert apart[one] == pytest.approx(sound[one], rel=1e-12)


def test_the_repeat_that_the_published_account_misses() -> None:
    """u, u, v: added up 1/2 + 1, in truth 2."""
    gap, user = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    assert separate_exposures(gap, user, 1)[0] == pytest.approx(1.5)
    assert exposures(gap, user, np.ones(2), 1)[0] == pytest.approx(2.0)
