"""Secrets of the protocol: the seed of a user's own mask, parts of it at neighbours, and what secrets unfold to.

A seed is one draw of eight words. The first four are the key of the mask; the other four are the key of the polynomial
by which the first are shared [S79]: over the prime field just above 2^256, with a threshold as its number of
coefficients. So a restart shares the same, and fewer parts than the threshold tell nothing of the key, up to a
statistical distance below 2^-250 from coefficients that are uniform in the field.

In a replay a seed is a form, what is sent of it are `Share`s, and what unfolds is the source itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.ids import Peer
from p2pdp.core.values import LinearForm, Share
from p2pdp.mechanisms.sampler import StreamSampler

SEED_SHAPE: Final = (8,)
KEY_BYTES: Final = 32
PART_BYTES: Final = 33
PRIME: Final = 2**256 + 297

_WORDS: Final = 4
_COEFFICIENT_BYTES: Final = 64


def mask_key(seed: Any) -> Any:
    """Return the key of a user's own mask."""
    if isinstance(seed, LinearForm):
        (source,) = seed.expand()
        return Share(source)
    return seed[:_WORDS].astype("<i8").tobytes()


def parts_of(seed: Any, threshold: int, peers: Sequence[Peer]) -> list[Any]:
    """Return each peer's part of the key; so many of them as the threshold give it back."""
    if isinstance(seed, LinearForm):
        (source,) = seed.expand()
        return [Share(source, place(peer), threshold) for peer in peers]
    words = seed.astype("<i8").tobytes()
    key = words[KEY_BYTES:]
    coefficients = [_coefficient(key, number) for number in range(1, threshold)]
    coefficients.append(int.from_bytes(words[:KEY_BYTES], "little"))  # last, where Horner's rule adds it
    return [_at(coefficients, place(peer)).to_bytes(PART_BYTES, "little") for peer in peers]


def place(peer: Peer) -> int:
    """Return where the polynomial is evaluated for a peer; the key is its value at 0."""
    return peer + 1


def combined(parts: Mapping[Peer, Any], threshold: int) -> Any:
    """Return the key that these parts belong to; raise `ValueError` if they are too few."""
    if len(parts) < threshold:
        raise ValueError(f"a key of threshold {threshold} does not follow from {len(parts)} parts")
    some = sorted(parts.items())[:threshold]
    for _, part in some:
        if isinstance(part, LinearForm):  # of a user whose ledger is not at hand
            return part
    if isinstance(some[0][1], Share):
        return Share(some[0][1].source)
    places = [place(peer) for peer, _ in some]
    total = 0
    for here, (_, part) in zip(places, some, strict=True):
        above = below = 1
        for other in places:
            if other != here:
                above = above * other % PRIME
                below = below * (other - here) % PRIME
        total += int.from_bytes(part, "little") * above * pow(below, -1, PRIME)
    return (total % PRIME % 2**256).to_bytes(KEY_BYTES, "little")


def unfolded(key: Any, mechanism: Mechanism, shape: Shape) -> Any:
    """Return the draw that a key stands for."""
    if isinstance(key, LinearForm):
        return key
    if isinstance(key, Share):
        return LinearForm.of(key.source)
    return StreamSampler(key).batch(mechanism, shape, 1)[0]


def is_part(value: Any) -> bool:
    """Return whether a value may be one part of a key."""
    return type(value) is bytes and len(value) == PART_BYTES and int.from_bytes(value, "little") < PRIME


def is_key(value: Any) -> bool:
    return type(value) is bytes and len(value) == KEY_BYTES


def _coefficient(key: bytes, number: int) -> int:
    digest = blake2b(
        number.to_bytes(8, "big"), digest_size=_COEFFICIENT_BYTES, key=key, person=b"p2pdp sharing"
    ).digest()
    return int.from_bytes(digest, "little") % PRIME


def _at(coefficients: Sequence[int], here: int) -> int:
    value = 0
    for coefficient in coefficients:
        value = (value * here + coefficient) % PRIME
    return value
