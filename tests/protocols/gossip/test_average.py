from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import plan_of_facts, plan_run
from p2pdp.topology.gossip_rounds import acceleration, rounds_needed
from tests.support.gossip_specs import gossip


def test_automatic_rounds_follow_from_public_numbers() -> None:
    run = plan_run(parse_spec(gossip(8, "ring", 'rounds = "auto"\naccelerated = true'), None), 8, 1)
    assert run.plan.rounds == rounds_needed(run.plan.gap, 8, 1.0, 1.0, 1, accelerated=True)
    assert run.plan.gamma == acceleration(run.plan.gap)
    plain = plan_run(parse_spec(gossip(8, "ring", 'rounds = "auto"'), None), 8, 1)
    assert plain.plan.rounds > run.plan.rounds
    assert plain.plan.gamma == 1.0


def test_an_auditor_makes_the_same_plan_from_signed_facts() -> None:
    spec = parse_spec(gossip(8, "exponential", 'rounds = "auto"\naccelerated = true'), None)
    run = plan_run(spec, 8, 1)
    assert plan_of_facts(spec, run.facts).plan == run.plan
    assert set(run.facts) >= {"gap", "degree_max"}


def test_two_sides_that_would_swap_for_ever_are_refused() -> None:
    text = gossip(6, "ring").replace('kind = "ring"', 'kind = "ring"\nweights = "uniform"')
    with pytest.raises(UsageError, match="weights"):
        plan_run(parse_spec(text, None), 6, 1)
