from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.core.values import ZERO_FORM, snapped
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms.clipping import Bounds, clip
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.gossip import averaging
from p2pdp.protocols.gossip.options import GossipPart
from p2pdp.protocols.gossip.plan import ACTIVATIONS
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts, plan_run
from p2pdp.topology.gossip_rounds import acceleration, rounds_needed
from p2pdp.topology.graphs import make_graph
from tests.support.gossip_specs import gossip
from tests.support.walk_world import SeededDraws


def spec(noise: NoisePart, **gossip: float) -> Spec:
    return Spec(
        run=RunPart("gossip.average", 6),
        graph=GraphPart("ring"),
        noise=noise,
        data=DataPart("uniform", clip=(-1.0, 1.0)),
        task=TaskPart("mean"),
        options=GossipPart(rounds=3, **gossip),  # type: ignore[arg-type]
    )


def test_noise_is_on_a_grid_and_as_large_as_the_spec_says() -> None:
    setting = averaging.setting_of(spec(NoisePart("gaussian", sigma=0.5), message_sigma=0.01), 1)
    assert math.ldexp(setting.noise.scale, setting.grid_exponent) == pytest.approx(0.5)
    assert setting.message_noise is not None
    assert math.ldexp(setting.message_noise.scale, setting.grid_exponent) == pytest.approx(0.01)
    assert setting.message_noise.scale >= 2**20
    assert (setting.sigma, setting.span, setting.shape) == (0.5, 2.0, ())


def test_laplace_noise_has_the_scale_of_its_deviation_and_none_has_none() -> None:
    laplace = averaging.setting_of(spec(NoisePart("laplace", sigma=0.5)), 3)
    assert math.ldexp(laplace.noise.scale, laplace.grid_exponent) == pytest.approx(0.5 / math.sqrt(2))
    assert laplace.shape == (3,)
    assert averaging.setting_of(spec(NoisePart("none")), 1).noise.scale == 0.0


def test_a_user_averages_its_first_row() -> None:
    inputs, values = averaging.inputs_of((), clip([0.25, 0.5], Bounds(0.0, 1.0)), Grid(-20))
    assert (values, inputs.contribution(0)) == ([0.25], 0.25)
    _, rows = averaging.inputs_of((2,), clip([[0.25, 0.5], [0.0, 0.0]], Bounds(0.0, 1.0)), Grid(-20))
    np.testing.assert_array_equal(rows[0], [0.25, 0.5])


@given(st.floats(0.0, 1.0), st.integers(-(2**40), 2**40))
def test_nothing_of_a_value_is_seen_beside_the_noise(value: float, noise: int) -> None:
    """Neither its remainder on the grid, nor that of a state which is noised once more."""
    step = 2.0**-20
    _, (kept,) = averaging.inputs_of((), clip([value], Bounds(0.0, 1.0)), Grid(-20))
    assert abs(kept - value) < step
    for hidden in (kept, snapped(value / 3.0, step)):
        assert math.fmod(hidden + noise * step, step) == 0.0
    assert snapped(np.array([value, 0.7]), step)[0] == snapped(value, step)
    assert snapped(ZERO_FORM, step) is ZERO_FORM


def test_what_is_public_of_a_graph() -> None:
    facts = averaging.facts_of(spec(NoisePart("none")), make_graph(GraphPart("ring"), 6, 0))
    assert facts["degree_max"] == 2
    assert facts["gap"] == pytest.approx((2 - 2 * math.cos(math.pi / 3)) / 3)
    assert averaging.fact(facts, "gap") == facts["gap"]
    for facts_without in ({}, {"gap": "wide"}):
        with pytest.raises(VerificationFailed, match="lacks the fact gap"):
            averaging.fact(facts_without, "gap")
    uniform = replace(spec(NoisePart("none")), graph=GraphPart("ring", weights="uniform"))
    with pytest.raises(UsageError, match="bipartite"):
        averaging.facts_of(uniform, make_graph(GraphPart("ring"), 6, 0))


def test_results_are_published_side_by_side_and_their_mean_is_the_estimate() -> None:
    assert averaging.publish([]) is None
    assert averaging.estimate_of((), averaging.publish([])).value is None
    assert averaging.estimate_of((), averaging.publish([1.0, 2.0])).value == 1.5
    vectors = averaging.publish([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    assert averaging.estimate_of((2,), vectors).value == [2.0, 3.0]


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


def planned(n: int, kind: str = "ring") -> RunPlan:
    return plan_run(parse_spec(gossip(n, kind, "activations = 40", "randomized"), None), n, 1)


def test_bootstrap_tells_each_user_its_own_activations() -> None:
    run = planned(6)
    told = {send.to: send.message for send in run.opening(SeededDraws(1))}
    assert sorted(told) == list(range(6))
    assert {message.type for message in told.values()} == {ACTIVATIONS}
    pairs = {(number, user, other) for user, message in told.items() for number, other in message.fields[2]}
    assert {number for number, _, _ in pairs} == set(range(1, 41))
    assert all((number, other, user) in pairs for number, user, other in pairs)
    assert run.graph is not None
    assert all(other in run.graph.neighbours[user] for _, user, other in pairs)


def test_a_single_user_is_told_that_it_meets_nobody() -> None:
    (send,) = planned(1, "complete").opening(SeededDraws(1))
    assert (send.to, send.message.fields) == (0, (0, 1, []))


def test_an_auditor_makes_the_same_plan_from_signed_facts_randomized() -> None:
    run = planned(6)
    assert plan_of_facts(run.spec, run.facts).plan == run.plan
