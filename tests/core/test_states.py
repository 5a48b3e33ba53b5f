from __future__ import annotations

from enum import Enum

import pytest

from p2pdp.core.states import NoTransitionError, Transitions, after


class Door(Enum):
    SHUT = 1
    OPEN = 2


class Change(Enum):
    PUSHED = 1


TABLE: Transitions[Door, Change] = {(Door.SHUT, Change.PUSHED): Door.OPEN}


def test_what_follows_is_what_the_table_says() -> None:
    assert after(TABLE, Door.SHUT, Change.PUSHED) is Door.OPEN


def test_a_change_that_the_table_does_not_have_raises() -> None:
    with pytest.raises(NoTransitionError) as caught:
        after(TABLE, Door.OPEN, Change.PUSHED)
    assert {"OPEN", "PUSHED"} <= set(str(caught.value).split())
