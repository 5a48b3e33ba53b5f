from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.errors import VerificationFailed
from p2pdp.files.folder import read_evidence
from p2pdp.runs.in_order import check_in_order
from tests.support.small import RING, recorded


def test_nothing_is_told_of_a_whole_run(tmp_path: Path) -> None:
    told: list[str] = []
    check_in_order(read_evidence(recorded(tmp_path, RING)), told.append)
    assert told == []


def test_what_is_absent_or_cut_at_a_record_is_told_and_what_is_altered_is_refused(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    ledger = place / "nodes" / "0001" / "view.ledger"
    whole = ledger.read_bytes()
    told: list[str] = []
    ledger.unlink()
    check_in_order(read_evidence(place), told.append)
    check_in_order(read_evidence(place))  # nobody wants to know
    assert [one.split(":")[0] for one in told] == ["node 1"]
    ledger.write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :])
    with pytest.raises(VerificationFailed, match="node 1"):
        check_in_order(read_evidence(place), told.append)
    assert len(told) == 1
