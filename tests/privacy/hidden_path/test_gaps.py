from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.privacy.hidden_path.gaps import Stretch, Until, Visit, gaps_of


def visits_of(path: list[int], observer: int) -> list[Visit]:
    last = len(path) - 1
    return [
        (at + 1, path[at - 1] if at else None, path[at + 1] if at < last else None)
        for at, user in enumerate(path)
        if user == observer
    ]


def test_the_gaps_of_a_path_as_its_observer_knows_them() -> None:
    path = [0, 3, 1, 2, 3, 1, 1, 2, 0, 0]
    assert gaps_of([visits_of(path, 1)], 10, [0]) == [
        (Stretch(2, 0, 3),),
        (Stretch(2, 2, 3),),
        (Stretch(3, 2, None),),
    ]
    assert gaps_of([visits_of(path, 1)], 10, [0], publisher=0)[-1] == (Stretch(3, 2, 0),)
    assert gaps_of([visits_of(path, 1)], 10, [None])[0] == (Stretch(2, None, 3),)


def test_who_is_never_visited_sees_the_total_only() -> None:
    assert gaps_of([[]], 5, [0]) == [(Stretch(5, 0, None),)]


def test_who_is_always_visited_sees_nothing_of_others() -> None:
    assert gaps_of([visits_of([2, 2, 2], 2)], 3, [2]) == []


def test_only_the_sum_of_several_totals_is_seen() -> None:
    first, second, third = [1, 0, 2, 2], [2, 2, 1, 1], [0, 0, 0, 1]
    seen = [visits_of(path, 1) for path in (first, second, third)]
    assert gaps_of(seen, 4, [None] * 3) == [
        (Stretch(2, None, 2),),
        (Stretch(3, None, 0),),
        (Stretch(3, 0, None),),
    ]
    seen = [visits_of(path, 0) for path in (first, second)]
    assert gaps_of(seen, 4, [1, 2]) == [(Stretch(1, 1, 1),), (Stretch(2, 2, None), Stretch(4, 2, None))]


def test_when_the_sum_is_there_shows_of_the_last_token_only() -> None:
    """Of the others' moves after the last visit it shows that there were no more than the last had time for."""
    first, second = [1, 0, 2, 2, 2], [2, 2, 1, 2, 0]
    seen = [visits_of(path, 0) for path in (first, second)]
    moves = [[0, 1, 2, 3, 3, 3], [0, 1, 1, 2, 3, 4]]
    every = gaps_of(seen, 5, [1, 2], moves=moves, origin=0)
    assert every == [(Stretch(1, 1, 1, 0),), (Stretch(4, 2, 2, 2),), (Stretch(3, 2, None, 0),)]
    some = gaps_of(seen, 5, [1, 2], moves=moves, origin=0, ends_seen=False)
    assert some == [*every[:2], (Stretch(3, 2, None, 1, None, Until.MOST),)]  # user 0 had the last one itself
    unseen = gaps_of([[], []], 5, [1, 2], moves=moves, origin=0, ends_seen=False)
    assert unseen == [(Stretch(5, 1, None, 3, None, Until.REACHED), Stretch(5, 2, None, 3, None, Until.REACHED))]
    outside = gaps_of([[], []], 5, [None, None], moves=moves, origin=0, ends_seen=False)
    assert outside == [(Stretch(5, None, None, 4, 0, Until.REACHED),) * 2]
    assert gaps_of(seen, 5, [1, 2], ends_seen=False) == gaps_of(seen, 5, [1, 2])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(0, 3))
def test_gaps_hold_every_contribution_of_others_once(path: list[int], observer: int) -> None:
    gaps = gaps_of([visits_of(path, observer)], len(path), [path[0]])
    stretches = [stretch for gap in gaps for stretch in gap]
    assert sum(stretch.length for stretch in stretches) == len(path) - path.count(observer)
    for stretch in stretches:
        assert 1 <= len(stretch.known) <= min(stretch.length, 2)
        assert observer not in stretch.known


def test_a_single_slot_is_known_once() -> None:
    assert Stretch(1, 4, 4).known == Stretch(1, 4, None).known == Stretch(1, None, 4).known == (4,)
    assert Stretch(1, None, None).known == ()
    assert Stretch(2, 4, 4).known == (4, 4)


@pytest.mark.parametrize("seen", [[(0, None, 1)], [(6, 1, None)], [(2, 1, 1), (2, 1, 1)]])
def test_visits_that_cannot_be_are_refused(seen: list[Visit]) -> None:
    with pytest.raises(UsageError, match="ascending steps from 1 to 5"):
        gaps_of([seen], 5, [0])


def test_tokens_and_starters_belong_together() -> None:
    for visits, starters, publisher in (([[]], [0, 0], None), ([[], []], [0, 0], 1)):
        with pytest.raises(UsageError, match="Each token"):
            gaps_of(visits, 3, starters, publisher)


def test_moves_are_counted_within_a_stretch() -> None:
    path = [0, 0, 3, 1, 2, 2, 2, 3, 1, 1, 0, 0]
    moves = [[0, *(sum(one != two for one, two in itertools.pairwise(path[: at + 1])) for at in range(len(path)))]]
    assert gaps_of([visits_of(path, 1)], 12, [0], moves=moves) == [
        (Stretch(3, 0, 3, 1),),
        (Stretch(4, 2, 3, 1),),
        (Stretch(2, 0, None, 0),),
    ]


def test_a_token_that_user_0_only_sent_has_one_move_more_to_go() -> None:
    paths = [2, 2, 3, 1, 3], [0, 0, 1, 2, 2]
    moves = [[0, 1, 1, 2, 3, 4], [0, 0, 0, 1, 2, 2]]
    seen = [visits_of(path, 1) for path in paths]
    assert gaps_of(seen, 5, [None, None], moves=moves, origin=0) == [
        (Stretch(3, None, 3, 2, 0),),
        (Stretch(2, None, 0, 0, 0),),
        (Stretch(1, 3, None, 0), Stretch(2, 2, None, 0)),
    ]
    seen = [visits_of(path, 0) for path in paths]
    assert gaps_of(seen, 5, [2, 0], moves=moves, origin=0)[0] == (Stretch(5, 2, None, 3), Stretch(3, 1, None, 1))
