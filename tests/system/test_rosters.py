"""What of the roster a node of a live run has, and what can be checked with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import p2pdp
from p2pdp.auditor.verify import COMPLETE
from p2pdp.crypto.roster import Roster
from p2pdp.node.user import SEAT_FILE
from p2pdp.runs.audit import verify
from p2pdp.runs.status import status_of
from p2pdp.wire.codec import unpack
from tests.support import small
from tests.support.across import Across
from tests.support.launched import ring


def test_nodes_have_the_entries_of_their_neighbours_and_a_run_those_of_all(tmp_path: Path) -> None:
    asked = ["run.nodes=12", 'graph.kind="regular"', "graph.degree=4", 'walk.order="random"', "walk.hops=30"]
    spec = p2pdp.load_spec(small.spec_file(tmp_path, small.BARE), asked)
    place = tmp_path / "run"
    p2pdp.run(spec, place, nodes_per_process=5)
    whole = Roster.from_json(json.loads((place / "roster.json").read_text()))
    assert (whole.n, len(whole.entries)) == (12, 12)
    for me in range(12):
        user, neighbours, packed = unpack((place / "nodes" / f"{me:04d}" / SEAT_FILE).read_bytes())
        part = Roster.from_bytes(packed)
        assert (user, len(neighbours)) == (me, 4)
        assert list(part.entries.named) == sorted([me, *neighbours])
        assert packed == whole.part([me, *neighbours])
    assert verify(place).verified == COMPLETE
    (place / "roster.json").write_text(json.dumps(Roster.from_bytes(whole.part([0, 1])).to_json()))
    assert any("2 of 12 users" in problem["what"] for problem in verify(place).problems)


def test_the_folder_of_a_node_is_checked_with_what_it_has_of_the_roster(tmp_path: Path) -> None:
    with Across(tmp_path, ring(5, 10), 5) as run:
        bootstrap = run.bootstrap()
        nodes = run.all_nodes("--share-skeleton")
        result = bootstrap.document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 5
    boot, mine = tmp_path / "boot", tmp_path / "n2"
    rosters = [Roster.from_json(json.loads((place / "roster.json").read_text())) for place in (boot, mine)]
    assert rosters[0].digest == rosters[1].digest
    assert [list(roster.entries.named) for roster in rosters] == [[0, 1, 2, 3, 4], [1, 2, 3]]
    for place in (boot, mine):
        assert verify(place).verified == COMPLETE
    assert (status_of(str(mine)).n, status_of(str(mine)).problems) == (5, [])
    p2pdp.export(mine, tmp_path / "mine.p2pdp")
    assert verify(tmp_path / "mine.p2pdp").verified == COMPLETE
    shutil.copy(mine / "roster.json", boot / "roster.json")
    found = [problem["what"] for problem in verify(boot).problems]
    assert any("3 of 5 users" in what for what in found)
