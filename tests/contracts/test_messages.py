"""Every message that a protocol declares, somebody else's protocol included: round trips, refusals and routes."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.fields import Bytes, Integer, ListOf, Maybe, Number, Row, Text, fields_of
from p2pdp.core.ids import is_user, peer_name
from p2pdp.core.messages import MALFORMED, MessageTable, MessageType, Value
from p2pdp.core.step import Message
from p2pdp.files.guide import page
from p2pdp.ledger.records import OWN, RECEIVED, SENT, carries_message, public_message
from p2pdp.protocols import names, protocol
from p2pdp.sim.faults import Crash
from p2pdp.wire.codec import pack_message, pack_value, unpack_message
from tests.contracts.frozen import specs
from tests.support.runs import Run, quiet, run_of
from tests.support.third_party import ring_drift

TABLES: Final[dict[str, MessageTable]] = {
    **{name: protocol(name).messages for name in names()},
    ring_drift.PROTOCOL.name: ring_drift.PROTOCOL.messages,
}
_FOUND: Final = {id(one): (name, table, one) for name, table in TABLES.items() for one in table}  # common ones once
MESSAGES: Final = [pytest.param(table, one, id=f"{name}-{one.name}") for name, table, one in _FOUND.values()]
OTHERS: Final = (None, True, 1.5, "a", b"a", [], [[]], -(1 << 62), 1 << 63)


def fitting(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, Integer):
        return st.integers(kind.least, kind.most)
    if isinstance(kind, Number):
        return st.floats(allow_nan=False, allow_infinity=False)
    if isinstance(kind, Bytes):
        return st.binary(min_size=kind.exactly or 0, max_size=kind.exactly or kind.most or 40)
    if isinstance(kind, Text):
        return st.text(max_size=kind.most or 40)
    if isinstance(kind, Row):
        return st.lists(fitting(kind.item), min_size=len(kind.names), max_size=len(kind.names))
    if isinstance(kind, ListOf):
        return st.lists(fitting(kind.item), max_size=min(4, kind.most or 4))
    assert isinstance(kind, Maybe)
    return st.none() | fitting(kind.item)


@cache
def some(one: MessageType) -> st.SearchStrategy[Message]:
    value = {
        Value.NONE: st.none(),
        Value.MAYBE: st.none() | st.integers(-9, 9),
        Value.ALWAYS: st.integers(-9, 9) | st.binary(max_size=9),
        Value.FILLER: st.binary(max_size=9),
    }[one.value]
    fields = st.tuples(*[fitting(kind) for _, kind in fields_of(one.fields)])
    return st.builds(Message, st.just(one.name), fields, value)


@pytest.mark.parametrize(("table", "one"), MESSAGES)
@settings(max_examples=30)
@given(data=st.data())
def test_a_message_of_its_form_comes_back_and_passes(table: MessageTable, one: MessageType, data: Any) -> None:
    message = data.draw(some(one))
    assert table.problem(message) is None
    back = unpack_message(pack_message(message), pack_value(message.value))
    assert back == message
    assert tuple(one.read(back)) == message.fields
    assert (table.custody_of(back) is not None) is one.custody


@pytest.mark.parametrize(("table", "one"), MESSAGES)
@settings(max_examples=30)
@given(data=st.data())
def test_any_other_form_is_refused(table: MessageTable, one: MessageType, data: Any) -> None:
    message = data.draw(some(one))
    fields, kinds = message.fields, [kind for _, kind in fields_of(one.fields)]
    assert table.problem(message._replace(fields=(*fields, 0))) == MALFORMED
    if fields:
        assert table.problem(message._replace(fields=fields[:-1])) == MALFORMED
    for at, kind in enumerate(kinds):
        for other in OTHERS:
            wrong = message._replace(fields=(*fields[:at], other, *fields[at + 1 :]))
            assert (table.problem(wrong) is None) == kind.fits(other)
    refused = {Value.NONE: 5, Value.ALWAYS: None, Value.FILLER: None}
    if one.value in refused:
        assert table.problem(message._replace(value=refused[one.value])) == MALFORMED


@pytest.mark.parametrize(("table", "one"), MESSAGES)
def test_fields_are_of_the_kinds_that_cross_the_wire_and_every_route_names_two_parties(
    table: MessageTable, one: MessageType
) -> None:
    places = {"user", "bootstrap", "curator"}
    for route in one.routes.split(", "):
        sender, _, receiver = route.partition(" -> ")
        assert (sender in places and receiver in {*places, "itself"}) or sender.removesuffix(" publishes") in places
    for _, kind in fields_of(one.fields):
        assert not any(kind.fits(other) for other in (True, (), {}, 1.0j))
    assert one.meaning


def role(peer: int) -> str:
    return "user" if is_user(peer) else peer_name(peer)


def told(run: Run) -> set[tuple[str, str]]:
    """The types of messages in the ledgers of a run, with the routes that they took."""
    found = set()
    for peer, contents in run.contents().items():
        for record in contents.records:
            if not carries_message(record):
                continue
            me, name = role(peer), public_message(record).type
            if record.kind == RECEIVED:
                found.add((name, f"{role(record.body.sender)} -> {me}"))
            elif record.kind == SENT:
                found.add((name, f"{me} -> {role(record.body.receiver)}"))
            else:
                found.add((name, f"{me} -> itself" if record.kind == OWN else f"{me} publishes"))
    return found


def declared(run: Run) -> set[tuple[str, str]]:
    return {(one.name, route) for one in run.plan.protocol.messages for route in one.routes.split(", ")}


SMALL: Final = {name: spec for name, spec in specs().items() if name.startswith("small:")}


@pytest.mark.parametrize("name", SMALL)
def test_what_runs_tell_goes_the_ways_that_are_declared(name: str) -> None:
    run = quiet(SMALL[name])
    assert told(run) <= declared(run)


@pytest.mark.parametrize("name", ["small:complete", "small:average", "small:randomized", "small:reports"])
def test_so_it_is_where_somebody_is_gone(name: str) -> None:
    run = run_of(SMALL[name], Crash(peer=2, at_record=8, down_s=None))
    found = told(run)
    assert found <= declared(run)
    assert {"out", "seen", "resolved", "excluded", "silent", "probe"} <= {kind for kind, _ in found}


def listed() -> dict[tuple[str, str], dict[str, int | None]]:
    """What the guide says that each party receives: by sender and receiver, messages with their numbers of fields."""
    found: dict[tuple[str, str], dict[str, int | None]] = {}
    for line in page("views").text.partition("## Messages")[2].partition("\n## ")[0].splitlines():
        receiver, _, sender = line.partition("|")[2].partition("|")[0].strip().partition(", from ")
        for name, fields in re.findall(r"`(\w+)`(?: \(([^)]*)\))?", "|".join(line.split("|")[2:3])):
            for one in [sender] if sender else ["user", "bootstrap", "curator"]:
                found.setdefault((one, receiver), {})[name] = len(fields.split(", ")) if fields else None
    return found


def test_the_guide_lists_every_message_that_a_party_receives() -> None:
    ways = listed()
    declared = {id(one): one for name in names() for one in protocol(name).messages}.values()
    for one in declared:
        for route in one.routes.split(", "):
            sender, _, receiver = route.partition(" -> ")
            if receiver in ("user", "bootstrap", "curator"):
                assert one.name in ways[sender, receiver], route
                assert ways[sender, receiver][one.name] in (None, len(fields_of(one.fields))), one.name
    known = {one.name for one in declared}
    assert {name for messages in ways.values() for name in messages} <= known
