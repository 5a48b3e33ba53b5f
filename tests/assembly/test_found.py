from __future__ import annotations

from p2pdp.assembly.found import Outcome, difference


def test_contributions_are_counted_over_all_users_and_their_values() -> None:
    assert Outcome(counted={0: {0: 2, 1: 1}, 3: {0: 4}}).contributions == 7
    assert Outcome().contributions == 0


def test_differences_of_numbers_and_lists() -> None:
    assert difference(3.0, 1.0) == 2.0
    assert difference([3.0, 1.0], [1.0, 1.0]) == [2.0, 0.0]
    assert difference(None, 1.0) is None
    assert difference(1.0, None) is None
