"""What every protocol's analysis owes to auditor, planner and launcher. Protocols are found by name."""

from __future__ import annotations

import pytest

from p2pdp.audit.ground import Finding
from p2pdp.core.claims import Observer
from p2pdp.protocols import names, protocol
from p2pdp.protocols.contract import Quiet
from p2pdp.protocols.defaults import Analysis
from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis, PairAnalysis
from p2pdp.protocols.gossip.analysis.descents import GossipDescentAnalysis
from p2pdp.protocols.gossip.analysis.linear import linear_account
from p2pdp.protocols.shuffle.analysis.local import epsilon_of_report, local_account_of_reports
from p2pdp.protocols.shuffle.analysis.reports import ShuffleAnalysis, SingleAnalysis
from p2pdp.protocols.walk.analysis.descents import WalkDescentAnalysis
from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis, WalkAnalysis
from tests.support.gossips import gossip, ground_of
from tests.support.runs import quiet, run_of
from tests.support.shuffle_specs import shuffle

OURS = {
    "gossip.average": GossipAnalysis,
    "gossip.randomized": PairAnalysis,
    "gossip.sgd": GossipDescentAnalysis,
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
    analysis = Quiet().analysis()
    assert type(analysis) is Analysis
    assert analysis.ceiling in analysis.accounts()


def test_gossip_leaves_runs_as_planned_to_its_own_account() -> None:
    ground = ground_of(quiet(gossip(5, "ring", "rounds = 3")))
    assert linear_account(ground) == Finding()
    weaker = ground.run.plan.noise._replace(scale=1.0)
    ground.transcript.noise[2].own[:] = [(weaker,)]
    found = linear_account(ground)
    assert {claim.method for claim in found.claims} == {"exact"}
    assert "node" in {claim.observer for claim in found.claims}


def test_reports_have_a_ceiling_of_their_own() -> None:
    ground = ground_of(run_of(shuffle(4)))
    (claim,) = local_account_of_reports(ground).claims
    randomizer = ground.run.plan.randomizer
    assert claim.epsilon_max == epsilon_of_report(randomizer, ground.delta) == randomizer.epsilon
