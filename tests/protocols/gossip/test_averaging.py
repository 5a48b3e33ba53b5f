from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.core.values import ZERO_FORM, snapped
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import dither
from p2pdp.mechanisms.clipping import Bounds, clip
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.dithering import GAUSSIAN_TAIL
from p2pdp.protocols.gossip import averaging
from p2pdp.protocols.gossip.analysis.fast import standard_error_of
from p2pdp.protocols.gossip.options import GossipPart
from p2pdp.protocols.gossip.plan import ACTIVATIONS
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts, plan_run
from p2pdp.topology.gossip_rounds import acceleration, rounds_needed
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_specs import gossip
from tests.support.runs import walk
from tests.support.walk_world import SeededDraws


def spec(noise: NoisePart, **gossip: Any) -> Spec:
    return Spec(
        run=RunPart("gossip.average", 6),
        graph=GraphPart("ring"),
        noise=noise,
        data=DataPart("uniform", clip=(-1.0, 1.0)),
        task=TaskPart("mean"),
        options=GossipPart(**{"rounds": 3} | gossip),
    )


def test_noise_is_on_a_grid_and_as_large_as_the_spec_says() -> None:
    setting = averaging.setting_of(spec(NoisePart("gaussian", sigma=0.5), message_sigma=0.01), 1, 4)
    assert math.ldexp(setting.noise.scale, setting.grid_exponent) == pytest.approx(0.5)
    assert setting.message_noise is not None
    assert math.ldexp(setting.message_noise.scale, setting.grid_exponent) == pytest.approx(0.01)
    assert setting.message_noise.scale >= 2**20
    assert (setting.sigma, setting.span, setting.shape) == (0.5, 2.0, ())


def test_laplace_noise_has_the_scale_of_its_deviation_and_none_has_none() -> None:
    laplace = averaging.setting_of(spec(NoisePart("laplace", sigma=0.5)), 3, 4)
    assert math.ldexp(laplace.noise.scale, laplace.grid_exponent) == pytest.approx(0.5 / math.sqrt(2))
    assert laplace.shape == (3,)
    assert averaging.setting_of(spec(NoisePart("none")), 1, 4).noise.scale == 0.0


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


def shared_plan(pair_sigma: float, terms: str = "rounds = 3", **more: Any) -> RunPlan:
    text = gossip(8, "hypercube", terms, **more).replace("sigma = 1.0", f"sigma = 1.0\npair_sigma = {pair_sigma}")
    return plan_run(parse_spec(text, None), 8, 1)


@pytest.mark.parametrize("pair_sigma", [0.01, 5.0, 1e6])
def test_noise_of_pairs_is_on_the_same_grid_and_begins_states_exactly(pair_sigma: float) -> None:
    plan = shared_plan(pair_sigma).plan
    assert plan.pair_noise.scale * plan.step == pytest.approx(pair_sigma)
    assert min(plan.pair_noise.scale, plan.noise.scale) >= 2**20
    most = 1.0 + 64.0 * (1.0 + math.sqrt(3.0) * pair_sigma)
    assert most / plan.step < 2.0**53, "sums of value and noise are floats"
    assert plan.pair_noise not in plan.other_draws
    assert plan.protection == (plan.noise,), "which is what the local ceiling counts"


def test_automatic_rounds_mix_noise_of_pairs_away() -> None:
    for terms in ('rounds = "auto"', 'rounds = "auto"\naccelerated = true'):
        few, many = (shared_plan(pair_sigma, terms) for pair_sigma in (1e-3, 50.0))
        assert many.plan.rounds > few.plan.rounds
        deviation = standard_error_of(many)
        assert deviation is not None
        assert deviation**2 <= 3.0 / 8
    assert standard_error_of(shared_plan(50.0, "rounds = 1")) > 5.0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ('noise.mechanism="laplace"', r"\[noise\] pair_sigma"),
        ("noise.pair_sigma=0", r"\[noise\] pair_sigma"),
        ('graph.kind="erdos_renyi"', r"\[noise\] pair_sigma"),
    ],
)
def test_noise_of_pairs_needs_gaussian_noise_beside_it_and_a_graph_that_stays(changed: str, key: str) -> None:
    text = gossip(8, "ring").replace("sigma = 1.0", "sigma = 1.0\npair_sigma = 2.0")
    more = ["graph.changing=true"] if "erdos" in changed else []
    with pytest.raises(UsageError, match=key):
        parse_spec(text, None, [changed, *more])
    with pytest.raises(UsageError, match="pair_sigma"):
        parse_spec(walk(5, 20), None, ["noise.pair_sigma=2.0"])


# States in fewer bytes


def short_plan(precision: str, dimensions: int) -> averaging.GossipPlan:
    made = spec(NoisePart("gaussian", sigma=1.0), rounds=100, precision=precision)
    return averaging.AVERAGE.plan(made, 16, dimensions, {"degree_max": 4, "gap": 0.1})


def test_a_short_state_with_its_dither_fits_into_its_steps() -> None:
    for dimensions in (2, 10**5):
        short, full = (short_plan(name, dimensions) for name in ("short", "full"))
        reach = 1.0 + GAUSSIAN_TAIL
        assert (short.short, full.short) == (True, False)
        assert reach + 30 * dither.SCALE * short.fine < 2.0**39 * short.fine <= 4 * reach
        assert short.fine == 2.0**12 * full.fine
    assert not short_plan("short", 1).short, "a single number is sent as before"


@pytest.mark.parametrize(("n", "degree"), [(16, 4), (100, 4), (64, 6)])
def test_dithers_of_short_states_add_next_to_nothing_to_errors(n: int, degree: int) -> None:
    deviation = 16.0 * 2.0**-17  # of a dither, that of the noise being 1
    graph = make_graph(GraphPart("regular", degree=degree), n, 1)
    weights = sparse_weights(graph, averaging.METROPOLIS).toarray()
    left, state, added = weights - np.diag(np.diag(weights)), weights, 0.0
    for _ in range(100):  # what was sent in a round is in the results by as many rounds as follow
        added += float((left**2).sum(axis=1).max()) * deviation**2
        left, state = weights @ left, weights @ state
    assert math.sqrt(1.0 + added / float((state**2).sum(axis=1).min())) < 1.0 + 1e-5


def test_where_dithers_of_short_states_could_show_they_are_refused() -> None:
    facts = {"degree_max": 4, "gap": 0.1}
    for sigma, rounds, n, refused in ((1.0, 10_000, 100, False), (1.0, 20_000, 100, True), (1e-3, 100, 16, True)):
        made = spec(NoisePart("gaussian", sigma=sigma), rounds=rounds, precision="short")
        if refused:
            with pytest.raises(UsageError, match="precision"):
                averaging.AVERAGE.plan(made, n, 5, facts)
        else:
            plan = averaging.AVERAGE.plan(made, n, 5, facts)
            added = (dither.SCALE * plan.fine) ** 2 * rounds * n
            assert math.sqrt(1.0 + added) < 1.01
