"""Calls to a node by somebody who is not in its run."""

from __future__ import annotations

from p2pdp.wire.frames import prefix
from tests.support.capture import CALLED_BYTES


def called(peer: int, *frames: bytes) -> bytes:
    return peer.to_bytes(CALLED_BYTES, "big", signed=True) + b"".join(prefix(frame) for frame in frames)
