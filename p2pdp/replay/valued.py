"""Replay one user's records with the values in its ledgers, by the machine that it ran.

This is the replay of `player.py` with numbers in place of symbols: inputs and draws are those of the private ledger.
What the user then sends must be what its view says, value for value, every input must be within the bounds of the spec,
and no draw may be one that chance never gives. Whoever has its own key can still write other inputs and draws within
these limits into its own ledgers: no check finds that.

Integers, bytes and vectors of them must be the same. Floats may differ by what another processor rounds otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.events import Event, Received
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import OPENED_REPORT, OUT, RESULT, TOTAL, Exclusion, Item, OpenedReport
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SALT_BYTES
from p2pdp.crypto.roster import Roster
from p2pdp.crypto.sealed import seal_to
from p2pdp.ledger.records import (
    CLOSED,
    DRAWN,
    INPUTS,
    OPENED,
    OWN,
    PAIRED,
    POOL,
    PUBLISHED,
    RECEIVED,
    SENT,
    Contents,
    LedgerError,
    Record,
    whole_message,
)
from p2pdp.mechanisms.grid import NOISE_TAIL
from p2pdp.mechanisms.sampler import StreamSampler
from p2pdp.protocols.learning import is_built_in
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.findings import Finding, NotFollowed, not_followed
from p2pdp.replay.player import CutShort, Player
from p2pdp.replay.published import with_collector
from p2pdp.tasks.reports import ReportInputs
from p2pdp.wire.codec import CodecError, unpack_value

_ROUNDING: Final = 1e-9
_STEPS: Final = 8.0  # of the grid of noise, by which a float may be rounded otherwise
_TAILED: Final = frozenset({"gaussian", "laplace"})


class WithoutValues(Exception):
    """The private ledger does not hold what a replay with values needs. The text says what is missing."""


def misvalued(run: RunPlan, roster: Roster, user: Peer, view: Contents, private: Contents | None) -> Finding | None:
    """Return the first record of a user's view whose value does not follow from its ledgers; None if all do.

    Raise `WithoutValues` where the ledgers do not hold the values that this takes.
    """
    if view.skeleton:
        raise WithoutValues("no values at hand")
    if private is None:
        raise WithoutValues("private ledger not there")
    if private.skeleton:
        raise WithoutValues("the private ledger no longer holds inputs and draws")
    if not is_built_in(run.spec):
        raise WithoutValues("the objective is not at hand")
    try:
        _Valued(run, roster, user, view, private).run_all()
    except NotFollowed as error:
        return error.findings[0]
    except (CodecError, LedgerError, ArithmeticError, LookupError, TypeError, ValueError):
        return Finding(user, None, "a value in its ledgers cannot be read, or is of a kind that the protocol has not")
    return None


class _Valued(Player):
    def __init__(self, run: RunPlan, roster: Roster, user: Peer, view: Contents, private: Contents) -> None:
        self._roster = roster
        self._pools = {record.body.number: record for record in private.records if record.kind == POOL}
        self._drawn: dict[int, Sequence[Any]] = {}
        self._keys: dict[tuple[Peer, int], bytes] = {}
        self._values = _inputs_in(private)
        self._slack = _slack(run)
        super().__init__(run, user, view)
        for place, value in enumerate(self._values):
            if not _within(run, user, value):
                raise not_followed(user, None, f"its value {place} is not within the bounds of the spec")

    def run_all(self) -> None:
        while self.cursor < len(self.records):
            if self.records[self.cursor].kind in (OPENED, CLOSED):
                self.cursor += 1
                continue
            try:
                self.run_event(self.event(None))
            except CutShort:
                return

    def _symbols(self, user: Peer, values: int) -> Any:
        inputs: Any = self._run.protocol.inputs_again(self._run.plan, self._values)
        if isinstance(inputs, ReportInputs):
            inputs = inputs.sealed_with(partial(seal_to, self._roster.entry(CURATOR).box))
        return inputs

    def event(self, value: Any) -> Event:
        record = self.records[self.cursor]
        if record.kind == RECEIVED:
            return Received(record.body.sender, whole_message(record))
        return super().event(value)

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        at = self.cursor
        super().noise(mechanism, shape)
        record = self.records[at]
        assert record.kind == DRAWN
        drawn = self._pool(record.body.pool)
        if not 0 <= record.body.offset < len(drawn):
            raise self.mismatch(record, "names a draw that the private ledger does not hold")
        value = drawn[record.body.offset]
        if mechanism.name in _TAILED and _largest(value) > NOISE_TAIL * mechanism.scale + 1.0:
            raise self.mismatch(record, "is a draw that chance does not give")
        return value

    def _pool(self, number: int) -> Sequence[Any]:
        if number not in self._drawn:
            record = self._pools.get(number)
            if record is None or record.value is None:
                raise WithoutValues("the private ledger no longer holds inputs and draws")
            values = unpack_value(record.value[SALT_BYTES:])
            self._drawn[number] = values if isinstance(values, list) else []
        return self._drawn[number]

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> Any:
        at = self.cursor
        super().pair(peer, number, mechanism, shape)
        record = self.records[at]
        assert record.kind == PAIRED
        self._keys[peer, number] = (record.value or b"")[SALT_BYTES:]
        return StreamSampler(self._keys[peer, number]).batch(mechanism, shape, 1)[0]

    def pair_key(self, peer: Peer, number: int) -> Any:
        if (peer, number) not in self._keys:
            raise WithoutValues("a key that it shares is not in its ledgers")
        return self._keys[peer, number]

    def _expect(self, record: Record, message: Message) -> None:
        whole = whole_message(record)
        if whole.type != message.type or list(whole.fields) != list(message.fields):
            raise self.mismatch(record, "is not the message that the protocol sends here")
        if not _same(whole.value, message.value, self._slack):
            raise self.mismatch(record, "holds another value than its inputs, its draws and what it received lead to")


def _inputs_in(private: Contents) -> list[Any]:
    for record in private.records:
        if record.kind == INPUTS and record.value:
            return list(unpack_value(record.value[SALT_BYTES:]))
    raise WithoutValues("the private ledger no longer holds inputs and draws")


def _within(run: RunPlan, user: Peer, value: Any) -> bool:
    """Return whether an input that is added up is within the bounds of the spec, up to a step of the grid."""
    clip = run.spec.data.clip
    if clip is None or run.protocol.analysis().learning is not None or getattr(value, "shape", ()) != run.plan.shape:
        return True
    if not (_is_number(value) or hasattr(value, "dtype")):
        return True
    step = 2.0**run.plan.grid_exponent
    whole = isinstance(value, int) or getattr(getattr(value, "dtype", None), "kind", "f") == "i"
    unit = step if whole else 1.0
    lowest, highest = float(_low(value)) * unit, float(_high(value)) * unit
    low, high = clip
    rows = 1 if run.plan.records is None or run.rows is None else run.rows[user]  # of which the value is the sum
    return bool(rows * (low - step) <= lowest and highest <= rows * (high + step))


def _low(value: Any) -> Any:
    return value.min() if hasattr(value, "min") else value


def _high(value: Any) -> Any:
    return value.max() if hasattr(value, "max") else value


def _largest(value: Any) -> float:
    return float(abs(value).max()) if getattr(value, "size", 0) else float(abs(value)) if _is_number(value) else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _same(one: Any, other: Any, slack: float) -> bool:
    """Return whether two values are the same, floats up to rounding."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(_same(*pair, slack) for pair in zip(one, other, strict=True))
    if hasattr(one, "dtype") or hasattr(other, "dtype"):
        if getattr(one, "shape", None) != getattr(other, "shape", None):
            return False
        if one.dtype.kind != "f" or not one.size:
            return bool((one == other).all())
        return float(abs(one - other).max()) <= slack + _ROUNDING * max(_largest(one), _largest(other))
    if isinstance(one, float) and _is_number(other):
        return bool(abs(one - other) <= slack + _ROUNDING * max(abs(one), abs(other)))
    return type(one) is type(other) and bool(one == other)


