"""What a node decides for its owner, on a roster of a simulated run; live runs are in tests/system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.errors import Refused
from p2pdp.core.happenings import Happening
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster
from p2pdp.files.folder import read_json
from p2pdp.files.node_config import load_node_config
from p2pdp.node.folder import NodeFolder
from p2pdp.peer.credentials import Credentials
from p2pdp.runs import member
from p2pdp.runs.member import Member
from tests.support.finished_nodes import ME, finished_node


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
    monkeypatch.setattr(member.Reckoner, "costs", None)
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
