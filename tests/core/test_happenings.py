from __future__ import annotations

import string

import pytest

from p2pdp.core.happenings import KINDS, Level, faults_to_tell, happening


def test_each_kind_is_one_line_and_says_what_it_needs() -> None:
    for event, (level, text) in KINDS.items():
        facts = {name: 1 for _, name, _, _ in string.Formatter().parse(text) if name}
        told = happening(event, **facts)
        assert (told.level, "\n" in told.text) == (level, False)
        assert told.to_json() == {"event": event, **facts}


def test_what_is_not_listed_cannot_be_told_nor_without_its_facts() -> None:
    with pytest.raises(ValueError, match="'token'"):
        happening("token")
    with pytest.raises(KeyError):
        happening("roster")


def test_nothing_of_a_message_can_be_told() -> None:
    names = {name for _, text in KINDS.values() for _, name, _, _ in string.Formatter().parse(text) if name}
    assert names.isdisjoint({"value", "step", "item", "hop", "round", "token", "key", "peer", "bytes", "messages"})


def test_who_is_put_out_is_a_warning_and_an_end_an_error() -> None:
    assert happening("excluded", user=1).level is Level.WARNING
    assert happening("failed", reason="x").level is Level.ERROR


def test_faults_are_told_first_and_then_when_they_are_ten_times_as_many() -> None:
    told: dict[str, int] = {}
    said = [count for count in range(2000) if faults_to_tell({"garbage": count}, told)]
    assert said == [1, 10, 100, 1000]
    assert [each.facts["kind"] for each in faults_to_tell({"b": 1, "a": 2, "garbage": 1000}, told)] == ["a", "b"]
