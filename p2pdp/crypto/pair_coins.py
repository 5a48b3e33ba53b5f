"""The coins and keys that a pair of users derives from its secret, which is made from the key of their channel.

Coins make a fresh random graph each round that nobody knows. A keyed hash of the round, compared with a threshold,
decides whether the two are neighbours in it, so both know it and a third party cannot tell it from chance. A node
tosses one coin for every other user in each round: O(n) work a node and round, eight rounds by one hash.

`noise_key` is the key from which both unfold the same noise. Whoever is given one learns that noise and nothing else
about the secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from p2pdp.core.ids import Peer

NOISE_KEY_BYTES: Final = 32
_SALT_BYTES: Final = 16
_COIN_BYTES: Final = 8
_COINS: Final = blake2b.MAX_DIGEST_SIZE // _COIN_BYTES  # rounds that one hash is enough for
_SCALE: Final = 1 << (8 * _COIN_BYTES)


def noise_key(secret: bytes, number: int) -> bytes:
    """Return the key of a pair's draw of this number."""
    return blake2b(
        number.to_bytes(8, "big"), digest_size=NOISE_KEY_BYTES, key=secret, person=b"p2pdp pair noise"
    ).digest()


def noise_salt(key: bytes) -> bytes:
    """Return the salt with which both ends record a key, so that its digests can be compared and not guessed."""
    return blake2b(b"", digest_size=_SALT_BYTES, key=key, person=b"p2pdp pair salt").digest()


class PairCoins:
    """One end's coins with everybody else; `secrets` are the same at both ends of a pair."""

    def __init__(self, secrets: Mapping[Peer, bytes]) -> None:
        self._secrets = sorted(secrets.items())
        self._block = -1
        self._tossed: list[bytes] = []  # for each peer the coins of the rounds of one block

    def neighbours_in(self, number: int, probability: float) -> list[Peer]:
        """Return the peers that this end meets in a round."""
        block, place = divmod(number, _COINS)
        if block != self._block:
            what = block.to_bytes(8, "big")
            self._tossed = [blake2b(what, key=secret, person=b"p2pdp coin").digest() for _, secret in self._secrets]
            self._block = block
        start, below = place * _COIN_BYTES, int(probability * _SCALE)
        return [
            peer
            for (peer, _), coins in zip(self._secrets, self._tossed, strict=True)
            if int.from_bytes(coins[start : start + _COIN_BYTES], "big") < below
        ]
