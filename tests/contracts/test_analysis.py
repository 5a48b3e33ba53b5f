"""What every protocol's analysis owes to auditor, planner and launcher. Protocols are found by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from p2pdp.auditor.context import AccountResult
from p2pdp.core.claims import Observer
from p2pdp.core.draws import Draws, Mechanism
from p2pdp.core.step import Step
from p2pdp.protocols import names, protocol
from p2pdp.protocols.contract import ProtocolDefaults, Start
from p2pdp.protocols.defaults import HOW_OFTEN, UNPROTECTED, Analysis
from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis, PairAnalysis, linear_account
from p2pdp.protocols.gossip.analysis.descents import GossipDescentAnalysis
from p2pdp.protocols.pairwise.analysis.sums import PairwiseAnalysis
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.a_priori import epsilon_of_report, local_account_of_reports
from p2pdp.protocols.shuffle.analysis.reports import ShuffleAnalysis, SingleAnalysis
from p2pdp.protocols.walk.analysis.descents import WalkDescentAnalysis
from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis, WalkAnalysis
from p2pdp.topology.graphs import make_graph
from tests.support.gossips import context_of, gossip
from tests.support.runs import quiet, run_of
from tests.support.shuffle_specs import shuffle
from tests.support.third_party import ring_drift

OURS = {
    "gossip.average": GossipAnalysis,
    "gossip.randomized": PairAnalysis,
    "gossip.sgd": GossipDescentAnalysis,
    "pairwise.sum": PairwiseAnalysis,
    "shuffle.all": ShuffleAnalysis,
    "shuffle.single": SingleAnalysis,
    "walk.histogram": HistogramAnalysis,
    "walk.sgd": WalkDescentAnalysis,
    "walk.sum": WalkAnalysis,
}


@pytest.mark.parametrize("name", names())
def test_each_protocol_has_the_analysis_of_its_family(name: str) -> None:
    assert type(protocol(name).analysis()) is OURS[name]


@pytest.mark.parametrize("name", names())
def test_the_local_ceiling_is_always_among_the_accounts(name: str) -> None:
    """It is what holds where no other account speaks."""
    analysis = protocol(name).analysis()
    assert analysis.ceiling in analysis.accounts()
    assert analysis.headline_observer in Observer


def test_a_protocol_that_says_nothing_gets_the_defaults() -> None:
    analysis = ProtocolDefaults().analysis()
    assert type(analysis) is Analysis
    assert analysis.ceiling in analysis.accounts()


def test_gossip_leaves_runs_as_planned_to_its_own_account() -> None:
    context = context_of(quiet(gossip(5, "ring", "rounds = 3")))
    assert linear_account(context) == AccountResult()
    weaker = context.run.plan.noise._replace(scale=1.0)
    context.transcript.noise[2].own[:] = [(weaker,)]
    found = linear_account(context)
    assert {claim.method for claim in found.claims} == {"exact"}
    assert "node" in {claim.observer for claim in found.claims}


def test_reports_have_a_ceiling_of_their_own() -> None:
    context = context_of(run_of(shuffle(4)))
    (claim,) = local_account_of_reports(context).claims
    randomizer = context.run.plan.randomizer
    assert claim.epsilon_max == epsilon_of_report(randomizer, context.delta) == randomizer.epsilon


class Bare(ring_drift.Drifting):
    """Sends what it holds without noise."""

    def start(self, now_s: float, draws: Draws) -> Step:
        self._state = self._inputs.contribution(0)
        return self._goes_on([self._state_of_round()])


def drifting(machine: type[ring_drift.Drifting], **changed: Any) -> RunPlan:
    plan = ring_drift.Drift(4, Mechanism("gaussian", 2.0**21), -20, 2)
    protocol = ring_drift.RingDrift()
    protocol.machine = lambda plan, user, neighbours, inputs: machine(plan, user, inputs)  # type: ignore[method-assign]
    spec = quiet(gossip(4, "ring")).evidence.spec
    return RunPlan(spec, 4, 1, protocol, replace(plan, **changed), "seeded", make_graph(spec.graph, 4, 1))


def test_the_ceiling_is_promised_if_the_machine_keeps_it() -> None:
    found = Analysis().a_priori(drifting(ring_drift.Drifting), 1e-5, (), one_value=True)
    (claim,) = found.claims
    assert (claim.observer, claim.conditioning, claim.bound) == ("network", "a-priori", True)
    assert claim.mu_max == pytest.approx(0.5)


def test_the_ceiling_is_refused_where_the_machine_does_not_keep_it() -> None:
    found = Analysis().a_priori(drifting(Bare), 1e-5, (), one_value=True)
    assert found.claims == []
    assert [(one.observer, one.reason) for one in found.refusals] == [("network", UNPROTECTED)]


def test_the_ceiling_is_refused_where_nobody_says_how_often_users_contribute() -> None:
    found = Analysis().a_priori(drifting(ring_drift.Drifting, starts=(Start(0, 0, 1),)), 1e-5, (), one_value=True)
    assert found.claims == []
    assert [one.reason for one in found.refusals] == [HOW_OFTEN]


def test_what_cannot_be_looked_at_in_advance_is_no_bound() -> None:
    """The machine may contribute as often as it likes: without the graph nobody has seen what it does."""
    found = Analysis().a_priori(replace(drifting(ring_drift.Drifting), graph=None), 1e-5, (), one_value=True)
    assert not found.claims
    assert [one.observer for one in found.refusals] == ["network"]
