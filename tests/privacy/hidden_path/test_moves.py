from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.privacy.hidden_path.gaps import Until
from p2pdp.privacy.hidden_path.moves import HIDDEN, OTHER, OWN, Slots, canonical, law, most_told

USER = 0


def views(n: int, length: int) -> dict[Any, list[Any]]:
    """All holders of so many slots among n - 1 users, by what is known of them: blocks, first, last, silent."""
    found = defaultdict(list)
    for path in itertools.product(range(n - 1), repeat=length):
        blocks = 1 + sum(one != two for one, two in itertools.pairwise(path))
        for first, last, silent in itertools.product((path[0], None), (path[-1], None), (False, True)):
            if first is not None or not silent:
                found[blocks, first, last, silent].append(path)
    return found


def slots_of(length: int, known: Any) -> Slots:
    blocks, first, last, silent = known
    kinds = [HIDDEN if one is None else OWN if one == USER else OTHER for one in (first, last)]
    return Slots(length, blocks, *kinds, first is not None and first == last, silent)


def counted(paths: list[Any], skipped: int) -> Any:
    return np.bincount([path[skipped:].count(USER) for path in paths]) / len(paths)


@pytest.mark.parametrize(("n", "longest"), [(2, 4), (3, 6), (4, 6), (5, 5), (6, 4)])
def test_laws_are_those_of_all_paths(n: int, longest: int) -> None:
    for length in range(1, longest + 1):
        for known, paths in views(n, length).items():
            for slots in (slots_of(length, known), canonical(n, slots_of(length, known))):
                exact = counted(paths, int(known[3]))
                found = law(n, [slots], 1e-15)
                assert len(found) <= len(exact)
                np.testing.assert_allclose(np.append(found, np.zeros(len(exact) - len(found))), exact, atol=1e-14)


@pytest.mark.parametrize(("n", "length"), [(3, 5), (4, 5), (5, 5), (6, 4)])
def test_shares_are_those_of_replaced_users(n: int, length: int) -> None:
    """Replaces the user in every path by everybody who may be there, and looks where that leads most often."""
    exact_below = 0
    for known, paths in views(n, length).items():
        share, loaded, stuck = most_told(n, [slots_of(length, known)]), defaultdict(float), False
        for path in paths:
            if USER not in path:
                continue
            places = [[at for at, _ in block] for user, block in itertools.groupby(enumerate(path), lambda one: one[1])
                      if user == USER]  # fmt: skip
            fixed = {end for end, one in ((0, known[1]), (length - 1, known[2])) if one == USER}
            choices = [
                [one for one in range(n - 1) if one not in {USER, *path[max(block[0] - 1, 0) : block[-1] + 2]}]
                for block in places
            ]
            stuck = stuck or bool(fixed) or not all(choices)
            for chosen in itertools.product(*choices):
                replaced = list(path)
                for block, one in zip(places, chosen, strict=True):
                    replaced[block[0] : block[-1] + 1] = [one] * len(block)
                loaded[tuple(replaced)] += 1 / math.prod(map(len, choices))
        if stuck:
            assert share == 1.0
        else:
            most = max(loaded.values(), default=0.0)
            assert share >= most / (1.0 + most)
            exact_below += share == pytest.approx(most / (1.0 + most), rel=1e-6)
        assert share >= 1.0 - counted(paths, 0)[0] - 1e-12
    assert exact_below > 3


def test_among_many_the_share_is_the_chance_to_be_there() -> None:
    for n, blocks in ((50, 5), (50, 60), (400, 1000)):
        slots = Slots(blocks + 3, blocks, OTHER, OTHER, False, False)
        there = 1.0 - law(n, [slots], 1e-13)[0]
        assert there <= most_told(n, [slots]) <= there * (1.0 + 2.0 / n)


