"""Merkle trees as RFC 6962, section 2.1 defines them: SHA-256, with one prefix for leaves and another for nodes.

Guarantee: under one root each place of a list of a known size has one leaf. `root_of` computes the root from some
leaves and a proof, which is what `Tree.proof` returns for the same places: a hash for each subtree beside theirs, from
below and from the left. No proof is longer or shorter than its places and the size demand.

The caller owes: the size comes from whoever is believed about the root, since a proof for one size may fit another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32

_LEAF: Final = b"\0"
_NODE: Final = b"\1"


class TreeError(ValueError):
    """Places or a proof that no tree of this size has."""


class Tree:
    def __init__(self, leaves: Iterable[bytes]) -> None:
        """Hash all leaves, and keep what is needed for proofs."""
        self._levels = [[_leaf(data) for data in leaves]]
        while len(below := self._levels[-1]) > 1:
            above = [_node(*below[at : at + 2]) for at in range(0, len(below) - 1, 2)]
            self._levels.append(above + below[len(below) - len(below) % 2 :])

    @property
    def root(self) -> bytes:
        return self._levels[-1][0] if self._levels[-1] else sha256().digest()

    def proof(self, places: Iterable[int]) -> bytes:
        """Return what `root_of` needs beside the leaves at these places."""
        proof: list[bytes] = []
        known = _checked(places, len(self._levels[0]))
        for level in self._levels[:-1]:
            held = set(known)
            proof += [level[at ^ 1] for at in known if at ^ 1 < len(level) and at ^ 1 not in held]
            known = sorted({at >> 1 for at in known})
        return b"".join(proof)


def root_of(size: int, leaves: Mapping[int, bytes], proof: bytes) -> bytes:
    """Return the root of the only tree of this size that has these leaves at these places and fits the proof."""
    known = {place: _leaf(leaves[place]) for place in _checked(leaves, size)}
    beside = iter([proof[at : at + HASH_BYTES] for at in range(0, len(proof), HASH_BYTES)])
    while size > 1:
        above: dict[int, bytes] = {}
        for place, mine in known.items():  # from the left
            if place ^ 1 >= size:
                above[place >> 1] = mine
            elif place >> 1 not in above:
                other = known.get(place ^ 1) or next(beside, None)
                if other is None or len(other) != HASH_BYTES:
                    raise TreeError("the proof is too short")
                above[place >> 1] = _node(other, mine) if place & 1 else _node(mine, other)
        known, size = above, (size + 1) // 2
    if next(beside, None) is not None:
        raise TreeError("the proof is too long")
    return known[0]


def _checked(places: Iterable[int], size: int) -> list[int]:
    found = sorted(set(places))
    if not found or not 0 <= found[0] <= found[-1] < size:
        raise TreeError(f"a tree of {size} has no such places")
    return found


def _leaf(data: bytes) -> bytes:
    return sha256(_LEAF + data).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()
