"""Skeletons are enough: without any value on disk, every claim and every verdict is the same, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

import p2pdp
from p2pdp.api import export, verify
from p2pdp.files.folder import to_json
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import SALT_BYTES, read, to_skeleton
from p2pdp.sim.faults import NO_FAULTS, Crash, Faults
from tests.support.runs import HISTOGRAM, ring, walk

GONE = Faults(crashes=(Crash(peer=2, at_record=25, down_s=None),))
RUNS = {
    "ring": (ring(4, 2, tokens=2), NO_FAULTS),
    "complete graph": (walk(5, 40), NO_FAULTS),
    "histogram": (walk(4, 20, **HISTOGRAM), NO_FAULTS),
    "no noise": (walk(3, 9, noise='[noise]\nmechanism = "none"\n'), NO_FAULTS),
    "gone round": (walk(5, 60, seed=2), GONE),
}


@pytest.mark.parametrize("name", RUNS)
def test_no_value_is_needed_for_any_claim(name: str, tmp_path: Path) -> None:
    text, faults = RUNS[name]
    folder, file = tmp_path / "run", tmp_path / "run.export"
    p2pdp.simulate(parse_spec(text, None), folder, faults=faults)
    before, verdict = (folder / "audit.json").read_bytes(), verify(folder).verified
    assert verdict == ("complete" if faults is NO_FAULTS else "incomplete")
    assert export(folder, file) == len(list(folder.rglob("view.ledger")))

    def assert_all_the_same(place: Path) -> None:
        assert to_json(p2pdp.audit(place).to_json()).encode() + b"\n" == before
        assert verify(place).verified == verdict

    assert_all_the_same(folder)
    assert_all_the_same(file)
    for private in folder.rglob("private.ledger"):
        private.unlink()
    assert_all_the_same(folder)
    for view in folder.rglob("view.ledger"):
        skeleton = to_skeleton(view.read_bytes())
        assert skeleton != view.read_bytes()
        view.write_bytes(skeleton)
    assert_all_the_same(folder)
    again = tmp_path / "again.export"
    assert export(folder, again)
    assert again.read_bytes() == file.read_bytes(), "what is exported holds no value to begin with"


def test_a_skeleton_holds_none_of_the_values(tmp_path: Path) -> None:
    """Every value part of the ledgers, salt or not, is absent from the exported file's skeletons."""
    folder = tmp_path / "run"
    p2pdp.simulate(parse_spec(ring(3, 2), None), folder)
    for view in folder.rglob("view.ledger"):
        skeleton = to_skeleton(view.read_bytes())
        for record in read(view.read_bytes()).records:
            if record.value:
                assert record.value not in skeleton
                assert record.value[:SALT_BYTES] not in skeleton
                assert record.value[SALT_BYTES:] not in skeleton
