"""Budgets of nodes as their owners start them: refused before anybody hears of the node, charged once over a kill."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.across import Across
from tests.support.launched import complete, wait_for

UNDER_WAY = 50  # frames


def test_a_node_keeps_its_budget(tmp_path: Path) -> None:
    def allowed(epsilon: float) -> str:
        return f'[budget]\nepsilon = {epsilon}\nledger = "spent/budget"\n'

    ledger = tmp_path / "spent" / "budget"
    with Across(tmp_path, complete(3, 1500), 3) as run:
        bootstrap = run.bootstrap()
        run.configure(0, more=allowed(1.0))
        run.node(0).fails(5, "[budget] epsilon", "would cost epsilon", "of epsilon 1 at delta 1e-06")
        assert "of 3" not in bootstrap.said  # who have enrolled
        assert not ledger.exists()
        for number in range(2):  # two nodes of one owner, who made up their data alike
            run.configure(number, more=allowed(1e5))
        nodes = run.all_nodes(stands={0: [UNDER_WAY]})
        run.stands(0)
        before = ledger.read_bytes()
        nodes[0].kill()
        nodes[0] = run.node(0)
        result = bootstrap.document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 3
        assert ledger.read_bytes() == before
        charges = json.loads(before)["charges"]
        assert [charge["data"] for charge in charges] == [["made up: uniform"]] * 2
        assert len({charge["run"] for charge in charges}) == 2
        assert all(charge["run"].startswith(result["run_id"]) for charge in charges)
        assert all(charge["mu_squared"] > 500 and charge["delta"] == 0.0 for charge in charges)


def test_a_node_leaves_if_others_were_faster(tmp_path: Path) -> None:
    """Both nodes looked before either was charged; with the roster only one of them still fits."""
    with Across(tmp_path, complete(2, 40), 2) as run:
        run.bootstrap()
        for number in range(2):
            run.configure(number, more='[budget]\nepsilon = 60\ndelta = 1e-5\nledger = "budget"\n')
        nodes = run.all_nodes()
        wait_for(lambda: not all(node.running for node in nodes), "one of them to leave")
        gone = [node for node in nodes if not node.running]
        assert len(gone) == 1
        gone[0].fails(5, "[budget] epsilon", "would cost", "together it would be")
        assert len(json.loads((tmp_path / "budget").read_text())["charges"]) == 1


def test_owners_see_the_cost_before_anybody_hears_of_them_and_what_was_spent(tmp_path: Path) -> None:
    with Across(tmp_path, complete(3, 60).replace("sigma = 1.0", "sigma = 20.0"), 3) as run:
        bootstrap = run.bootstrap()
        run.configure(0, more='[accept]\nepsilon_max = 0.1\nobserver = "node"\n')
        refused = run.node(0)
        refused.fails(5, "[accept] epsilon_max", "would cost epsilon", "against another user", "allows 0.1")
        assert "an observer of all decrypted messages: epsilon" in refused.said, "the table comes before the refusal"
        assert "of 3" not in bootstrap.said  # who have enrolled
        run.configure(0, more="[accept]\nepsilon_max = 20\n")
        nodes = run.all_nodes()
        bootstrap.document()
        for node in nodes:
            document = node.document()
            cost, spent = ({one["observer"]: one for one in document[name]} for name in ("cost", "spent"))
            assert list(cost) == list(spent) == ["node", "curator", "public", "network"]
            assert 0.0 < spent["network"]["epsilon"] < cost["network"]["epsilon"] < 20.0
            assert spent["node"] == cost["node"]
            assert node.said.count("the curator: epsilon") == 2, "for the offer, and for the roster"


def test_a_node_that_comes_back_applies_the_limits_that_its_owner_has_now(tmp_path: Path) -> None:
    with Across(tmp_path, complete(3, 1500).replace("sigma = 1.0", "sigma = 20.0"), 3) as run:
        run.bootstrap()
        run.configure(0, more="[accept]\nepsilon_max = 500\n")
        nodes = run.all_nodes(stands={0: [UNDER_WAY]})
        run.stands(0)
        nodes[0].kill()
        kept = tmp_path / "n0" / "costs.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        before = run.ledger(0).read_bytes()
        run.configure(0, more='[accept]\nepsilon_max = 0.5\nobserver = "node"\n')
        refused = run.node(0)
        refused.fails(5, "[accept] epsilon_max", "against another user", "allows 0.5")
        spent = [line for line in refused.said.splitlines() if "spent before" in line]
        assert [line.split(": ")[1] for line in spent] == [
            "another user", "the curator", "the public", "an observer of all decrypted messages",
        ]  # fmt: skip
        assert run.ledger(0).read_bytes() == before, "it contributes nothing more"
