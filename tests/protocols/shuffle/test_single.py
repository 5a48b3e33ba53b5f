from __future__ import annotations

from p2pdp.protocols import protocol
from p2pdp.protocols.shuffle.single import PROTOCOL
from tests.support.shuffle_networks import run_of
from tests.support.shuffle_specs import shuffle


def test_it_is_found_by_its_name_and_is_algorithm_2() -> None:
    assert protocol("shuffle.single") is PROTOCOL
    plan = run_of(shuffle(12, protocol="single")).plan
    assert plan.single is True
    assert (plan.dummies[0] > 0.0) is True
