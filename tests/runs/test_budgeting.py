"""What a run is charged with, for whom it is refused, and what a data set is known by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from p2pdp.api import simulate
from p2pdp.auditor.a_priori import claims_a_priori
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.spec import DataPart, Spec
from p2pdp.core.words import observer_name
from p2pdp.crypto.roster import Roster
from p2pdp.files.node_config import Budget, NodeConfig
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import read
from p2pdp.node.budget import BudgetLedger, Charge, total
from p2pdp.protocols.run_plan import plan_run
from p2pdp.runs.budgeting import (
    NodeBudget,
    Reckoner,
    Reckoning,
    charge_of,
    check_local,
    data_names,
    limits_of,
    reckoning,
)
from p2pdp.runs.costing import costs_of, offered_run, spent_of, terms_of
from tests.support import runs
from tests.support.gossip_learners import LOGISTIC as GOSSIP_LOGISTIC
from tests.support.gossip_learners import MEAN as GOSSIP_MEAN
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import learning, prepared
from tests.support.plans import DELTA, plan
from tests.support.shuffle_specs import shuffle


def config(tmp_path: Path, **budget: Any) -> NodeConfig:
    own = {"epsilon": 2.0, "delta": 1e-4, "observer": "node", "ledger": tmp_path / "budget"} | budget
    (tmp_path / "own.csv").write_text("0.5\n")
    made: Any = SimpleNamespace(
        path=Path("node.toml"),
        identity=SimpleNamespace(public=b"\1" * 32),
        data=DataPart("csv", path=str(tmp_path / "own.csv")),
        budget=Budget(**own) if budget.get("epsilon", 1) is not None else None,
    )
    return cast("NodeConfig", made)


def replace_identity(of: NodeConfig) -> NodeConfig:
    made: Any = of
    made.identity = SimpleNamespace(public=b"\2" * 32)
    return cast("NodeConfig", made)


def roster(spec: Spec, run: int = 1, **changed: str | float) -> Roster:
    facts: Mapping[str, int | str | float] = {**plan_run(spec, spec.run.nodes, 1).facts, **changed}
    made: Any = SimpleNamespace(run_id=bytes([run]) * 16, facts=tuple(facts.items()), n=facts["n"])
    return cast("Roster", made)


def offered(spec: Spec) -> Reckoner:
    reckoner = Reckoner(Reckoning().answer)
    assert reckoner.offer(spec, 1) is not None
    return reckoner


def reserve(node: NodeBudget, spec: Spec, roster: Roster) -> None:
    node.reserve(spec, roster, Reckoner(Reckoning().answer))


def test_a_ring_is_charged_by_mu_of_the_worst_of_its_class() -> None:
    run = plan(runs.ring(5, 2))
    charge, against = charge_of(run, "node")
    assert charge.mu_squared == pytest.approx(2 * 0.25)
    assert (charge.epsilon, charge.delta, against) == (0.0, 0.0, "another user")


def test_everybody_on_the_network_sees_a_rings_bare_contributions() -> None:
    run = plan(runs.ring(5, 2))
    for observer in ("network", "coalition"):  # no colluders are named, so anybody may be one
        with pytest.raises(Refused, match="no finite budget"):
            charge_of(run, observer)


def test_named_colluders_are_a_class_of_their_own() -> None:
    run = plan(runs.ring(6, 2) + "colluders = [0, 1]\n")
    charge, against = charge_of(run, "coalition")
    assert charge.mu_squared >= charge_of(run, "node")[0].mu_squared
    assert against in ("another user", "colluding users")


def test_a_random_walk_is_charged_by_what_the_node_itself_enforces() -> None:
    """However often others send it tokens, and whoever is excluded."""
    run = plan(runs.walk(6, 60))
    charge, against = charge_of(run, "network")
    assert 10 < run.plan.contributions_max < 60
    assert charge.mu_squared == pytest.approx(run.plan.contributions_max * 0.25)
    assert (charge.epsilon, charge.delta, against) == (0.0, 0.0, observer_name("network"))
    assert charge_of(run, "node")[0] == charge
    assert charge_of(run, "node")[1].startswith(f"{observer_name('node')} (")
    pure, _ = charge_of(plan(runs.walk(6, 60, **runs.HISTOGRAM)), "node")
    assert (pure.epsilon, pure.delta) == (pytest.approx(float(run.plan.contributions_max)), 0.0)


def test_pure_reports_on_a_schedule_take_no_delta() -> None:
    charge, _ = charge_of(plan(runs.ring(6, 2, **runs.HISTOGRAM)), "network")
    assert charge.epsilon == pytest.approx(2.0)
    assert (charge.delta, charge.mu_squared) == (0.0, 0.0)
    shuffled, _ = charge_of(plan(runs.ring(6, 2, **runs.HISTOGRAM)), "node")
    assert shuffled.epsilon <= charge.epsilon


def test_the_spec_alone_limits_a_local_run() -> None:
    assert limits_of(parse_spec(runs.walk(6, 60), None)) == []
    check_local(plan(runs.walk(6, 60)))
    check_local(plan(runs.walk(6, 60) + "budget = 1000.0\n"))
    with pytest.raises(Refused, match=r"^\[privacy\] budget: "):
        check_local(plan(runs.walk(6, 60) + "budget = 1.0\n"))
    with pytest.raises(Refused, match=r"^\[privacy\] budget: no finite budget"):
        check_local(plan(runs.ring(6, 2) + "budget = 1000.0\n"))


def test_a_node_looks_before_it_enrols_and_charges_with_the_roster(tmp_path: Path) -> None:
    spec = parse_spec(runs.ring(5, 1), None)
    node = NodeBudget(config(tmp_path))
    cost = node.consider(spec, offered(spec))
    names = data_names(config(tmp_path).data)
    assert BudgetLedger(tmp_path / "budget").spent(names) == Charge()
    reserve(node, spec, roster(spec))
    reserve(node, spec, roster(spec))
    assert BudgetLedger(tmp_path / "budget").spent(names) == cost
    assert cost is not None
    assert total([cost, cost]).epsilon_at(1e-4) > 2.0
    with pytest.raises(Refused, match=r"node.toml \[budget\] epsilon: "):
        reserve(node, spec, roster(spec, 2))
    left = BudgetLedger(tmp_path / "budget").spent(names)
    assert left.epsilon_at(1e-4) <= 2.0
    with pytest.raises(Refused):
        node.consider(spec, offered(spec))


def test_a_run_takes_little_of_the_owners_delta_where_that_is_enough(tmp_path: Path) -> None:
    text = runs.ring(20, 1, **runs.HISTOGRAM)
    spec, run = parse_spec(text, None), plan(text)
    names = data_names(config(tmp_path).data)
    ledger = BudgetLedger(tmp_path / "budget")
    at_spec, sparing = (charge_of(run, "node", delta)[0] for delta in (DELTA, DELTA / 10))
    assert 0.0 < at_spec.epsilon < sparing.epsilon
    for run_number in range(10):
        reserve(NodeBudget(config(tmp_path, epsilon=1000.0, delta=DELTA)), spec, roster(spec, run_number))
    assert ledger.spent(names).epsilon == pytest.approx(10 * sparing.epsilon)
    assert ledger.spent(names).delta <= DELTA
    reserve(NodeBudget(config(tmp_path, epsilon=1000.0, delta=DELTA)), spec, roster(spec, 11))
    assert ledger.spent(names).delta <= DELTA, "which is used up, so this one is charged without any"


@pytest.mark.parametrize("share", [0.15, 0.35, 0.9])
def test_where_a_tenth_of_delta_is_too_little_a_run_takes_more(tmp_path: Path, share: float) -> None:
    """Although epsilon allows no run at a tenth, and the run's own delta is larger than all that the owner has."""
    text = runs.ring(20, 1, **runs.HISTOGRAM)
    spec, run = parse_spec(text, None), plan(text)
    own = DELTA / 3
    epsilon = charge_of(run, "node", share * own)[0].epsilon
    assert charge_of(run, "node", own / 10)[0].epsilon > epsilon
    reserve(NodeBudget(config(tmp_path, epsilon=epsilon, delta=own)), spec, roster(spec))
    spent = BudgetLedger(tmp_path / "budget").spent(data_names(config(tmp_path).data))
    assert spent.epsilon <= epsilon
    assert share * own <= spent.delta <= own


