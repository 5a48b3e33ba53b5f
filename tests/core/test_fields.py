from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import pytest

from p2pdp.core.fields import (
    INT_MAX,
    INT_MIN,
    AnyInteger,
    AnyNumber,
    AnyText,
    Bytes,
    Integer,
    Kind,
    ListOf,
    Maybe,
    Natural,
    Number,
    Positive,
    Row,
    Text,
    check_of,
    fields_of,
)


class Nothing(NamedTuple):
    pass


class One(NamedTuple):
    name: AnyText


class Several(NamedTuple):
    number: Natural
    share: AnyNumber
    places: Annotated[list[list[int]], ListOf(Row(("step", "item"), Integer(0)))]


@pytest.mark.parametrize(
    ("kind", "fitting", "unfit"),
    [
        (Integer(), [0, -1, INT_MIN, INT_MAX], [True, 0.0, "0", None, INT_MAX + 1, INT_MIN - 1]),
        (Integer(1, 3), [1, 3], [0, 4]),
        (Number(), [0, -1.5], [True, float("nan"), float("inf"), "1"]),
        (Bytes(), [b"", b"abc"], ["abc", bytearray(b"abc")]),
        (Bytes(exactly=2), [b"ab"], [b"", b"a", b"abc"]),
        (Bytes(most=2), [b"", b"ab"], [b"abc"]),
        (Text(), ["", "abc"], [b"abc", 1]),
        (Text(most=2), ["ab"], ["abc"]),
        (ListOf(Integer(0)), [[], [0, 1]], [(0, 1), [0, -1], [True], None]),
        (ListOf(Integer(0), most=1), [[], [0]], [[0, 1]]),
        (Row(("a", "b"), Integer()), [[0, 1]], [[0], [0, 1, 2], (0, 1), [0, None]]),
        (Maybe(Integer(0)), [None, 0], [-1, False]),
    ],
)
def test_each_kind_takes_what_it_names_and_nothing_else(kind: Kind, fitting: list[Any], unfit: list[Any]) -> None:
    assert all(kind.fits(item) for item in fitting)
    assert not any(kind.fits(item) for item in unfit)


def test_a_check_wants_exactly_the_fields_that_are_declared() -> None:
    nothing, one, several = check_of(Nothing), check_of(One), check_of(Several)
    assert nothing(())
    assert not nothing((1,))
    assert one(("a",))
    assert not any(map(one, [(), (1,), ("a", "b")]))
    assert several((0, 1, [[2, 3]]))
    assert not any(map(several, [(0, 1), (0, 1, [], 2), (-1, 1, []), (0, "1", []), (0, 1, [[2]])]))


def test_fields_have_names_and_say_what_they_are() -> None:
    assert [(name, str(kind)) for name, kind in fields_of(Several)] == [
        ("number", "whole number from 0"),
        ("share", "number"),
        ("places", "list of [step, item]"),
    ]
    texts = [Integer(), Integer(1, 3), Bytes(), Bytes(exactly=2), Text(), Maybe(Integer(0)), ListOf(Text(), most=4)]
    assert [str(kind) for kind in texts] == [
        "whole number", "whole number from 1 to 3", "bytes", "2 bytes", "text", "none or whole number from 0",
        "list of text, 4 at most",
    ]  # fmt: skip


def test_the_usual_fields_are_what_they_are_called() -> None:
    class Usual(NamedTuple):
        any_whole: AnyInteger
        positive: Positive

    fits = check_of(Usual)
    assert fits((-1, 1))
    assert not fits((-1, 0))
