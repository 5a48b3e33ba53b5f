"""A trace of all that a peer receives, one line of JSON a frame, for tests and reviewers (`--trace-wire`).

Guarantee: a line holds everything that an opened frame says apart from the values of messages: who sent it, the number,
type and fields of its message, and under `control` all the rest, whatever a payload has. So a control message that
tells more than it should shows here. Lines name routes: the caller keeps them where the ledger is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from p2pdp.core.ids import Peer, peer_name
from p2pdp.peer import payloads
from p2pdp.peer.link import Hello
from p2pdp.peer.payloads import Payload, parse_payload
from p2pdp.wire.codec import CodecError, unpack_message

Tap = Callable[[Peer, bytes], None]
"""Is called with the sender and the decrypted content of each authentic frame, before anything else is done with it."""

_FLAGS: Final = {name.lower(): getattr(payloads, name) for name in ("DATA", "CONTROL", "RESEND", "POKE", "PIECE")}


def wire_line(sender: Peer, content: bytes) -> bytes:
    """Return a frame's line; of a malformed one only the length, as a value in it cannot be told apart."""
    return json.dumps({"from": peer_name(sender), **_parts(content)}, allow_nan=False).encode() + b"\n"


def _parts(content: bytes) -> dict[str, Any]:
    nothing: dict[str, Any] = {"number": None, "type": None, "fields": None}
    try:
        payload = parse_payload(content)
    except CodecError:
        return {**nothing, "control": {"malformed": True, "bytes": len(content)}}
    control = _control(payload)
    if not payload.flags & payloads.DATA:
        return {**nothing, "control": control}
    control["value_bytes"] = len(payload.value)
    try:
        message = unpack_message(payload.message, b"")
    except CodecError:
        nothing["number"] = payload.number
        return {**nothing, "control": {**control, "malformed": True, "bytes": len(payload.message)}}
    return {
        "number": payload.number, "type": message.type, "fields": _plain(list(message.fields)), "control": control,
    }  # fmt: skip


def _control(payload: Payload) -> dict[str, Any]:
    """Return all parts of a payload but its message, also parts added later; empty lists are left out."""
    rest = {name: part for name, part in payload._asdict().items() if name not in ("number", "message", "value")}
    rest["flags"] = [name for name, bit in _FLAGS.items() if payload.flags & bit]
    if payload.hello:
        rest["hello"] = _hello(payload.hello)
    return {name: _plain(part) for name, part in rest.items() if part not in ([], None)}


def _hello(packed: list[Any]) -> Any:
    try:
        return asdict(Hello.unpacked(packed))
    except CodecError:
        return packed


def _plain(item: Any) -> Any:
    """Return the item for JSON, with bytes as hex."""
    if isinstance(item, bytes):
        return item.hex()
    if isinstance(item, list | tuple):
        return [_plain(part) for part in item]
    if isinstance(item, dict):
        return {name: _plain(part) for name, part in item.items()}
    return item
