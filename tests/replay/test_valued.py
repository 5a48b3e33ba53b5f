from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from p2pdp.core.ids import CURATOR, is_user
from p2pdp.core.messages import FINISHED, TOTAL
from p2pdp.core.step import Message
from p2pdp.ledger.records import (
    INPUTS,
    POOL,
    PUBLISHED,
    RECEIVED,
    SALT_BYTES,
    SENT,
    Contents,
    Record,
    public_message,
    read,
    to_skeleton,
)
from p2pdp.replay.valued import WithoutValues, mispublished, misvalued
from p2pdp.wire.codec import pack_message, pack_value, unpack_value
from tests.support.gossips import gossip
from tests.support.pairwise_world import pairwise
from tests.support.runs import HISTOGRAM, Run, quiet, ring, walk
from tests.support.shuffle_specs import shuffle

TEXTS = [
    ring(4, 2),
    walk(4, 20),
    ring(3, 2, **HISTOGRAM),
    gossip(5, "ring"),
    shuffle(5),
    pairwise(5, terms="survivors_min = 3"),
]


def both(run: Run, user: int) -> tuple[Contents, Contents]:
    return run.contents()[user], read(run.evidence.private[user])


def judged(run: Run, user: int, view: Contents, private: Contents | None) -> object:
    return misvalued(run.plan, run.evidence.roster, user, view, private)


@pytest.mark.parametrize("text", TEXTS)
def test_honest_ledgers_follow_value_for_value(text: str) -> None:
    run = quiet(text)
    for user in range(run.plan.n):
        assert judged(run, user, *both(run, user)) is None
    assert mispublished(run.plan, run.contents()[CURATOR]) is None


def changed(contents: Contents, which: Callable[[Record], bool], change: Callable[[object], object]) -> Contents:
    """The first such record with another value, as its owner could have written it."""
    records = list(contents.records)
    at = next(at for at, one in enumerate(records) if which(one))
    value = records[at].value or b""
    salt, content = value[:SALT_BYTES], unpack_value(value[SALT_BYTES:])
    records[at] = replace(records[at], value=salt + pack_value(change(content)))
    return Contents(records, contents.skeleton, contents.torn_bytes)


def is_sent_value(record: Record) -> bool:
    return record.kind == SENT and bool(record.value)


@pytest.mark.parametrize("text", [ring(4, 2), walk(4, 20), gossip(5, "ring")])
def test_a_value_that_follows_from_nothing_is_found_at_its_record(text: str) -> None:
    run = quiet(text)
    view, private = both(run, 1)
    forged = changed(view, is_sent_value, lambda value: value + (2**40 if isinstance(value, int) else 0.5))  # type: ignore[operator]
    at = next(one.index for one in view.records if is_sent_value(one))
    found = misvalued(run.plan, run.evidence.roster, 1, forged, private)
    assert found is not None
    assert (found.peer, found.at) == (1, at)


def test_an_input_beyond_the_bounds_of_the_spec_is_found() -> None:
    run = quiet(ring(4, 2))
    view, private = both(run, 1)
    forged = changed(private, lambda one: one.kind == INPUTS, lambda values: [value + 2**45 for value in values])  # type: ignore[attr-defined]
    found = misvalued(run.plan, run.evidence.roster, 1, view, forged)
    assert found is not None
    assert (found.peer, found.at) == (1, None)


def test_a_draw_that_chance_does_not_give_is_found() -> None:
    run = quiet(ring(4, 2))
    view, private = both(run, 0)
    far = int(100 * run.plan.plan.noise.scale)
    forged = changed(private, lambda one: one.kind == POOL, lambda values: [far for _ in values])  # type: ignore[attr-defined]
    found = misvalued(run.plan, run.evidence.roster, 0, view, forged)
    assert found is not None
    assert "chance" in found.what


def test_what_lacks_values_is_said_and_is_no_problem() -> None:
    run = quiet(ring(4, 2))
    view, private = both(run, 1)
    bare = read(to_skeleton(run.evidence.private[1]))
    for one, other in ((view, None), (view, bare), (read(to_skeleton(run.evidence.views[1])), private)):
        with pytest.raises(WithoutValues):
            judged(run, 1, one, other)


@pytest.mark.parametrize("text", [ring(4, 2), gossip(5, "ring", 'rounds = 4\npublish = "all"')])
def test_a_total_that_is_not_that_of_what_came_is_the_curator_s(text: str) -> None:
    run = quiet(text)
    curator = run.contents()[CURATOR]
    forged = changed(curator, lambda one: one.kind == PUBLISHED, lambda value: value + 1000)  # type: ignore[operator]
    found = mispublished(run.plan, forged)
    assert found is not None
    assert found.peer == CURATOR
    assert forged.records[found.at or 0].kind == PUBLISHED


@pytest.mark.parametrize(("text", "refused"), [(ring(4, 2), FINISHED), (gossip(5, "ring"), TOTAL)])
def test_what_the_curator_refuses_is_no_part_of_the_result(text: str, refused: str) -> None:
    run = quiet(text)
    curator = run.contents()[CURATOR]
    part, message = bytes(SALT_BYTES) + pack_value(1000), Message(refused, (0, 1) if refused == TOTAL else ())
    records = list(curator.records)
    at = next(at for at, one in enumerate(records) if one.kind == PUBLISHED)
    came = next(one for one in records if one.kind == RECEIVED and is_user(one.body.sender))
    body = came.body._replace(message=pack_message(message))
    records.insert(at, replace(came, body=body, value=part))
    assert mispublished(run.plan, Contents(records, False, 0)) is None


def test_what_is_published_before_its_totals_came_is_found() -> None:
    curator = quiet(ring(4, 2)).contents()[CURATOR]
    kept = [one for one in curator.records if not (one.kind == RECEIVED and public_message(one).type == TOTAL)]
    found = mispublished(quiet(ring(4, 2)).plan, Contents(kept, False, 0))
    assert found is not None
    assert found.peer == CURATOR
