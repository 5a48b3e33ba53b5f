from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import UNIFORM, Mechanism
from p2pdp.core.values import LinearForm, Share, Source
from p2pdp.protocols.pairwise.sharing import (
    KEY_BYTES,
    PART_BYTES,
    PRIME,
    combined,
    is_key,
    is_part,
    mask_key,
    parts_of,
    place,
    unfolded,
)

SEED = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, size=8)
SOURCE = Source("draw", 3, 1)


def test_the_field_is_the_prime_field_just_above_all_keys() -> None:
    assert PRIME > 2**256
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        odd, twos = PRIME - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        powers = [pow(base, odd * 2**number, PRIME) for number in range(twos + 1)]
        assert powers[-1] == 1
        assert powers[0] == 1 or PRIME - 1 in powers


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=8, max_size=8), st.integers(1, 6), st.integers(0, 3))
def test_any_parts_of_the_threshold_give_the_key_back(words: list[int], threshold: int, more: int) -> None:
    seed = np.array(words, dtype=np.int64)
    peers = [7 * number for number in range(threshold + more)]
    parts = dict(zip(peers, parts_of(seed, threshold, peers), strict=True))
    for some in list(combinations(peers, threshold))[:10]:
        assert combined({peer: parts[peer] for peer in some}, threshold) == mask_key(seed)
    assert combined(parts, threshold) == mask_key(seed)
    assert all(map(is_part, parts.values()))
    assert is_key(mask_key(seed))


def test_too_few_parts_raise() -> None:
    parts = dict(enumerate(parts_of(SEED, 3, [0, 1, 2, 3])))
    with pytest.raises(ValueError, match="threshold 3"):
        combined({0: parts[0], 1: parts[1]}, 3)


def test_fewer_parts_fit_every_key() -> None:
    """To two parts of three there is, for each key, a polynomial of that degree: they say nothing of it."""
    places = [place(0), place(1)]
    values = [int.from_bytes(part, "little") for part in parts_of(SEED, 3, [0, 1])]
    for key in (0, 1, 2**255, PRIME - 1):
        slope = [(value - key) * pow(at, -1, PRIME) % PRIME for value, at in zip(values, places, strict=True)]
        second = (slope[1] - slope[0]) * pow(places[1] - places[0], -1, PRIME) % PRIME
        first = (slope[0] - second * places[0]) % PRIME
        again = [(key + first * at + second * at * at) % PRIME for at in places]
        assert again == values


def test_the_polynomial_depends_on_words_that_the_key_does_not() -> None:
    other = SEED.copy()
    other[5] += 1
    assert mask_key(other) == mask_key(SEED)
    assert parts_of(other, 2, [0]) != parts_of(SEED, 2, [0])
    assert parts_of(other, 1, [0]) == parts_of(SEED, 1, [0])


def test_parts_and_keys_are_the_same_on_every_platform() -> None:
    seed = np.arange(8, dtype=np.int64)
    assert mask_key(seed).hex() == "0000000000000000010000000000000002000000000000000300000000000000"
    assert [part.hex()[:24] for part in parts_of(seed, 2, [0, 1])] == [
        "0423ac0236a1e783a440710f",
        "df4458056c42cf074881e21e",
    ]


def test_over_symbols_parts_are_parts_of_the_draw() -> None:
    seed = LinearForm.of(SOURCE)
    parts = parts_of(seed, 2, [4, 6])
    assert parts == [Share(SOURCE, 5, 2), Share(SOURCE, 7, 2)]
    assert mask_key(seed) == Share(SOURCE)
    assert combined({4: parts[0], 6: parts[1]}, 2) == Share(SOURCE)
    assert unfolded(Share(SOURCE), UNIFORM, ()).expand() == {SOURCE: 1.0}
    with pytest.raises(ValueError, match="threshold"):
        combined({4: parts[0]}, 2)


def test_what_is_not_known_stays_so() -> None:
    unknown = LinearForm.of(Source("unknown", 4, 1))
    assert combined({4: unknown, 6: Share(SOURCE, 7, 2)}, 2) is unknown
    assert unfolded(unknown, UNIFORM, ()) is unknown


@pytest.mark.parametrize("mechanism", [UNIFORM, Mechanism("gaussian", 2.0**30)])
def test_a_key_unfolds_to_the_same_for_everybody(mechanism: Mechanism) -> None:
    key = mask_key(SEED)
    number, vector = unfolded(key, mechanism, ()), unfolded(key, mechanism, (3,))
    assert type(number) is int
    assert vector.shape == (3,)
    assert unfolded(key, mechanism, ()) == number
    assert np.array_equal(unfolded(key, mechanism, (3,)), vector)
    assert unfolded(mask_key(SEED + 1), mechanism, ()) != number


@pytest.mark.parametrize("value", [b"", bytes(KEY_BYTES), bytes(PART_BYTES + 1), b"\xff" * PART_BYTES, 5, None])
def test_what_is_no_part_is_told(value: object) -> None:
    assert not is_part(value)
    assert is_key(value) == (value == bytes(KEY_BYTES))
