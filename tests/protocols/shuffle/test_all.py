from __future__ import annotations

from p2pdp.protocols import protocol
from p2pdp.protocols.shuffle.all import PROTOCOL
from tests.support.shuffle_networks import run_of
from tests.support.shuffle_specs import shuffle


def test_it_is_found_by_its_name_and_is_algorithm_1() -> None:
    assert protocol("shuffle.all") is PROTOCOL
    plan = run_of(shuffle(12, protocol="all")).plan
    assert plan.single is False
    assert (plan.dummies[0] > 0.0) is False
