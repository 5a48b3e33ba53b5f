from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.attacks.evidence import contents_of, inputs_of
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import CURATOR
from p2pdp.files.folder import read_evidence
from tests.support.small import RING, recorded


def test_own_records_and_values(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, RING))
    contents = contents_of(evidence, 2)
    assert contents is not None
    assert contents.records
    assert contents_of(evidence, 9) is None
    assert len(inputs_of(evidence.private[2]) or []) == 1


def test_an_altered_ledger_is_named(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    ledger = place / "curator" / "view.ledger"
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)
    with pytest.raises(VerificationFailed, match="node curator"):
        contents_of(read_evidence(place), CURATOR)