def test_stretches_that_are_one_sum_add_up() -> None:
    one, two = Slots(5, 4, OTHER, OTHER, True, False), Slots(6, 5, OTHER, HIDDEN, False, True)
    both = np.convolve(law(7, [one], 1e-14), law(7, [two], 1e-14))
    np.testing.assert_allclose(law(7, [one, two], 1e-14), both[: len(law(7, [one, two], 1e-14))], atol=1e-13)
    shares = [1.0 - most_told(7, some) for some in ([one], [two], [one, two])]
    assert shares[2] == pytest.approx(shares[0] * shares[1], rel=1e-6)
    assert most_told(7, [one, Slots(3, 2, OWN, OTHER, False, False)]) == 1.0


@given(st.integers(3, 40), st.integers(1, 3000), st.data())
def test_laws_add_up_to_one_and_keep_their_mean(n: int, length: int, data: st.DataObject) -> None:
    """Between two slots that are anybody's, every slot is the user's with the chance 1/(n - 1)."""
    blocks = data.draw(st.integers(1, length)) if n > 2 else 1
    found = law(n, [Slots(length, blocks, HIDDEN, HIDDEN, False, False)], 1e-12)
    assert 1.0 - 1e-11 <= found.sum() <= 1.0 + 1e-9
    assert found @ np.arange(len(found)) == pytest.approx(length / (n - 1), rel=1e-6)


def test_after_many_moves_the_ends_do_not_show() -> None:
    for n in (4, 5, 30):
        alike, apart = (Slots(300, 200, OTHER, OTHER, one, False) for one in (True, False))
        if n > 4:
            assert canonical(n, alike) == apart
        np.testing.assert_allclose(law(n, [alike], 1e-15), law(n, [apart], 1e-15), atol=1e-15 if n > 4 else 1.0)
    assert canonical(9, Slots(5, 3, OWN, OTHER, False, False)) == canonical(9, Slots(5, 3, OTHER, OWN, False, False))
    assert canonical(9, Slots(5, 3, OWN, OTHER, False, True)).silent


def blocks_in(path: Any) -> int:
    return 1 + sum(one != two for one, two in itertools.pairwise(path))


LATEST = {
    "as often": (4, [(3, OTHER, False), (2, OTHER, False)], (3, 2)),
    "one cannot": (4, [(4, OTHER, False), (2, OWN, False)], (3, 5)),
    "from the origin": (3, [(4, OTHER, True), (3, OWN, True)], (2, 3)),
    "never moved": (5, [(3, OTHER, False), (2, OTHER, False)], (1, 1)),
    "three": (3, [(2, OTHER, False), (3, OWN, False), (2, OTHER, True)], (2, 3, 1)),
}


@pytest.mark.parametrize("case", LATEST)
@pytest.mark.parametrize("until", [Until.REACHED, Until.MOST])
def test_laws_of_tokens_that_ended_before_the_last_are_those_of_all_paths(case: str, until: Until) -> None:
    n, stretches, most = LATEST[case]
    ways = [
        [path for path in itertools.product(range(n - 1), repeat=length) if path[0] == (USER if first == OWN else 1)]
        for length, first, _ in stretches
    ]
    counts: dict[int, int] = defaultdict(int)
    for paths in itertools.product(*ways):
        fewer = [blocks_in(path) - at_most for path, at_most in zip(paths, most, strict=True)]
        if max(fewer) == 0 or (max(fewer) < 0 and until is Until.MOST):
            silent = [int(one) for _, _, one in stretches]
            counts[sum(path[skip:].count(USER) for path, skip in zip(paths, silent, strict=True))] += 1
    slots = [
        canonical(n, Slots(length, blocks, first, HIDDEN, False, silent, until))
        for (length, first, silent), blocks in zip(stretches, most, strict=True)
    ]
    found = law(n, slots, 1e-15)
    exact = np.array([counts[number] for number in range(max(counts) + 1)]) / sum(counts.values())
    np.testing.assert_allclose(np.append(found, np.zeros(len(exact) - len(found))), exact, atol=1e-13)


def test_the_share_is_the_largest_there_can_be() -> None:
    slots = Slots(6, 4, OTHER, HIDDEN, False, False, Until.REACHED)
    exact = [most_told(5, [slots._replace(blocks=blocks, until=Until.EXACT)]) for blocks in range(1, 5)]
    assert most_told(5, [slots]) == max(exact) > min(exact)
