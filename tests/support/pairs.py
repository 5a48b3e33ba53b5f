"""Draws for tests of machines: shared ones from seeds, and none for machines that share no draws."""

from __future__ import annotations

from typing import Any, NoReturn

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.ids import Peer
from p2pdp.crypto.pair_coins import noise_key
from p2pdp.mechanisms.sampler import StreamSampler


class NoPairs:
    """The part of `Draws` that says what users share, for machines that ask for none of it."""

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> Any:
        raise AssertionError("this machine shares no draws")

    def pair_key(self, peer: Peer, number: int) -> NoReturn:
        raise AssertionError("this machine shares no draws")


def pair_key_of(seed: int, user: Peer, peer: Peer, number: int) -> bytes:
    """Return the key of a shared draw, the same for both users."""
    return noise_key(f"{seed} {sorted((user, peer))}".encode(), number)


class PairDraws:
    """The same part for one user, whose secrets follow from a seed that is the same for everybody."""

    def __init__(self, seed: int, user: Peer) -> None:
        self.pair_seed, self.user = seed, user

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> Any:
        return StreamSampler(self.pair_key(peer, number)).batch(mechanism, shape, 1)[0]

    def pair_key(self, peer: Peer, number: int) -> bytes:
        return pair_key_of(self.pair_seed, self.user, peer, number)
