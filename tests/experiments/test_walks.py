from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.experiments import walks
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.walks import Account, pair_losses, separate_exposures
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.composition import drawn_with_replacement, heterogeneous, sampled_epsilon
from p2pdp.privacy.hidden_path.gaps import Stretch
from p2pdp.privacy.iteration.path import exposures


def test_a_path_is_that_of_the_protocol_and_of_its_number() -> None:
    first = walks.path(7, 0)
    assert (len(first), int(first[0])) == (700, 0)
    assert set(first.tolist()) == set(range(7))
    assert np.array_equal(first, walks.path(7, 0))
    assert not np.array_equal(first, walks.path(7, 1))


def test_what_observers_see_of_a_path() -> None:
    steps = np.array([0, 2, 1, 0, 0, 2])
    gaps = walks.gaps(steps, 3)
    assert gaps[0] == [(Stretch(2, 2, 1, 1),), (Stretch(1, 2, None, 0),)]
    assert gaps[1] == [(Stretch(2, 0, 2, 1),), (Stretch(3, 0, None, 1),)]
    gap, user = walks.seen_by(steps, 0)
    assert (gap.tolist(), user.tolist()) == ([1, 1, 3], [2, 1, 2])


def test_noise_is_that_of_one_contribution() -> None:
    assert gaussian.epsilon_of(walks.DELTA, walks.ratio(0.4)) == pytest.approx(0.4, rel=1e-9)


def test_losses_are_gathered_over_walks() -> None:
    spread = walks.spread(np.array([[np.nan, 1.0], [3.0, np.nan]]))
    assert spread == {"mean": 2.0, "best": 1.0, "worst": 3.0}
    more = {"a": {"mean": 4.0, "best": 0.5, "worst": 5.0}}
    assert walks.gathered([{"a": spread}, more], "a") == (3.0, 0.5, 5.0)
    assert walks.gathered([more], "b") is None
    assert not math.isnan(walks.gathered([more, {}], "a")[0])  # type: ignore[index]


def test_quick_forms_are_smaller() -> None:
    assert max(walks.nodes(Setting(quick=True))) < max(walks.nodes(Setting()))
    assert walks.walks(Setting(quick=True)) < walks.walks(Setting()) == 10


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


QUICK = Setting(quick=True)
ACCOUNTS = (Account("a", "all", 0), Account("s", "some", 1))


def _losses(n: int, walk: int, epsilon_0: float) -> dict[str, dict[str, float]]:
    one = {"mean": n * epsilon_0, "best": n * epsilon_0 - walk, "worst": n * epsilon_0 + walk}
    return {"a": one, "s": one} if walk == 0 else {"a": one}


def test_a_row_for_each_account_with_how_many_walks_it_saw() -> None:
    pieces = walks.pieces(QUICK, _losses, {"more": 3})
    assert pieces[0].facts == {"n": 20, "epsilon_0": 0.1, "walk": 0, "seed": walks.SEED, "more": 3}
    answers: dict[str, Any] = {piece.key: piece.work() for piece in pieces}
    rows = walks.rows(QUICK, answers, ACCOUNTS)
    assert len(rows) == len(walks.EPSILONS) * len(walks.nodes(QUICK)) * 2
    assert rows[:2] == [(0.1, 5, "a", 0.5, -0.5, 1.5, 2), (0.1, 5, "s", 0.5, 0.5, 0.5, 1)]
    made = walks.made(QUICK, answers, ACCOUNTS, "title", ())
    assert made.tables[0].rows == rows
