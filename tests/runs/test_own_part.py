"""What a node tells its owner in the end, from ledgers of simulated runs; live ones are in tests/system."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.happenings import Happening
from p2pdp.crypto.roster import Roster
from p2pdp.files.folder import read_json
from p2pdp.ledger.records import SKELETON_MAGIC
from p2pdp.runs.across_node import take_part
from p2pdp.runs.own_part import TookPart
from tests.support.across_specs import TEXT
from tests.support.finished_nodes import ME, finished_node

REST = ("curator", "public", "network")


def told(tmp_path: Path, *, keep_private: bool = False) -> TookPart:
    def silent(told: Happening) -> None:
        raise AssertionError(told.text)

    return take_part(
        tmp_path / "node.toml", tmp_path / "mine", share_skeleton=True, keep_private=keep_private, notify=silent
    )


@pytest.mark.parametrize("task", ["", '[task]\nkind = "mean"\n'])
def test_a_node_that_has_done_its_part_tells_what_was_published(tmp_path: Path, task: str) -> None:
    result = finished_node(tmp_path, TEXT + task)
    private = tmp_path / "mine" / "node" / "private.ledger"
    before = private.read_bytes()
    document = told(tmp_path, keep_private=True).to_json()
    assert private.read_bytes() == before
    roster = Roster.from_json(read_json(tmp_path / "mine" / "roster.json"))
    cost, spent = document.pop("cost"), document.pop("spent")
    assert [one["observer"] for one in cost] == [one["observer"] for one in spent] == ["node", *REST]
    assert all(set(one) == {"observer", "epsilon", "delta", "conditioning", "method"} for one in (*cost, *spent))
    assert spent[-1]["epsilon"] <= cost[-1]["epsilon"]
    assert document == {
        "run_id": roster.run_id.hex(),
        "user": ME,
        "nodes": 4,
        "protocol": "walk.sum",
        "estimate": result.estimate,
        "standard_error": result.standard_error,
        "excluded": False,
        "skeleton_shared": True,
        "private_kept": True,
        "faults": {},
        "folder": str(tmp_path / "mine"),
    }
    kept = tmp_path / "mine" / "own.json"
    assert read_json(kept) == {**document, "cost": cost, "spent": spent}
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not told(tmp_path).private_kept
    assert private.read_bytes().startswith(SKELETON_MAGIC)
    assert told(tmp_path).estimate == result.estimate


def test_vectors_are_lists(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("0.1,0.2\n" * 4)
    table = TEXT.replace('"uniform"', '"csv"\npath = "rows.csv"\ncolumns = [0, 1]')
    result = finished_node(tmp_path, table)
    assert told(tmp_path).estimate == result.estimate
    assert isinstance(result.estimate, list)
