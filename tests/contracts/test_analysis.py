"""What every protocol's analysis owes to auditor, planner and launcher. Protocols are found by name."""

from __future__ import annotations

import pytest

from p2pdp.audit.beforehand import OBSERVERS
from p2pdp.audit.local import local_account
from p2pdp.protocols import names, protocol
from p2pdp.protocols.contract import Quiet
from p2pdp.protocols.defaults import Analysis
from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis, PairAnalysis
from p2pdp.protocols.gossip.analysis.descents import GossipDescentAnalysis
from p2pdp.protocols.shuffle.analysis.reports import ShuffleAnalysis, SingleAnalysis
from p2pdp.protocols.walk.analysis.descents import WalkDescentAnalysis
from p2pdp.protocols.walk.analysis.sums import HistogramAnalysis, WalkAnalysis

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
    assert local_account in analysis.accounts()
    assert analysis.headline_observer in OBSERVERS


def test_a_protocol_that_says_nothing_gets_the_defaults() -> None:
    assert type(Quiet().analysis()) is Analysis
    assert local_account in Analysis().accounts()
