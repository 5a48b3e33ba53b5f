from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.sealed import SealError
from p2pdp.crypto.sealed_skeleton import is_sealed, open_skeleton, seal_skeleton, sealed_bytes

AUDITOR = RunKey(bytes([7] * 32))
SECRET = bytes([9] * 32)


def seal(skeleton: bytes, size: int = 64, secret: bytes = SECRET) -> bytes:
    return seal_skeleton(skeleton, AUDITOR.public, secret, size)


@given(st.binary(max_size=300), st.sampled_from([1, 16, 64, 512]))
def test_what_is_sealed_is_opened_and_its_length_is_one_of_few(skeleton: bytes, size: int) -> None:
    sealed = seal(skeleton, size)
    assert open_skeleton(sealed, AUDITOR) == skeleton
    assert is_sealed(sealed)
    doubled = size
    while doubled <= len(skeleton):
        doubled *= 2
    assert len(sealed) == sealed_bytes(doubled)


def test_it_is_the_same_each_time_and_another_for_anything_else() -> None:
    assert seal(b"a") == seal(b"a")
    ephemeral = {sealed[16:48] for sealed in (seal(b"a"), seal(b"b"), seal(b"a", 128), seal(b"a", secret=bytes(32)))}
    assert len(ephemeral) == 4


@pytest.mark.parametrize("place", [0, 20, 60, -1])
def test_what_was_altered_cut_or_is_for_another_is_not_opened(place: int) -> None:
    sealed = bytearray(seal(b"skeleton"))
    sealed[place] ^= 1
    for data in (bytes(sealed), seal(b"skeleton")[:-1], b"", b"p2pdp skelet 01\n"):
        with pytest.raises(SealError):
            open_skeleton(data, AUDITOR)
    with pytest.raises(SealError):
        open_skeleton(seal(b"skeleton"), RunKey(bytes([8] * 32)))
