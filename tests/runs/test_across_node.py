"""What a node tells its owner, from ledgers of simulated runs; live ones are in tests/system."""

from __future__ import annotations

import re
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
from p2pdp.node.folder import NodeFolder
from p2pdp.peer.credentials import Credentials
from p2pdp.runs import across_node
from p2pdp.runs.across_node import Member, take_part
from tests.support.finished_nodes import ME, finished_node


def test_a_folder_of_another_node_is_refused(tmp_path: Path) -> None:
    finished_node(tmp_path)
    config = tmp_path / "node.toml"
    other = JoinToken("boot:1", bytes(32), bytes(16), 6).to_text()
    lines = [f'token = "{other}"' if line.startswith("token") else line for line in config.read_text().splitlines()]
    config.write_text("\n".join(lines))
    with pytest.raises(UsageError, match="another token"):
        take_part(tmp_path / "node.toml", tmp_path / "mine", share_skeleton=True, keep_private=False, notify=print)


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


def test_the_owner_of_a_token_that_others_may_read_is_told(tmp_path: Path) -> None:
    finished_node(tmp_path)
    config, token = tmp_path / "node.toml", tmp_path / "own.token"
    token.write_text(load_node_config(config).token.to_text())
    config.write_text(re.sub(r'token = ".*"', 'token = "own.token"', config.read_text()))
    for mode, expected in ((0o644, ["token_open"]), (0o600, [])):
        token.chmod(mode)
        happened: list[Happening] = []
        take_part(config, tmp_path / "mine", share_skeleton=True, keep_private=True, notify=happened.append)
        assert [one.event for one in happened] == expected
        assert all(token.read_text() not in one.text for one in happened)
