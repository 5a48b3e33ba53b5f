"""Every record of every view at hand as plain values, for `p2pdp views`.

Nothing is verified here: a record that cannot be shown is a `VerificationFailed` that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import Peer, peer_name
from p2pdp.core.messages import OPENED_REPORT, MessageTable
from p2pdp.ledger import records
from p2pdp.ledger.records import (
    DRAWN,
    KIND_NAMES,
    PAIRED,
    RECEIVED,
    SENT,
    Record,
    carries_message,
    public_message,
    whole_message,
)
from p2pdp.mechanisms.reporting.contract import MalformedReport
from p2pdp.protocols import protocol
from p2pdp.replay.evidence import Evidence

_DRAWS: Final = (DRAWN, PAIRED)

Opened = Callable[[bytes], Any]  # a report without its seal -> its numbers, in steps of the grid


def view_lines(evidence: Evidence, grid_step: float, opened: Opened | None = None) -> Iterator[dict[str, Any]]:
    """Yield an entry for each record, of the kinds received, sent, own, published and drawn.

    A draw that two users share names the other user and the number of the draw. Values are in data units, and null
    where there are none: draws, skeletons, keys and parts of keys, messages without a value. Sealed reports are told by
    their digests; `opened` reads those that the curator opened.
    """
    table = protocol(evidence.spec.run.protocol).messages
    for peer in sorted(evidence.views):
        try:
            contents = evidence.contents(peer)
        except records.LedgerError as error:
            raise VerificationFailed(f"the ledger of {peer_name(peer)}: {error}") from None
        for record in contents.records:
            if record.kind not in _DRAWS and not carries_message(record):
                continue
            try:
                line = _line(peer, record, table, grid_step, opened, skeleton=contents.skeleton)
            except (records.LedgerError, MalformedReport, ValueError, TypeError, IndexError, OverflowError):
                name = f"{peer_name(peer)}, record {record.index}"
                raise VerificationFailed(f"the ledger of {name}: cannot be read; p2pdp verify says more") from None
            yield line


def _line(
    peer: Peer, record: Record, table: MessageTable, grid_step: float, opened: Opened | None, *, skeleton: bool
) -> dict[str, Any]:
    other: Peer | None = None
    token = step = values = None
    if record.kind in _DRAWS:
        kind = record.body.mechanism
        if record.kind == PAIRED:
            other, step = record.body.peer, record.body.number
    else:
        message = public_message(record) if skeleton else whole_message(record)
        kind, value = message.type, message.value
        if kind == OPENED_REPORT:
            value = value if opened is None or value is None else opened(value)
        values = _values(value, grid_step)
        token, step = table.item_of(message), table.step_of(message)
        if record.kind == RECEIVED:
            other = record.body.sender
        elif record.kind == SENT:
            other = record.body.receiver
    return {
        "node": peer_name(peer),
        "index": record.index,
        "kind": KIND_NAMES[DRAWN if record.kind == PAIRED else record.kind],
        "peer": None if other is None else peer_name(other),
        "type": kind,
        "token": token,
        "step": step,
        "values": values,
        "digest": None if record.digest == records.NO_VALUE_DIGEST else record.digest.hex(),
    }


def _values(value: Any, grid_step: float) -> list[float] | None:
    """Convert to data units: whole numbers are steps of the grid, and floats, which gossip exchanges, stay."""
    if value is None or isinstance(value, bytes):
        return None
    parts = [value] if isinstance(value, int | float) else value.tolist() if hasattr(value, "tolist") else value
    if any(isinstance(part, bytes) for part in parts):
        return None
    return [part if isinstance(part, float) else part * grid_step for part in parts]
