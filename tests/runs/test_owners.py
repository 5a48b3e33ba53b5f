"""The owner's edition: bounds as the node told them, its budget, and its own ledger's digest."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from p2pdp.cli.main import main
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.happenings import Happening
from p2pdp.files.folder import read_evidence
from p2pdp.files.node_config import load_node_config
from p2pdp.node.budget import BudgetLedger, Charge, Limit
from p2pdp.report.page.words import number
from p2pdp.runs.across_node import take_part
from p2pdp.runs.budgeting import charge_name
from p2pdp.runs.owners import budget_of, owners_edition, write_owners_page
from tests.support.finished_nodes import ME, finished_node
from tests.support.made import read


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The folder of a node whose part is over, and that has told its owner."""
    finished_node(tmp_path)
    (tmp_path / "mine" / "nodes").mkdir()
    (tmp_path / "mine" / "nodes" / f"{ME:04d}").symlink_to(Path("..", "node"))
    told: list[Happening] = []
    take_part(tmp_path / "node.toml", tmp_path / "mine", share_skeleton=False, keep_private=True, notify=told.append)
    return tmp_path / "mine"


def test_the_bounds_are_those_that_the_owner_was_told(node: Path) -> None:
    made = owners_edition(node, None)
    told = json.loads((node / "own.json").read_text())
    spent = {one["observer"]: one["epsilon"] for one in told["spent"]}
    assert {claim.observer: claim.epsilon_max for claim in made.claims} == {
        name: float(epsilon) for name, epsilon in spent.items()
    }
    assert made.verdict.worst.epsilon == max(map(float, spent.values()))
    assert made.estimate == told["estimate"]
    assert made.proof is not None
    assert list(made.proof.ledgers) == [str(ME)]


def test_the_page_is_for_the_owner_and_shows_the_budget(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = node.parent / "node.toml"
    config.write_text(config.read_text() + '[budget]\nepsilon = 4.0\ndelta = 1e-5\nledger = "budget"\n')
    charge = Charge(epsilon=1.25)
    limit = Limit("here", 4.0, 1e-5)
    BudgetLedger(node.parent / "budget").reserve("a run", ["made up: uniform"], lambda _: [charge], [limit], "all")
    assert main(["report", str(node), "--for", "owner", "--config", str(config)]) == 0
    file = node / "report.html"
    assert str(file) in capsys.readouterr().out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    page = read(file.read_text())
    assert "charged with ε 1.25 at δ = 1e-5" in page.said
    assert "this run not included" in page.said
    assert "ε 2.75 is left" in page.said
    run_id = read_evidence(node).roster.run_id
    name = charge_name(run_id, load_node_config(config))
    BudgetLedger(node.parent / "budget").reserve(name, ["made up: uniform"], lambda _: [charge], [limit], "all")
    told = budget_of(config, run_id)
    assert "this run included" in told
    assert "ε 1.5 is left" in told
    assert "one node's owner" in page.said
    worst = owners_edition(node, None).verdict.worst.epsilon
    assert number(worst) in page.said


def test_without_a_budget_that_is_said(node: Path) -> None:
    assert "no [budget]" in budget_of(node.parent / "node.toml", bytes(16))
    page = read(write_owners_page(node, node.parent / "own.html", None).read_text())
    assert "account of its own" in page.said


def test_folders_that_are_none_and_altered_ones_are_refused(node: Path) -> None:
    with pytest.raises(UsageError, match="whose part in a run is over"):
        write_owners_page(node.parent / "all", node.parent / "x.html", None)
    assert main(["report", str(node), "--config", "x"]) == 2
    (node / "own.json").write_text("{}")
    with pytest.raises(VerificationFailed, match=r"own\.json"):
        owners_edition(node, None)
    ledger = node / "node" / "view.ledger"
    ledger.write_bytes(ledger.read_bytes()[:-20])
    with pytest.raises(VerificationFailed):
        owners_edition(node, None)
