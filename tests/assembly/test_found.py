from __future__ import annotations

from p2pdp.assembly.found import Outcome


def test_contributions_are_counted_over_all_users_and_their_values() -> None:
    assert Outcome(counted={0: {0: 2, 1: 1}, 3: {0: 4}}).contributions == 7
    assert Outcome().contributions == 0
