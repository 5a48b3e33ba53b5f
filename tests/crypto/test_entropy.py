from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.crypto.entropy import NONCE_BYTES, SALT_BYTES, Entropy, SeededEntropy, SystemEntropy, random_bytes
from tests.support.known import known, names


@pytest.mark.parametrize("row", known("crypto_entropy"), ids=names("crypto_entropy"))
def test_known_answers(row: dict[str, Any]) -> None:
    source = SeededEntropy(row["seed"], row["stream"])
    assert source.salt().hex() == row["salt"]
    assert source.nonce().hex() == row["nonce"]
    assert source.seed().hex() == row["seed_bytes"]


@pytest.mark.parametrize("make", [SystemEntropy, lambda: SeededEntropy(1, "a")])
def test_lengths_are_right_and_nothing_comes_twice(make: Any) -> None:
    source: Entropy = make()
    drawn = [draw() for _ in range(2000) for draw in (source.salt, source.nonce, source.seed)]
    assert [len(item) for item in drawn[:3]] == [16, 24, 32]
    assert len({len(item) for item in drawn}) == 3
    starts = {item[:16] for item in drawn}
    assert len(starts) == len(drawn)


@given(st.integers(), st.text(), st.integers(), st.text())
def test_seed_and_stream_name_the_bytes(seed: int, stream: str, other: int, name: str) -> None:
    first = SeededEntropy(seed, stream).nonce()
    assert first == SeededEntropy(seed, stream).nonce()
    assert (first == SeededEntropy(other, name).nonce()) == ((seed, stream) == (other, name))


def test_blocks_are_drawn_seldom_and_seeds_never_from_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def urandom(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    monkeypatch.setattr(os, "urandom", urandom)
    source = SystemEntropy()
    assert asked == []
    for _ in range(256):
        source.salt()
    assert asked == [4096]
    source.salt()
    source.seed()
    assert asked == [4096, 4096, 32]
    assert random_bytes(5) == bytes(5)


def test_a_fork_drops_the_block() -> None:
    """The child gets what its parent did not take, and so would both."""
    source = SystemEntropy()
    source.salt()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, source.salt() + source.nonce())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        drawn = end.read()
    os.waitpid(child, 0)
    assert len(drawn) == SALT_BYTES + NONCE_BYTES
    assert drawn[:SALT_BYTES] != source.salt()
    assert drawn[SALT_BYTES:] != source.nonce()
    assert drawn[:SALT_BYTES] not in source._block


def test_nothing_drawn_is_shown() -> None:
    for source in (SystemEntropy(), SeededEntropy(123456, "node 3")):
        source.salt()
        assert repr(source) == f"{type(source).__name__}()"
