"""Who owes bootstrap an answer about users who are out, and what shows that it is withheld."""

from __future__ import annotations

import pytest

from p2pdp.core.ids import CURATOR
from p2pdp.services.inquiries import Inquiries

EVERYBODY = {CURATOR, 0, 1, 2, 3}


def asked(*abouts: int, at_s: float = 10.0, ready: set[int] = EVERYBODY) -> Inquiries:
    inquiries = Inquiries(patience_s=1.0)
    for about in abouts:
        inquiries.ask(about, {CURATOR, 0, 1}, ready, at_s)
    return inquiries


def pressed(inquiries: Inquiries, now_s: float) -> list[int]:
    late = inquiries.press(now_s)
    for user in late:
        inquiries.probed(user)
    return late


def test_an_answer_is_counted_once_and_only_if_it_was_asked_for() -> None:
    inquiries = asked(3)
    assert inquiries.open
    assert [inquiries.answered(who, 3) for who in (0, 0, 2, 1, CURATOR)] == [True, False, False, True, True]
    assert not inquiries.open
    assert inquiries.press_at_s is None


def test_who_owes_an_answer_for_two_patiences_is_pressed_once_but_no_role_is() -> None:
    inquiries = asked(3)
    assert inquiries.press_at_s == 12.0
    assert inquiries.press(11.9) == []
    assert pressed(inquiries, 12.0) == [0, 1]
    assert inquiries.press(99.0) == []
    assert inquiries.press_at_s is None
    assert inquiries.presses(1)
    assert not inquiries.presses(CURATOR)


def test_whoever_answers_the_probe_before_the_question_withholds_the_answer() -> None:
    inquiries = asked(3)
    pressed(inquiries, 12.0)
    assert inquiries.answered(0, 3)
    assert not inquiries.withholds(0)
    assert inquiries.withholds(1)


def test_the_answer_to_a_probe_that_was_sent_before_the_question_shows_nothing() -> None:
    inquiries = Inquiries(patience_s=1.0)
    inquiries.probed(0)
    inquiries.ask(3, {0}, EVERYBODY, 10.0)
    assert pressed(inquiries, 12.0) == [0]
    assert not inquiries.withholds(0)
    assert inquiries.withholds(0)


def test_a_question_that_is_asked_after_the_probe_has_its_own_time() -> None:
    inquiries = asked(3)
    assert pressed(inquiries, 12.0) == [0, 1]
    inquiries.ask(2, {0}, EVERYBODY, 12.5)
    assert inquiries.answered(0, 3)
    assert not inquiries.withholds(0)
    assert inquiries.press_at_s == 14.5
    assert pressed(inquiries, 14.5) == [0]
    assert inquiries.withholds(0)


def test_what_a_user_was_asked_before_it_was_ready_counts_from_then() -> None:
    inquiries = asked(3, ready={1})
    assert inquiries.press(12.0) == [1]
    assert inquiries.press_at_s is None
    inquiries.ready(0, 30.0)
    inquiries.ready(0, 31.0)
    assert inquiries.press_at_s == 32.0
    assert inquiries.press(32.0) == [0]


@pytest.mark.parametrize("all_of_it", [True, False])
def test_of_who_is_out_nothing_is_waited_for(all_of_it: bool) -> None:
    inquiries = asked(2, 3)
    pressed(inquiries, 12.0)
    if all_of_it:
        inquiries.clear()
    else:
        for peer in (0, 1, CURATOR):
            inquiries.forget(peer)
    assert not inquiries.open
    assert not inquiries.presses(0)


def test_who_is_put_out_need_not_answer_about_others() -> None:
    inquiries = asked(3)
    inquiries.ask(0, {CURATOR, 1}, EVERYBODY, 10.5)
    assert pressed(inquiries, 12.0) == [1]
    assert inquiries.press(13.0) == []
