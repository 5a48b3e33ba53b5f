from __future__ import annotations

import json
from array import array
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import VerificationFailed
from p2pdp.files.folder import read_evidence
from p2pdp.files.spec import parse_spec
from p2pdp.runs.comparing import UNKNOWN, differences, differs, estimate_in
from p2pdp.runs.pages import write_auditors_page
from p2pdp.runs.status import status_of
from tests.support.gossip_specs import gossip
from tests.support.shuffle_specs import shuffle
from tests.support.small import RING, recorded


def forged(place: Path, name: str, **changes: object) -> None:
    document = json.loads((place / name).read_text())
    (place / name).write_text(json.dumps(document | changes))


@pytest.mark.parametrize("text", [RING, gossip(5, "ring"), shuffle(5)])
def test_the_estimate_of_an_honest_folder_is_that_of_its_ledger(text: str, tmp_path: Path) -> None:
    place = recorded(tmp_path, text)
    result = json.loads((place / "result.json").read_text())
    assert differences(place, result, None) == []
    assert not differs(result, estimate_in(read_evidence(place)))


def test_a_forged_estimate_is_told_by_status_and_not_shown_on_the_page(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    assert status_of(str(place)).problems == []
    forged(place, "result.json", estimate=12345.678)
    (problem,) = status_of(str(place)).problems
    assert problem.startswith("result.json")
    page = write_auditors_page(place, None, None, allow_missing=False).read_text()
    assert "12345" not in page.replace(",", "")
    assert "another estimate than the curator" in page


def test_documents_of_another_run_are_told(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    p2pdp.audit(place).save(place)
    forged(place, "audit.json", run_id="00" * 16)
    assert [one.split(":")[0] for one in status_of(str(place)).problems] == ["audit.json"]


def test_without_the_curator_s_values_nothing_is_known_of_the_estimate(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    p2pdp.export(place, tmp_path / "file")
    assert estimate_in(read_evidence(tmp_path / "file")) is UNKNOWN
    assert not differs({"estimate": 3.0}, UNKNOWN)


def test_ledgers_that_verify_refuses_are_not_exported_shown_or_attacked(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    ledger = place / "nodes" / "0002" / "view.ledger"
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)
    for refused in (
        lambda: p2pdp.export(place, tmp_path / "file"),
        lambda: list(p2pdp.views(place)),
        lambda: p2pdp.attack(place, 1),
    ):
        with pytest.raises(VerificationFailed, match="node 2"):
            refused()
    assert not (tmp_path / "file").exists()


def test_without_the_curator_s_ledger_a_finished_run_is_not_repeated_as_if_it_was_checked(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    (place / "curator" / "view.ledger").unlink()
    (problem,) = status_of(str(place)).problems
    assert problem.startswith("result.json: the curator's ledger is not there")


def test_of_a_quick_simulation_nothing_is_missing(tmp_path: Path) -> None:
    p2pdp.simulate(parse_spec(RING, None), tmp_path / "run", fast=True)
    assert status_of(str(tmp_path / "run")).problems == []


def test_a_long_estimate_is_compared_as_it_was_read() -> None:
    for estimate, found in (([1.0, 2.0], False), ([1.0, 2.5], True), ([1.0], True), (1.0, True)):
        assert differs({"estimate": array("d", [1.0, 2.0])}, estimate) is found
