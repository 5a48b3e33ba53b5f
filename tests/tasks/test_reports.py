from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.crypto import sealed
from p2pdp.crypto.identity import RunKey
from p2pdp.mechanisms.reporting.categories import KaryReports
from p2pdp.tasks.reports import NAME_BYTES, SEAL_BYTES, ReportInputs, open_report, sealed_bytes

SEED = np.array([1, -2, 3, -4], dtype=np.int64)
TRUTH = KaryReports(200, None)
ANSWER = KaryReports(200, 1.0)


def backwards(text: bytes, seed: bytes) -> bytes:
    assert seed == SEED.tobytes()
    return text[::-1]


@pytest.mark.parametrize(("randomizer", "drawn", "said"), [(TRUTH, (), 5), (ANSWER, (-1,), 5), (ANSWER, (7,), 7)])
def test_report_and_dummy_carry_their_name_and_are_alike_in_length(randomizer: Any, drawn: Any, said: int) -> None:
    inputs = ReportInputs([5], randomizer).sealed_with(backwards)
    report, dummy = inputs.sealed(77, drawn, SEED), inputs.sealed_dummy(78, drawn, SEED)
    assert len(report) == len(dummy) == NAME_BYTES + 1
    assert open_report(report[::-1], 1) == (77, bytes([said]))
    assert (open_report(dummy[::-1], 1) or (0,))[0] == 78


@pytest.mark.parametrize("length", [0, 7, 9])
def test_what_is_no_report_is_not_opened(length: int) -> None:
    assert open_report(bytes(length), 1) is None


def test_a_seal_adds_what_it_is_said_to_add() -> None:
    key = RunKey(bytes(range(32)))
    assert SEAL_BYTES == sealed.SEAL_BYTES
    assert len(sealed.seal_to(key.public, bytes(NAME_BYTES + 3), bytes(32))) == sealed_bytes(3)


def test_repr_holds_no_value() -> None:
    assert repr(ReportInputs([5], TRUTH)) == "ReportInputs()"


def test_nothing_leaves_before_it_is_known_whose_key_to_seal_to() -> None:
    with pytest.raises(AssertionError):
        ReportInputs([5], TRUTH).sealed(1, (), SEED)
