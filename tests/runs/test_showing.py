from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from p2pdp.files.node_config import load_node_config
from p2pdp.files.spec import parse_spec
from p2pdp.node.budget import BudgetLedger, Charge, Limit
from p2pdp.runs.accepting import own_data
from p2pdp.runs.budgeting import data_names
from p2pdp.runs.costing import Cost
from p2pdp.runs.outlook import planner
from p2pdp.runs.showing import (
    known_after,
    known_costs,
    known_of,
    known_of_node,
    limits_of_owner,
    offered_terms,
    rows_of,
)
from tests.support.finished_nodes import finished_node
from tests.support.launched import complete

SPEC = parse_spec(complete(4, 40), None)


def test_terms_are_in_words() -> None:
    rows = dict(offered_terms(SPEC, 1))
    assert (rows["protocol"], rows["task"], rows["users"], rows["graph"]) == ("walk.sum", "sum", "4", "complete")
    assert rows["clipped to"] == "0 to 1"
    assert "standard deviation 1" in str(rows["noise"])
    fewer = replace(SPEC, run=replace(SPEC.run, min_nodes=3))
    assert dict(offered_terms(fewer, 2))["users"] == "3 to 4"
    assert dict(offered_terms(fewer, 2, 3))["users"] == "3"
    assert "2 numbers" in str(dict(offered_terms(fewer, 2))["data"])


def test_a_public_graph_is_shown_once_there_is_a_roster() -> None:
    assert "edges" not in known_of(planner(SPEC)(4))
    found = known_of(planner(SPEC)(4), 4)
    assert len(found["edges"]) == 6
    assert found["title"] == "walk.sum among 4 users"


@pytest.mark.parametrize("change", ["public = false", "changing = true"])
def test_a_graph_that_is_not_public_is_not(change: str) -> None:
    run = planner(SPEC)(4)
    name, _, value = change.partition(" = ")
    hidden = replace(run, spec=replace(SPEC, graph=replace(SPEC.graph, **{name: value == "true"})))
    found = known_of(hidden, 4)
    assert "edges" not in found
    assert found["no_picture"]


def config_of(place: Path, more: str = "") -> Any:
    finished_node(place)
    with (place / "node.toml").open("a") as file:
        file.write(more)
    return load_node_config(place / "node.toml")


def test_an_owner_sees_limits_data_and_what_the_budget_has_left(tmp_path: Path) -> None:
    config = config_of(
        tmp_path, '[accept]\nepsilon_max = 3\nsigma_min = 0.5\n[budget]\nepsilon = 5.0\nledger = "spent.json"\n'
    )
    spec = parse_spec((tmp_path / "all" / "spec.toml").read_text(), tmp_path)
    data = own_data(spec, config)
    tables = [dict(rows) for _, rows in limits_of_owner(config, data)]
    assert (tables[0]["rows"], tables[0]["numbers in each"]) == (data.rows, 1)
    assert {"epsilon_max", "sigma_min", "observer", "unit", "delta"} == tables[1].keys()
    assert (tables[2]["charged so far"], tables[2]["left"]) == ("epsilon 0", "epsilon 5")
    limit = Limit("x", 5.0, 1e-6)
    BudgetLedger(config.budget.ledger).reserve(
        "run", data_names(config.data), lambda _spent: [Charge(epsilon=2.0)], [limit], "all"
    )
    assert dict(limits_of_owner(config, None)[-1][1])["left"] == "epsilon 3"
    known = known_of_node(spec, config, data, 5)
    assert known["own"][0][0] == "Your data"
    assert dict(known["terms"])["users"] == "5"


def test_without_limits_the_tables_are_empty(tmp_path: Path) -> None:
    assert [rows for _, rows in limits_of_owner(config_of(tmp_path), None)] == [[], []]


def test_costs_are_read_as_reports_read_them() -> None:
    costs = [Cost("node", 0.5, 1e-6, "a-priori", "local"), Cost("curator", 7.0, 1e-6, "a-priori", "hidden-path")]
    assert [row["reading"] for row in rows_of(costs)] == ["strong", "weak"]
    assert known_costs(SPEC, costs)["costs_note"].startswith("The curator's row")
    assert known_costs(SPEC, costs[:1])["costs_note"] == ""


def test_a_node_that_was_put_out_has_no_result(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    spec = parse_spec((tmp_path / "all" / "spec.toml").read_text(), tmp_path)
    told: Any = SimpleNamespace(
        nodes=5, cost=[], spent=[], excluded=True, stopped=None, estimate=None, standard_error=None, own_scores=None
    )
    assert "put this node out" in str(known_after(spec, config, told)["outcome"])
    stopped = SimpleNamespace(**{**vars(told), "excluded": False, "stopped": "too few"})
    assert "too few" in str(known_after(spec, config, cast("Any", stopped))["outcome"])
    told = SimpleNamespace(**{**vars(told), "excluded": False, "estimate": 7.5, "own_scores": {"loss": 0.25}})
    outcome = dict(known_after(spec, config, cast("Any", told))["outcome"])
    assert (outcome["estimate"], outcome["loss on your own rows"]) == ("7.5", "0.25")
