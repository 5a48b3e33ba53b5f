from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.tasks.reports import NAME_BYTES, ReportInputs, open_report

SEED = np.array([1, -2, 3, -4], dtype=np.int64)


class Maker:
    def report(self, value: Any, randomness: Any) -> bytes:
        return bytes([value ^ randomness])

    def dummy(self, randomness: Any) -> bytes:
        return bytes([randomness])


def backwards(text: bytes, seed: bytes) -> bytes:
    assert seed == SEED.tobytes()
    return text[::-1]


def test_report_and_dummy_carry_their_name_and_are_alike_in_length() -> None:
    inputs = ReportInputs(5, Maker()).sealed_with(backwards)
    report, dummy = inputs.sealed(77, 3, SEED), inputs.sealed_dummy(78, 3, SEED)
    assert len(report) == len(dummy) == NAME_BYTES + 1
    assert open_report(report[::-1], 77, 1) == bytes([6])
    assert open_report(dummy[::-1], 78, 1) == bytes([3])


@pytest.mark.parametrize(("text", "name"), [(b"", 0), (bytes(9), 1), (bytes(8), 0), (bytes(10), 0)])
def test_what_is_another_report_or_none_is_not_opened(text: bytes, name: int) -> None:
    assert open_report(text, name, 1) is None


def test_repr_holds_no_value() -> None:
    assert repr(ReportInputs(5, Maker())) == "ReportInputs()"


def test_nothing_leaves_before_it_is_known_whose_key_to_seal_to() -> None:
    with pytest.raises(AssertionError):
        ReportInputs(5, Maker()).sealed(1, 2, SEED)