def test_two_nodes_of_one_data_set_are_charged_both(tmp_path: Path) -> None:
    spec = parse_spec(runs.ring(5, 1), None)
    first, second = config(tmp_path, epsilon=9.0), config(tmp_path, epsilon=9.0)
    second = replace_identity(second)
    for one in (first, second):
        reserve(NodeBudget(one), spec, roster(spec))
    found = BudgetLedger(tmp_path / "budget").spent(data_names(first.data))
    assert found.mu_squared == pytest.approx(2 * 0.25)


def test_the_spec_can_only_lower_what_the_owner_allows(tmp_path: Path) -> None:
    low = parse_spec(runs.ring(5, 1) + "budget = 0.5\n", None)
    with pytest.raises(Refused, match=r"^\[privacy\] budget"):
        NodeBudget(config(tmp_path)).consider(low, offered(low))
    high = parse_spec(runs.ring(5, 1) + "budget = 500.0\n", None)
    with pytest.raises(Refused, match=r"^node.toml \[budget\] epsilon"):
        NodeBudget(config(tmp_path, epsilon=0.1)).consider(high, offered(high))


def test_without_a_budget_of_its_own_the_spec_counts_and_nothing_is_written(tmp_path: Path) -> None:
    node = NodeBudget(config(tmp_path, epsilon=None))
    plain = parse_spec(runs.walk(6, 60), None)
    assert node.consider(plain, offered(plain)) is None
    reserve(node, plain, roster(plain))
    enough = parse_spec(runs.walk(6, 60) + "budget = 1000.0\n", None)
    node.consider(enough, offered(enough))
    reserve(node, enough, roster(enough))
    less = parse_spec(runs.walk(6, 60) + "budget = 1.0\n", None)
    with pytest.raises(Refused):
        node.consider(less, offered(less))
    with pytest.raises(Refused):
        reserve(node, less, roster(less))
    assert not (tmp_path / "budget").exists()


