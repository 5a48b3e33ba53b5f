"""A fresh random graph each round that nobody knows: both ends of a pair toss the same coin.

Each pair of users shares a secret that nobody else has (the key of their channel). Whether they are neighbours
in a round is a keyed hash of the round below a threshold, so both know it and a third one cannot tell it from
chance. A node tosses one coin for everybody else in each round: O(n) hashes. Erdos and Renyi's graph is the only
kind that pairs can draw alone; `regular` and `geometric` depend on more than the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer

_HASH_BYTES: Final = 8
_SCALE: Final = 1 << (8 * _HASH_BYTES)


def edge_probability(n: int, probability: float | None) -> float:
    """As given, else 2 ln n / n, at which the graph of a round is connected with a probability near 1."""
    if probability is None:
        return min(1.0, 2.0 * math.log(n) / n) if n > 1 else 0.0
    return probability


def are_neighbours(secret: bytes, round_number: int, probability: float) -> bool:
    """The coin of a pair in a round; `secret` is the same at both ends."""
    if not 0.0 <= probability <= 1.0:
        raise UsageError("[graph] probability: must be between 0 and 1.")
    tossed = blake2b(
        round_number.to_bytes(8, "big"), key=secret, digest_size=_HASH_BYTES, person=b"p2pdp coin"
    ).digest()
    return int.from_bytes(tossed, "big") < int(probability * _SCALE)


def neighbours_in(secrets: Mapping[Peer, bytes], round_number: int, probability: float) -> list[Peer]:
    """Whom a user meets in a round, of all with whom it shares a secret."""
    return [peer for peer in sorted(secrets) if are_neighbours(secrets[peer], round_number, probability)]
