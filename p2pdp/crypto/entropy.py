"""Salts, nonces and seeds: from the operating system in a live node, from a seed in the simulator.

Guarantee: `SystemEntropy` gives no byte twice, neither within a process nor to a process and its fork.
It draws salts and nonces in blocks, since one call into the system for each costs more than the box it
is for; seeds of keys are never taken from a block that stays in memory. `SeededEntropy` gives the same
bytes for the same seed and stream name, unrelated ones for any other.

The caller owes: one object belongs to one thread. Noise and routing choices do not come from here.
"""

from __future__ import annotations

import os
from hashlib import blake2b, shake_256
from typing import Final, Protocol
from weakref import WeakSet

SALT_BYTES: Final = 16
NONCE_BYTES: Final = 24
SEED_BYTES: Final = 32

_BLOCK_BYTES: Final = 4096


def random_bytes(count: int) -> bytes:
    """Return bytes from the operating system."""
    return os.urandom(count)


class Entropy(Protocol):
    """The common interface of a live node's and the simulator's entropy."""

    def salt(self) -> bytes: ...

    def nonce(self) -> bytes: ...

    def salt_and_nonce(self) -> tuple[bytes, bytes]:
        """Return a salt and a nonce, the same bytes as in two calls, where both are drawn for each message."""

    def seed(self) -> bytes: ...


_to_forget: Final[WeakSet[SystemEntropy]] = WeakSet()


def _forked() -> None:
    for entropy in _to_forget:
        entropy.forget()


os.register_at_fork(after_in_child=_forked)


class SystemEntropy:
    """Entropy of the operating system, fetched in blocks."""

    def __init__(self) -> None:
        """Fetch nothing yet, so that an object made before a fork does no harm either."""
        self._block = b""
        self._at = _BLOCK_BYTES
        _to_forget.add(self)

    def __repr__(self) -> str:
        return "SystemEntropy()"

    def _draw(self, count: int) -> bytes:
        at = self._at
        end = self._at = at + count
        if end > _BLOCK_BYTES:
            self._block = os.urandom(_BLOCK_BYTES)
            at, end = 0, count
            self._at = end
        return self._block[at:end]

    def salt_and_nonce(self) -> tuple[bytes, bytes]:
        at = self._at
        between = at + SALT_BYTES
        end = between + NONCE_BYTES
        if end > _BLOCK_BYTES:
            return self._draw(SALT_BYTES), self._draw(NONCE_BYTES)
        self._at = end
        block = self._block
        return block[at:between], block[between:end]

    def forget(self) -> None:
        """Drop what is left of the block in a child, after a fork: it is the parent's."""
        self._at = _BLOCK_BYTES

    def salt(self) -> bytes:
        return self._draw(SALT_BYTES)

    def nonce(self) -> bytes:
        return self._draw(NONCE_BYTES)

    def seed(self) -> bytes:
        return os.urandom(SEED_BYTES)


class SeededEntropy:
    """Reproducible bytes for the simulator: SHAKE-256 over a key and the number of the block."""

    def __init__(self, seed: int, stream: str) -> None:
        """Name a stream of its own for each node and purpose."""
        self._key = blake2b(f"{seed}/{stream}".encode(), digest_size=32, person=b"p2pdp-entropy").digest()
        self._blocks = 0
        self._block = b""
        self._at = 0

    def __repr__(self) -> str:
        return "SeededEntropy()"

    def _draw(self, count: int) -> bytes:
        at, end = self._at, self._at + count
        if end > len(self._block):
            self._block = shake_256(self._key + self._blocks.to_bytes(8, "big")).digest(_BLOCK_BYTES)
            self._blocks += 1
            at, end = 0, count
        self._at = end
        return self._block[at:end]

    def salt(self) -> bytes:
        return self._draw(SALT_BYTES)

    def nonce(self) -> bytes:
        return self._draw(NONCE_BYTES)

    def salt_and_nonce(self) -> tuple[bytes, bytes]:
        return self._draw(SALT_BYTES), self._draw(NONCE_BYTES)

    def seed(self) -> bytes:
        return self._draw(SEED_BYTES)
