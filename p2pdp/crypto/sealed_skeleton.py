"""Skeletons sealed to the auditor: the curator stores them and can neither open them nor tell their lengths.

Guarantee: `open_skeleton` returns what `seal_skeleton` was given, or raises `SealError`. The sealed bytes have the
length `sealed_bytes(size)` for any skeleton that fits into `size`; a longer one doubles the size until it fits. The
same skeleton, secret and key give the same bytes, so that a node can hand in again after a restart.

The caller ensures: `secret` is 32 secret bytes. The ephemeral key is derived from it and from all that is sealed, so
two different skeletons never share a key.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.sealed import SEAL_BYTES, SealError, open_sealed, seal_to
from p2pdp.wire.padding import content_end

MAGIC: Final = b"p2pdp sealed 01\n"
_MARKER: Final = b"\x80"
_PERSON: Final = b"p2pdp skeleton"


def sealed_bytes(size: int) -> int:
    """Return the length of a sealed skeleton that was padded to this size."""
    return len(MAGIC) + SEAL_BYTES + size


def is_sealed(data: bytes) -> bool:
    return data.startswith(MAGIC)


def seal_skeleton(skeleton: bytes, auditor_public: bytes, secret: bytes, size: int) -> bytes:
    """Pad the skeleton to `size`, or the first doubling of it that fits, and seals it to the auditor."""
    while size < len(skeleton) + len(_MARKER):
        size *= 2
    padded = (skeleton + _MARKER).ljust(size, b"\0")
    derived = blake2b(auditor_public, digest_size=32, key=secret, person=_PERSON)
    derived.update(blake2b(padded, digest_size=32).digest())
    return MAGIC + seal_to(auditor_public, padded, derived.digest())


def open_skeleton(sealed: bytes, key: RunKey) -> bytes:
    if not is_sealed(sealed):
        raise SealError("not a sealed skeleton")
    content = open_sealed(key, sealed[len(MAGIC) :])
    end = content_end(content)
    if end is None:
        raise SealError("the padding of this skeleton is malformed")
    return content[:end]
