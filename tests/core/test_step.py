from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.step import NOTHING, Custody, Fault, Message, Output, Send, Step

SECRET = 271828182845
MESSAGE = Message("token", (SECRET, 31), SECRET)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MESSAGE, "Message('token')"),
        (Send(SECRET, MESSAGE, Custody(SECRET, 31)), "Send('token')"),
        (Output("result", (SECRET,), SECRET), "Output('result')"),
    ],
)
def test_texts_show_neither_values_nor_routes(value: Any, text: str) -> None:
    assert repr(value) == str(value) == text
    assert repr([value]) == f"[{text}]"


def test_the_text_of_a_step_shows_no_more_than_its_parts() -> None:
    step = Step((Send(SECRET, MESSAGE),), 1.0, (Output("result", (), SECRET),))
    assert str(SECRET) not in repr(step)
    with pytest.raises(AttributeError) as caught:
        step.sends = ()  # type: ignore[misc]
    assert str(SECRET) not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [MESSAGE, Send(1, MESSAGE), Custody(1, 2), Output("x"), Fault("late", 1), Step()],
)
def test_what_a_machine_returns_cannot_be_changed(value: Any) -> None:
    for name in value._fields:
        with pytest.raises(AttributeError):
            setattr(value, name, None)
    with pytest.raises((AttributeError, TypeError)):
        value.note = 1


def test_a_step_has_exactly_the_four_parts_that_callers_act_on() -> None:
    assert Step._fields == ("sends", "wake_at_s", "outputs", "faults")
    assert Step((), None, (), ()) == NOTHING


STEPS = st.builds(
    Step,
    st.lists(st.builds(Send, st.integers(0, 9), st.just(MESSAGE), st.none()), max_size=3).map(tuple),
    st.none() | st.floats(0.0, 9.0),
    st.lists(st.builds(Output, st.sampled_from("ab"), st.just(()), st.none(), st.booleans()), max_size=3).map(tuple),
    st.lists(st.builds(Fault, st.sampled_from("ab"), st.none()), max_size=3).map(tuple),
)


@given(st.lists(STEPS, max_size=4))
def test_a_joined_step_loses_nothing_and_wakes_at_the_earliest_time(steps: list[Step]) -> None:
    joined = NOTHING.then(*steps)
    for part in ("sends", "outputs", "faults"):
        assert getattr(joined, part) == tuple(each for step in steps for each in getattr(step, part))
    assert joined.wake_at_s == min((step.wake_at_s for step in steps if step.wake_at_s is not None), default=None)
    one_by_one = NOTHING
    for step in steps:
        one_by_one = one_by_one.then(step)
    assert one_by_one == joined


def test_equal_steps_are_equal_values() -> None:
    def step() -> Step:
        return Step((Send(2, Message("token", (0, 3), 5), Custody(0, 3)),), 2.5, faults=(Fault("late", 4),))

    assert step() == step()
    assert step() != step()._replace(wake_at_s=None)