def test_fewer_users_than_hoped_for_may_cost_too_much(tmp_path: Path) -> None:
    spec = parse_spec(runs.walk(20, 60).replace("nodes = 20", "nodes = 20\nmin_nodes = 3"), None)
    cost = NodeBudget(config(tmp_path, epsilon=50.0)).consider(spec, offered(spec))
    assert cost is not None
    node = NodeBudget(config(tmp_path, epsilon=cost.epsilon_at(1e-4) * 1.01))
    node.consider(spec, offered(spec))
    few = plan_run(spec, 3, 1)
    with pytest.raises(Refused, match="would cost"):
        reserve(node, spec, roster(spec, n=3, graph=dict(few.facts)["graph"]))


def test_a_graph_that_was_not_signed_is_not_relied_on(tmp_path: Path) -> None:
    spec = parse_spec(runs.walk(6, 30, "star"), None)
    node = NodeBudget(config(tmp_path, epsilon=1e6))
    names = data_names(config(tmp_path).data)
    reserve(node, spec, roster(spec))
    known = BudgetLedger(tmp_path / "budget").spent(names)
    (tmp_path / "other").mkdir()
    other = NodeBudget(config(tmp_path / "other", epsilon=1e6))
    reserve(other, spec, roster(spec, graph="00" * 32))
    worst = BudgetLedger(tmp_path / "other" / "budget").spent(data_names(config(tmp_path / "other").data))
    assert known.epsilon <= worst.epsilon
    assert worst.epsilon_at(1e-4) < math.inf
    ring = parse_spec(runs.ring(5, 1), None)
    with pytest.raises(Refused, match="ring of 5"):
        reserve(node, ring, roster(ring, 2, graph="00" * 32))


def test_a_data_set_is_known_by_its_content_and_its_place(tmp_path: Path) -> None:
    one, copy = tmp_path / "one.csv", tmp_path / "copy.csv"
    for path in (one, copy):
        path.write_text("1.0\n")
    part = DataPart("csv", path=str(one))
    names = data_names(part)
    assert len(set(names) & set(data_names(replace(part, path=str(copy))))) == 1
    one.write_text("1.0\n2.0\n")
    assert len(set(names) & set(data_names(part))) == 1
    assert data_names(DataPart("uniform")) == ("made up: uniform",)


