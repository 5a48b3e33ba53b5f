from __future__ import annotations

from p2pdp.attacks.truths import ONLY_PLACE, only_contribution
from p2pdp.ledger.records import Contents


def test_without_a_draw_the_noised_value_is_the_value() -> None:
    assert only_contribution(3.0, Contents([], skeleton=False, torn_bytes=0), b"") == {ONLY_PLACE: (3.0, 3.0)}
