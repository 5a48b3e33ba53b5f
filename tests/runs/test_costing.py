"""What owners are shown before and after a run, and what they refuse."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from p2pdp.auditor.a_priori import claims_a_priori, spent_in
from p2pdp.core.errors import Refused
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.core.messages import OUT
from p2pdp.files.node_config import Accept, NodeConfig
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import DRAWN, RECEIVED, public_message
from p2pdp.protocols.run_plan import plan_run
from p2pdp.runs.costing import (
    Cost,
    check_epsilon,
    costs_of,
    offered_run,
    rests_on_others,
    signed_run,
    spent_of,
    terms_of,
)
from p2pdp.sim.faults import Crash
from tests.support import runs
from tests.support.plans import DELTA, plan
from tests.support.shuffle_specs import shuffle
from tests.support.sources import TOP


def config(**accept: Any) -> NodeConfig:
    made: Any = SimpleNamespace(path=Path("node.toml"), accept=Accept(**accept))
    return cast("NodeConfig", made)


def by_observer(costs: list[Cost]) -> dict[str, Cost]:
    return {one.observer: one for one in costs}


def test_each_observer_has_its_best_bound_and_the_network_what_the_node_enforces() -> None:
    run = plan(runs.walk(6, 60))
    costs = by_observer(costs_of(run))
    assert list(costs) == ["node", "curator", "public", "network"]
    claims = claims_a_priori(run, DELTA, (), one_value=False).claims
    for observer in ("curator", "public"):
        best = min(one.epsilon_max or 0.0 for one in claims if one.observer == observer)
        assert costs[observer].epsilon == pytest.approx(best)
    most = run.plan.contributions_max
    assert costs["network"].epsilon > costs["node"].epsilon
    assert costs["network"].epsilon == pytest.approx(spent(run, most), rel=1e-6)


def spent(run: Any, contributions: int) -> float:
    claim = spent_in(run, 0, [(run.plan.noise,)] * contributions, DELTA)
    assert claim is not None
    return claim.epsilon_max or 0.0


def test_on_a_ring_whoever_sees_the_whole_network_learns_everything() -> None:
    costs = by_observer(costs_of(plan(runs.ring(5, 2) + "colluders = [0, 2]\n")))
    assert list(costs) == ["node", "curator", "public", "coalition", "curator+coalition", "network"]
    assert 0.0 < costs["node"].epsilon < costs["coalition"].epsilon
    assert costs["network"].epsilon == math.inf
    assert costs["network"].to_json()["epsilon"] == "inf"
    assert "infinite" in costs["network"].text
    assert "no protection" in costs["network"].text


@pytest.mark.parametrize("observer", ["node", "coalition", "network"])
def test_a_run_that_costs_more_than_the_owner_allows_is_refused(observer: str) -> None:
    costs = costs_of(plan(runs.walk(6, 60)))
    worst = by_observer(costs)["network" if observer == "network" else "node"]
    check_epsilon(costs, config())
    check_epsilon(costs, config(epsilon_max=worst.epsilon, observer=observer))
    with pytest.raises(Refused, match=rf"\[accept\] epsilon_max: .* epsilon {worst.epsilon:.6g} .* allows") as caught:
        check_epsilon(costs, config(epsilon_max=worst.epsilon * 0.999, observer=observer))
    assert ("all decrypted messages" in str(caught.value)) == (observer == "network")
    with pytest.raises(Refused, match="an infinite epsilon"):
        check_epsilon(costs_of(plan(runs.ring(5, 2))), config(epsilon_max=1e9))


def test_a_graph_that_only_bootstrap_knows_gives_the_worst_case_or_nothing() -> None:
    text = runs.walk(6, 60).replace('"complete"', '"file"\npath = "edges.csv"')
    run = offered_run(parse_spec(text, None), 1)
    assert run is not None
    assert run.plan.contributions_max == 60
    assert offered_run(parse_spec(shuffle(6, 'kind = "file"\npath = "edges.csv"'), None), 1) is None


@pytest.mark.parametrize("user", [0, 2])
def test_what_was_spent_is_what_the_own_ledger_has(user: int) -> None:
    found = runs.quiet(runs.walk(4, 40))
    contents = found.contents()[user]
    costs, used = by_observer(costs_of(found.plan)), by_observer(spent_of(found.plan, user, contents))
    drawn = sum(record.kind == DRAWN for record in contents.records)
    assert used["network"].epsilon == pytest.approx(spent(found.plan, drawn))
    assert (used["network"].conditioning, used["network"].method) == ("public", "local")
    assert used["network"].epsilon <= costs["network"].epsilon
    assert {name: used[name] for name in ("node", "curator", "public")} == {
        name: costs[name] for name in ("node", "curator", "public")
    }


@pytest.mark.parametrize(
    "text",
    [
        runs.ring(4, 2),
        runs.walk(4, 20, **runs.HISTOGRAM),
        runs.walk(4, 20, "star", tokens=2),
        shuffle(4),
    ],
)
def test_every_protocol_tells_what_was_spent(text: str) -> None:
    found = runs.quiet(text)
    for user in range(4):
        contents = found.contents()[user]
        spent_now = spent_of(found.plan, user, contents)
        assert spent_of(found.plan, user, contents, costs_of(found.plan)) == spent_now, "rows are not computed again"
        used = by_observer(spent_now)
        (claim,) = (one for one in found.audit().claims if (one.observer, one.method) == ("network", "local"))
        assert used["network"].epsilon <= (claim.epsilon_max or 0.0) * (1.0 + 1e-9)


def test_after_an_exclusion_rows_that_assumed_none_fall_back_to_the_ledger() -> None:
    text = runs.walk(5, 40)
    found = runs.run_of(text, Crash(4, at_record=8, down_s=None))
    contents = found.contents()[1]
    told = [record for record in contents.records if record.kind == RECEIVED and record.body.sender == BOOTSTRAP]
    assert any(public_message(record).type == OUT for record in told)
    used = by_observer(spent_of(found.plan, 1, contents))
    assert used["curator"] == Cost("curator", used["network"].epsilon, used["network"].delta, "public", "local")
    assert by_observer(spent_of(found.plan, 1, contents, costs_of(found.plan))) == used


SAMPLES = TOP / "deploy" / "samples" / "nodes"


@pytest.mark.parametrize(
    ("overrides", "allowed"),
    [((), True), (("run.nodes=2",), True), (("noise.sigma=12.0",), False), (("walk.hops=200000",), False)],
)
def test_the_sample_configuration_takes_the_sample_run_and_none_that_costs_more(
    overrides: tuple[str, ...],
    allowed: bool,
) -> None:
    accept = tomllib.loads((SAMPLES / "node.toml").read_text())["accept"]
    limits = config(**{key: accept[key] for key in ("epsilon_max", "observer", "delta")})
    run = offered_run(parse_spec((SAMPLES / "hours.toml").read_text(), None, overrides), 1)
    assert run is not None
    if allowed:
        check_epsilon(costs_of(run), limits)
        return
    with pytest.raises(Refused, match="epsilon_max"):
        check_epsilon(costs_of(run), limits)


@pytest.mark.parametrize("nodes", [2, 8])
@pytest.mark.parametrize("name", ["node.toml", "node.tcp.toml"])
def test_containers_take_their_run(name: str, nodes: int) -> None:
    place = TOP / "deploy" / "containers"
    accept = tomllib.loads((place / name).read_text())["accept"]
    run = offered_run(parse_spec((place / "spec.toml").read_text(), None, [f"run.nodes={nodes}"]), 1)
    assert run is not None
    check_epsilon(costs_of(run), config(epsilon_max=accept["epsilon_max"], observer=accept["observer"]))


MIXED = shuffle(8, 'kind = "regular"\ndegree = 3', "single", "rounds = 2")


def signed(text: str, **lies: str | float) -> Any:
    spec = parse_spec(text, None)
    facts = {**plan_run(spec, spec.run.nodes, 1).facts, **lies}
    return signed_run(spec, facts)


@pytest.mark.parametrize(
    "lie", [{"overlap": 1.0}, {"dummies": -1e6}, {"overlap": math.nan}, {"rounds": 9}, {"overlap_by": "word"}]
)
def test_facts_that_do_not_follow_from_the_signed_graph_are_refused(lie: dict[str, Any]) -> None:
    assert signed(MIXED).graph is not None
    with pytest.raises(Refused, match=f"fact {next(iter(lie))}"):
        signed(MIXED, **lie)


def test_of_a_graph_that_cannot_be_made_again_mixing_is_not_believed() -> None:
    run = signed(MIXED, graph="00" * 32, overlap=1.0, dummies=-1e6)
    assert run.graph is None
    assert {(one.method, one.epsilon) for one in costs_of(run)} == {("local", run.plan.randomizer.epsilon)}


def test_a_large_delta_is_not_called_protection() -> None:
    small, large = Cost("node", 0.0, 1e-3, "a-priori", "local"), Cost("node", 0.0, 0.999, "a-priori", "local")
    assert "learns nothing" in small.text
    assert "no protection" in large.text
    assert "learns nothing" not in large.text


def test_costs_are_those_of_the_same_terms_only() -> None:
    text = runs.walk(6, 60)
    run = plan(text)
    terms = terms_of(run)
    assert terms == terms_of(plan(text))
    assert terms_of(replace(run, graph_facts={"other": 1})) != terms
    assert terms_of(replace(run, graph=None)) != terms
    others = [runs.walk(7, 60), runs.walk(6, 61), text + "budget = 7.0\n"]
    assert len({terms, *(terms_of(plan(other)) for other in others)}) == 4


def test_costs_are_the_same_when_they_are_read_back() -> None:
    costs = costs_of(plan(runs.ring(5, 2)))
    assert math.inf in {one.epsilon for one in costs}
    assert [Cost.from_json(one.to_json()) for one in costs] == costs


def test_who_hands_in_a_skeleton_that_the_curator_can_read_rests_no_claim_on_what_it_does_not_know() -> None:
    run = plan(shuffle(10).replace("delta = 1e-5", "delta = 1e-3"))
    hidden, shared = by_observer(costs_of(run)), by_observer(costs_of(run, shares=True))
    assert hidden["curator"].method == "shuffle"
    assert shared["curator"].epsilon == shared["network"].epsilon > hidden["curator"].epsilon
    assert shared["node"] == hidden["node"]
    assert rests_on_others(run.spec, costs_of(run))
    assert not rests_on_others(run.spec, costs_of(run, shares=True))
    limits = config(epsilon_max=(hidden["curator"].epsilon + shared["curator"].epsilon) / 2.0, observer="node")
    with pytest.raises(Refused, match="the curator"):
        check_epsilon(costs_of(run, shares=True), limits)


def test_a_skeleton_that_is_sealed_to_the_auditor_tells_the_curator_nothing() -> None:
    text = shuffle(10).replace("delta = 1e-5", "delta = 1e-3") + f'[audit]\nkey = "{"ab" * 32}"\n'
    run = plan(text)
    assert costs_of(run, shares=True) == costs_of(run)
    assert not rests_on_others(run.spec, costs_of(run))
