"""Every record of every view at hand as plain values, for `p2pdp views`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import Peer, peer_name
from p2pdp.core.messages import custody_of
from p2pdp.core.step import Message
from p2pdp.ledger import records
from p2pdp.ledger.evidence import Evidence
from p2pdp.ledger.messages import carries_message, public_message, whole_message
from p2pdp.ledger.records import DRAWN, KIND_NAMES, RECEIVED, SENT, Record


def view_lines(evidence: Evidence, grid_step: float) -> Iterator[dict[str, Any]]:
    """One entry a record, of the kinds received, sent, own, published and drawn.

    Values are in data units, and null where there are none: draws, skeletons, messages without a value.
    """
    for peer, data in sorted(evidence.views.items()):
        try:
            contents = records.read(data)
        except records.LedgerError as error:
            raise VerificationFailed(f"the ledger of {peer_name(peer)}: {error}") from None
        for record in contents.records:
            if record.kind == DRAWN:
                yield _line(peer, record, None, record.body[1], None, None, None)
            elif carries_message(record):
                message = whole_message(record) if not contents.skeleton else public_message(record)
                yield _message_line(peer, record, message, grid_step)


def _message_line(peer: Peer, record: Record, message: Message, grid_step: float) -> dict[str, Any]:
    other: Peer | None = None
    if record.kind == RECEIVED:
        other = record.body[1]
    elif record.kind == SENT:
        other = record.body[0]
    custody = custody_of(message)
    token, step = (None, None) if custody is None else (custody.item, custody.step)
    return _line(peer, record, other, message.type, token, step, _values(message.value, grid_step))


def _line(
    peer: Peer,
    record: Record,
    other: Peer | None,
    kind: str,
    token: int | None,
    step: int | None,
    values: list[float] | None,
) -> dict[str, Any]:
    return {
        "node": peer_name(peer),
        "index": record.index,
        "kind": KIND_NAMES[record.kind],
        "peer": None if other is None else peer_name(other),
        "type": kind,
        "token": token,
        "step": step,
        "values": values,
        "digest": None if record.digest == records.NO_VALUE_DIGEST else record.digest.hex(),
    }


def _values(value: Any, grid_step: float) -> list[float] | None:
    if value is None or isinstance(value, bytes):
        return None
    if isinstance(value, int | float):
        return [value * grid_step]
    return [float(part) * grid_step for part in value]
