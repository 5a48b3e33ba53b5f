from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.fields import fields_of
from p2pdp.ledger.bodies import BODIES, Drawn, Opened, Pool, UserOpened, body_of, is_whole
from p2pdp.ledger.records import DRAWN, KIND_NAMES, LEDGER_MAGIC, OPENED, Chain, read
from tests.support.runs import quiet, ring

FITTING: dict[str, Any] = {
    "whole number": 7, "whole number from 0": 7, "whole number from 1": 7, "number": 0.5, "bytes": b"ab",
    "text": "view", "none or whole number from 0": None, "list of whole number": [1, 2],
    "none or list of whole number": [0, 2], "16 bytes": bytes(16), "list of 20 bytes": [bytes(20)],
}  # fmt: skip


def fitting(body: type[Any]) -> tuple[Any, ...]:
    return tuple(FITTING[str(kind)] for _, kind in fields_of(body))


def test_every_kind_of_record_has_a_body() -> None:
    assert len(BODIES) == len(KIND_NAMES) == len(set(BODIES))
    assert UserOpened._fields[: len(Opened._fields)] == Opened._fields


@pytest.mark.parametrize("kind", range(len(BODIES)), ids=KIND_NAMES)
def test_a_body_comes_back_by_name_and_whole(kind: int) -> None:
    items = fitting(BODIES[kind])
    (record,) = read(LEDGER_MAGIC + Chain().append(kind, items)).records
    assert type(record.body) is BODIES[kind]
    assert record.body == items
    assert is_whole(kind, record.body, of_a_user=True)


@pytest.mark.parametrize("kind", range(len(BODIES)), ids=KIND_NAMES)
def test_a_body_that_lacks_a_field_or_has_another_type_or_one_too_many_is_not_whole(kind: int) -> None:
    items = fitting(BODIES[kind])
    broken = [items[:-1], (*items, 0)]
    broken += [(*items[:at], True, *items[at + 1 :]) for at in range(len(items))]
    assert not any(is_whole(kind, body_of(kind, one), of_a_user=True) for one in broken)


def test_only_a_user_s_view_says_more_at_its_beginning() -> None:
    short = body_of(OPENED, ("private", b"run", 3))
    assert is_whole(OPENED, short)
    assert not is_whole(OPENED, short, of_a_user=True)
    with pytest.raises(IndexError):
        short.neighbours  # noqa: B018


def test_a_draw_has_the_terms_of_its_pool() -> None:
    assert Drawn(0, "gaussian", 1.0, 0, [2], 5, 6).terms == ("gaussian", 1.0, 0, [2])
    assert Pool(None, 5, "system", "gaussian", 1.0, 0, [2], 16).terms == ("gaussian", 1.0, 0, [2])
    run = quiet(ring(3, 1))
    drawn = [record.body for contents in run.contents().values() for record in contents.records if record.kind == DRAWN]
    assert {draw.mechanism for draw in drawn} == {"gaussian"}
