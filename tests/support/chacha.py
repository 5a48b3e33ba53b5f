"""The key stream of ChaCha20 from its words, to compare with that of a library."""

from __future__ import annotations

import numpy as np


def chacha20(key: bytes, *, nonce: bytes, size: int) -> bytes:
    """The cipher of RFC 8439, section 2.4, from its words."""
    start = np.frombuffer(b"expand 32-byte k" + key + bytes(4) + nonce, dtype="<u4")
    blocks = np.tile(start, (-(-size // 64), 1)).T.copy()
    blocks[12] = np.arange(blocks.shape[1])
    words = blocks.copy()

    def turned(word: np.ndarray, bits: int) -> np.ndarray:
        return np.asarray((word << np.uint32(bits)) | (word >> np.uint32(32 - bits)))

    columns = [(at, 4 + at, 8 + at, 12 + at) for at in range(4)]
    diagonals = [(at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4) for at in range(4)]
    for a, b, c, d in 10 * (columns + diagonals):
        for one, other, onto, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            words[one] += words[other]
            words[onto] = turned(words[onto] ^ words[one], bits)
    return (words + blocks).T.astype("<u4").tobytes()[:size]