def mispublished(run: RunPlan, curator: Contents) -> Finding | None:
    """Return the record by which a curator published or sent what its totals, results or reports do not come to."""
    collector = run.collector()
    try:
        if collector is None:
            return _mispublished(run, curator)
        _, _, found = with_collector(run, collector, curator, lambda _from, _to, _number, one: whole_message(one).value)
        return None if found is None else _unlike(curator, found[0], _slack(run))
    except NotFollowed as error:
        return error.findings[0]
    except (CodecError, LedgerError, ArithmeticError, LookupError, TypeError, ValueError):
        return Finding(CURATOR, None, "what it received gives no result")


def _mispublished(run: RunPlan, curator: Contents) -> Finding | None:
    reports: dict[int, Any] = {}
    totals: dict[int, Any] = {}
    results: dict[Peer, Any] = {}
    out: set[Peer] = set()
    published = False
    for record in curator.records:
        if record.kind == PUBLISHED:
            if published or not _complete(run, totals, results, out):
                raise not_followed(CURATOR, record.index, "is not published by the protocol here")
            published = True
            ordered = [value for found in (reports, totals, results) for _, value in sorted(found.items())]
            result = run.protocol.publish(run.plan, [value for value in ordered if value is not None])
            found = _unlike(curator, result, _slack(run))
            if found is not None:
                return found
        if record.kind not in (RECEIVED, OWN):
            continue
        message = whole_message(record)
        sender = CURATOR if record.kind == OWN else record.body.sender
        if message.type == OPENED_REPORT and record.kind == OWN:
            reports[OpenedReport(*message.fields).name] = message.value
        elif message.type == OUT and sender == BOOTSTRAP:
            out.add(Exclusion(*message.fields).peer)
        elif message.type == run.handed_in and is_user(sender) and sender not in out:  # the other one is refused
            came = totals if message.type == TOTAL else results
            came.setdefault(Item(*message.fields).item if message.type == TOTAL else sender, message.value)
    return None


def _complete(run: RunPlan, totals: Sized, results: Mapping[Peer, Any], out: AbstractSet[Peer]) -> bool:
    """Return whether all is there that the curator waits for."""
    if run.completes_per_user:
        return set(range(run.n)) - out <= results.keys()
    return len(totals) == len(run.plan.starts)


def _unlike(curator: Contents, result: Any, slack: float) -> Finding | None:
    """Return the first record that publishes or sends another result."""
    for record in curator.records:
        if record.kind in (PUBLISHED, SENT):
            message = whole_message(record)
            if message.type == RESULT and not _same(message.value, result, slack):
                return Finding(CURATOR, record.index, "holds another result than what the curator received comes to")
    return None


def _slack(run: RunPlan) -> float:
    return float(_STEPS * 2.0**run.plan.grid_exponent)
