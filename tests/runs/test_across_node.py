"""What a node tells its owner, from ledgers of simulated runs; live ones are in tests/system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.happenings import Happening
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.folder import read_json
from p2pdp.files.node_config import load_node_config
from p2pdp.ledger.records import SKELETON_MAGIC
from p2pdp.node.folder import NodeFolder
from p2pdp.peer.credentials import Credentials
from p2pdp.runs import across_node
from p2pdp.runs.across_node import Member, TookPart, take_part
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


def test_a_folder_of_another_node_is_refused(tmp_path: Path) -> None:
    finished_node(tmp_path)
    config = tmp_path / "node.toml"
    other = JoinToken("boot:1", bytes(32), bytes(16), 6).to_text()
    lines = [f'token = "{other}"' if line.startswith("token") else line for line in config.read_text().splitlines()]
    config.write_text("\n".join(lines))
    with pytest.raises(UsageError, match="another token"):
        told(tmp_path)


class Told:
    """A member whose folder has a seat, and what its owner was told."""

    def __init__(self, place: Path, accept: str = "") -> None:
        self.happenings: list[Happening] = []
        with (place / "node.toml").open("a") as file:
            file.write(accept)
        config = load_node_config(place / "node.toml")
        facts: dict[str, Any] = {}
        self.folder = NodeFolder(place / "mine", facts)
        self.member = Member(config, self.folder, self.happenings.append, shares=False)
        roster = Roster.from_json(read_json(place / "all" / "roster.json"))
        roster = replace(roster, facts=tuple((dict(roster.facts) | {"sampler": "exact"}).items()))
        self.credentials = Credentials(ME, roster, Identity(bytes([1] * 32)), RunKey(bytes([2] * 32)), None)

    def costs(self) -> list[Any]:
        return [told.facts["epsilon"] for told in self.happenings if told.event == "cost"]


def test_a_seat_is_admitted_after_its_cost_was_shown_and_again_without_computing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_node(tmp_path)
    first = Told(tmp_path)
    first.member.admit(first.credentials)
    assert len(first.costs()) == 4
    monkeypatch.setattr(across_node.Reckoner, "costs", None)
    again = Told(tmp_path)
    again.member.admit(again.credentials)
    assert again.costs() == first.costs()


@pytest.mark.parametrize("comes_back", [False, True])
def test_what_costs_more_than_the_owner_allows_now_is_refused_for_a_new_node_and_one_that_comes_back(
    tmp_path: Path, *, comes_back: bool
) -> None:
    finished_node(tmp_path)
    if comes_back:
        before = Told(tmp_path)
        before.member.admit(before.credentials)
    told = Told(tmp_path, '[accept]\nepsilon_max = 0.01\nobserver = "node"\n')
    with pytest.raises(Refused, match="epsilon_max"):
        told.member.admit(told.credentials)
    assert len(told.costs()) == 4
