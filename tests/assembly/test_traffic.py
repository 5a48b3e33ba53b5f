from __future__ import annotations

from types import SimpleNamespace

from p2pdp.assembly.traffic import ENVELOPE_BYTES, numbers_frame, numbers_in
from p2pdp.wire.padding import frame_size


def test_a_frame_grows_with_its_numbers() -> None:
    assert numbers_frame(0) == frame_size(ENVELOPE_BYTES)
    assert numbers_frame(1000) >= 9000
    assert (numbers_in(SimpleNamespace(shape=())), numbers_in(SimpleNamespace(shape=(7,)))) == (1, 7)