def test_descent_is_charged_for_all_its_gradients_whoever_looks() -> None:
    """Amplification by iteration rests on how many users stay; the limit on gradients does not."""
    run = prepared(learning(20, 100))[0]
    ratio = run.plan.descent.sensitivity / run.plan.noise.scale
    for observer in ("node", "network"):
        charge = charge_of(run, observer)[0]
        assert charge.mu_squared == pytest.approx(run.plan.contributions_max * ratio**2)
    estimates = (
        "standardize = { mean = [40.0, 5.0], deviation = [12.0, 3.0], epsilon = 0.5, delta = 1e-6 }\nunit_norm = true"
    )
    dear = charge_of(prepared(learning(20, 100, data=estimates))[0], "node")[0]
    free = charge_of(prepared(learning(20, 100, data="unit_norm = true"))[0], "node")[0]
    assert dear.epsilon > free.epsilon_at(1e-5) + 0.5
    assert dear.mu_squared == 0.0


@pytest.mark.parametrize("terms", ["rounds = 5", "rounds = 5\ncover = true"])
def test_shuffling_is_charged_by_one_report_that_everybody_sees(terms: str) -> None:
    """Who is late or excluded leaves others less hidden, and neither is known when a run is charged."""
    run = plan(shuffle(40, terms=terms).replace("epsilon = 3.0", "epsilon = 1.0"))
    for observer in ("node", "coalition", "network"):
        charge, _ = charge_of(run, observer)
        assert (charge.epsilon, charge.delta) == (pytest.approx(1.0), 0.0)
    assert (
        claims_a_priori(run, DELTA, (), one_value=False).claims[0].epsilon_max < 0.8
    )  # which assumes that all are there


def test_gaussian_reports_are_charged_by_their_mu() -> None:
    text = shuffle(9).replace('"randomized_response"\nepsilon = 3.0', '"gaussian"\nsigma = 2.0')
    text = text.replace('"categories"', '"uniform"\nclip = [0.0, 1.0]').replace('"histogram"\ncategories = 3', '"mean"')
    assert charge_of(plan(text), "node")[0].mu_squared == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize("observer", ["node", "network"])
def test_learning_by_gossip_is_charged_for_all_its_gradients(observer: str) -> None:
    """mu^2 = T Delta^2 / sigma^2 whoever looks; never what a model says."""
    for task, clip, count in ((GOSSIP_LOGISTIC, 1.0, 3), (GOSSIP_MEAN, 120.0, 4)):
        run, _ = prepared(gossip_learning(5, "changing", task=task, sigma=4.0))
        charge, _ = charge_of(run, observer)
        assert charge.mu_squared == pytest.approx(count * (2.0 * clip / 4.0) ** 2, rel=1e-6)


def test_a_process_answers_as_this_one(tmp_path: Path) -> None:
    spec = parse_spec(runs.walk(4, 30), None)
    run = offered_run(spec, 1)
    assert run is not None
    simulate(spec, tmp_path / "run")
    ledger = tmp_path / "run" / "nodes" / "0002" / "view.ledger"
    with reckoning() as process:
        for reckoner in (Reckoner(process.ask), Reckoner(Reckoning().answer)):
            offered = reckoner.offer(spec, 1)
            assert offered is not None
            assert (offered.terms, offered.rounds) == (terms_of(run), 0)
            assert reckoner.costs() == costs_of(run)
            reckoner.sign(spec, run.facts)
            assert reckoner.costs() == costs_of(run)
            assert reckoner.charge("network") == charge_of(run, "network")
            assert reckoner.charge("node", 1e-9) == charge_of(run, "node", 1e-9)
            spent = spent_of(run, 2, read(ledger.read_bytes()))
            assert reckoner.spent(2, ledger) == reckoner.spent(2, ledger, costs_of(run)) == spent


def test_nothing_can_be_asked_before_the_run_is_known() -> None:
    reckoner = Reckoner(Reckoning().answer)
    with pytest.raises(UsageError):
        reckoner.costs()
    assert reckoner.offer(parse_spec(shuffle(6, 'kind = "file"\npath = "edges.csv"'), None), 1) is None
    with pytest.raises(UsageError):
        reckoner.costs()


def test_what_is_signed_is_checked() -> None:
    spec = parse_spec(shuffle(8, 'kind = "regular"\ndegree = 3', "single", "rounds = 2"), None)
    facts = dict(plan_run(spec, 8, 1).facts)
    reckoner = Reckoner(Reckoning().answer)
    reckoner.sign(spec, facts)
    with pytest.raises(Refused, match="fact rounds"):
        reckoner.sign(spec, facts | {"rounds": 9})
