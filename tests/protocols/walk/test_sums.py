from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from p2pdp.core.draws import NO_NOISE, Mechanism, Shape
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import NoisePart, Spec
from p2pdp.mechanisms import randomized_response
from p2pdp.mechanisms.clipping import Bounds, clip
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.walk.sums import HISTOGRAM, PROTOCOL, noise_deviation, sigma_of
from p2pdp.protocols.walk.walking import WalkPlan
from p2pdp.tasks.inputs import CategoryInputs, NumberInputs
from p2pdp.topology.graphs import make_graph
from tests.support.walk_world import SeededDraws, World, histogram_spec, make_world, sum_spec

UNIT = Bounds(0.0, 1.0)


def plan_of(spec: Spec, dimensions: int = 1) -> WalkPlan:
    return PROTOCOL.plan(spec, spec.run.nodes, dimensions)


# Noise


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(0.1, 1e-6, 36.3046904261959), (1, 1e-5, 3.7306316348159), (5, 1e-6, 0.9800490003092)],
)
def test_epsilon_and_delta_are_those_of_one_contribution(epsilon: float, delta: float, sigma: float) -> None:
    """Known answers of guide/accounting.md, section 6; d dimensions count sqrt(d) times, bounds [-1, 3] four times."""
    noise = NoisePart("gaussian", epsilon=epsilon, delta=delta)
    assert sigma_of(noise, UNIT, 1) == pytest.approx(sigma, rel=1e-9)
    assert sigma_of(noise, UNIT, 4) == pytest.approx(2 * sigma, rel=1e-9)
    assert sigma_of(noise, Bounds(-1.0, 3.0), 1) == pytest.approx(4 * sigma, rel=1e-9)


def test_laplace_noise_is_sized_for_the_sum_of_absolute_changes() -> None:
    noise = NoisePart("laplace", epsilon=0.5)
    assert sigma_of(noise, Bounds(0.0, 3.0), 4) == pytest.approx(math.sqrt(2) * 4 * 3 / 0.5)


def test_sigma_is_a_standard_deviation_for_laplace_too() -> None:
    plan = plan_of(sum_spec(mechanism="laplace", sigma=3.0))
    assert plan.noise.name == "laplace"
    assert math.ldexp(plan.noise.scale, plan.grid_exponent) == pytest.approx(3.0 / math.sqrt(2))


def test_no_noise_is_spelled_out() -> None:
    plan = plan_of(sum_spec(mechanism="none"))
    assert plan.noise == NO_NOISE
    assert not any(plan.draws_at(step) for step in range(1, plan.steps + 1))
    assert noise_deviation(plan) == 0.0
    assert not plan.closing


@pytest.mark.parametrize("spec", [sum_spec(n=50, share=True), sum_spec(n=50, hops=20), sum_spec(sigma=1e-6)])
def test_the_smallest_noise_is_at_least_2_to_the_20_grid_steps(spec: Spec) -> None:
    plan = plan_of(spec)
    assert (plan.share or plan.noise).scale >= 2**20


# Plans


def test_a_ring_follows_the_real_number_of_users() -> None:
    plan = PROTOCOL.plan(sum_spec(n=5, laps=3), 4, 1)
    assert (plan.n, plan.steps, plan.spacing) == (4, 12, 3)


def test_a_ring_has_room_for_one_token_each() -> None:
    for spec in (sum_spec(n=3, tokens=4), histogram_spec(n=3, tokens=4)):
        with pytest.raises(UsageError, match=r"\[walk\] tokens: a ring of 3 users"):
            plan_of(spec) if spec.task.kind == "sum" else plan_of_histogram(spec)
    assert plan_of(sum_spec(n=3, hops=2, tokens=4)).tokens == 4


def test_plans_are_frozen_values() -> None:
    first, second = plan_of(sum_spec(share=True), 3), plan_of(sum_spec(share=True), 3)
    assert first == second
    assert hash(first) == hash(second)
    assert first != plan_of(sum_spec(share=True), 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.closing = False  # type: ignore[misc]


# Inputs and estimates


def test_inputs_are_rounded_down_to_the_grid_and_come_back_from_the_private_ledger() -> None:
    plan = plan_of(sum_spec())
    unit = math.ldexp(1.0, plan.grid_exponent)
    rows = clip([0.3, 2.0, -1.0], UNIT)
    inputs, values = PROTOCOL.inputs(plan, rows)
    assert values == [math.floor(0.3 / unit), 1 / unit, 0]
    assert all(type(value) is int for value in values)
    again = PROTOCOL.inputs_again(plan, values)
    assert [again.contribution(visit) for visit in range(4)] == [inputs.contribution(visit) for visit in range(4)]


def test_vectors_are_int64_rows() -> None:
    plan = plan_of(sum_spec(), 2)
    inputs, values = PROTOCOL.inputs(plan, clip([[0.5, 1.0], [0.0, 0.25]], UNIT))
    unit = math.ldexp(1.0, plan.grid_exponent)
    assert [(value * unit).tolist() for value in values] == [[0.5, 1.0], [0.0, 0.25]]
    assert all(value.dtype == np.int64 for value in values)
    assert inputs.contribution(3).tolist() == values[1].tolist()
    assert inputs.zero().shape == (2,)


def test_a_sum_is_estimated_in_data_units_and_not_divided() -> None:
    plan = plan_of(sum_spec(n=5, laps=2))
    published = math.floor(12.5 / math.ldexp(1.0, plan.grid_exponent))
    estimate = PROTOCOL.estimate(plan, published, 10)
    assert estimate.value == pytest.approx(12.5)
    assert estimate.standard_error == noise_deviation(plan)


def test_a_mean_is_divided_by_the_number_of_contributions() -> None:
    spec = sum_spec(n=5, laps=2)
    mean = plan_of(dataclasses.replace(spec, task=dataclasses.replace(spec.task, kind="mean")))
    plan = plan_of(spec)
    assert mean == dataclasses.replace(plan, mean=True)
    told, total = PROTOCOL.estimate(mean, 2**30, 10), PROTOCOL.estimate(plan, 2**30, 10)
    assert isinstance(total.value, float)
    assert told.value == total.value / 10
    assert told.standard_error == noise_deviation(plan) / 10


def test_vectors_are_estimated_as_lists() -> None:
    plan = plan_of(sum_spec(), 3)
    unit = math.ldexp(1.0, plan.grid_exponent)
    estimate = PROTOCOL.estimate(plan, np.array([1, -2, 0], dtype=np.int64), 10)
    assert estimate.value == [unit, -2 * unit, 0.0]
    assert estimate.standard_error == [noise_deviation(plan)] * 3


def test_totals_of_several_tokens_are_added() -> None:
    plan = plan_of(sum_spec(n=3, tokens=3))
    assert PROTOCOL.publish(plan, [5, -7, 11]) == 9
    assert PROTOCOL.publish(plan, [5]) == 5


# The error


@pytest.mark.parametrize(("n", "laps"), [(1, 1), (1, 4), (2, 3), (5, 1), (5, 3), (30, 7)])
def test_the_error_of_algorithm_1_is_that_of_its_draws(n: int, laps: int) -> None:
    """guide/accounting.md, section 2: sqrt(ceil(Kn/(n-1)) + 1) sigma with the closing draw."""
    draws = math.ceil(laps * n / (n - 1)) if n > 1 else laps
    for closing in (True, False):
        plan = plan_of(sum_spec(n=n, laps=laps, sigma=2.0, closing=closing))
        assert noise_deviation(plan) == pytest.approx(2.0 * math.sqrt(draws + closing), rel=1e-12)


@pytest.mark.parametrize(("n", "laps"), [(2, 3), (5, 1), (30, 7)])
def test_the_error_with_remark_1_is_one_draw_a_lap_and_two_more(n: int, laps: int) -> None:
    plan = plan_of(sum_spec(n=n, laps=laps, sigma=2.0, share=True))
    assert noise_deviation(plan) == pytest.approx(2.0 * math.sqrt(2 + (laps * n - 1) / (n - 1)), rel=1e-12)


def test_the_error_of_a_random_walk_grows_with_each_hop_of_each_token() -> None:
    plan = plan_of(sum_spec(n=4, hops=9, tokens=2, sigma=2.0))
    assert noise_deviation(plan) == pytest.approx(2.0 * math.sqrt(18), rel=1e-12)


class Sampled:
    """Real draws of one seed, many at a time."""

    def __init__(self, sampler: SeededSampler) -> None:
        self._sampler = sampler
        self._pools: dict[tuple[Mechanism, Shape], list[Any]] = {}

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        pool = self._pools.setdefault((mechanism, shape), [])
        if not pool:
            pool += self._sampler.batch(mechanism, shape, 256)
        return pool.pop()

    def choice(self, options: int) -> int:
        return self._sampler.choice(options)


@pytest.mark.parametrize(
    "spec",
    [
        sum_spec(n=4, laps=2),
        sum_spec(n=4, laps=2, share=True),
        sum_spec(n=4, laps=1, tokens=2, closing=False),
        sum_spec(n=3, laps=3, mechanism="laplace", sigma=0.5),
        sum_spec(n=4, hops=6, tokens=2),
        sum_spec(n=4, hops=6, kind="star"),
    ],
    ids=range(6),
)
def test_the_error_of_whole_walks_is_what_noise_deviation_says(spec: Spec) -> None:
    """2000 walks: the standard deviation is known to 1.6 % (Laplace: at most 3 %), the mean to 2.2 % of it.

    Five and a half of these are allowed: a right protocol fails with a probability below 1e-6, and the seed is fixed.
    """
    plan, n, trials = plan_of(spec), spec.run.nodes, 2000
    graph = make_graph(spec.graph, n, 0, None)
    draws = Sampled(SeededSampler(1, "errors"))
    unit, errors = math.ldexp(1.0, plan.grid_exponent), []
    for _ in range(trials):
        world = make_world(
            PROTOCOL,
            plan,
            lambda user: NumberInputs([user], 1),
            lambda _: draws,
            lambda user: graph.neighbours[user],
        ).walk()
        published = PROTOCOL.publish(plan, [world.totals[item] for item in range(plan.tokens)])
        errors.append((published - sum(visit.user for visit in world.visits)) * unit)
    deviation = noise_deviation(plan)
    kurtosis = 6.0 if plan.noise.name == "laplace" else 3.0
    assert abs(np.mean(errors)) < 5.5 * deviation / math.sqrt(trials)
    assert abs(np.std(errors) / deviation - 1) < 5.5 * math.sqrt((kurtosis - 1) / (4 * trials))


CATEGORIES = 3


def plan_of_histogram(spec: Spec) -> WalkPlan:
    return HISTOGRAM.plan(spec, spec.run.nodes, 1)


def inputs(user: int) -> CategoryInputs:
    """Category 0 is rarer than 1, and 2 is absent among the first users."""
    return CategoryInputs([int(user > 0), user % 2], CATEGORIES)


def walked(spec: Spec, draws: Any = SeededDraws) -> World:
    return make_world(HISTOGRAM, plan_of_histogram(spec), inputs, draws).walk()


def truth(world: World) -> list[int]:
    """The counts of what users had to say at their visits."""
    visits = Counter(visit.user for visit in world.visits)
    said = [inputs(user).contribution(visit) for user, count in visits.items() for visit in range(count)]
    counts: list[int] = np.sum(said, axis=0).tolist()
    return counts


# Algorithm 2, as corrected in guide/accounting.md, section 2


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_gamma_is_the_probability_of_a_uniform_answer(epsilon: float) -> None:
    """That is gamma = L / (e^epsilon + L - 1), printed the other way round."""
    plan = plan_of_histogram(histogram_spec(epsilon=epsilon))
    assert plan.noise.name == "randomized_response"
    assert plan.noise.scale == pytest.approx(CATEGORIES / (math.exp(epsilon) + CATEGORIES - 1))
    assert plan.noise.categories == CATEGORIES


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("tokens", [1, 2])
def test_a_ring_takes_gamma_n_uniform_elements_at_either_end_of_each_token(n: int, tokens: int) -> None:
    """[CB20, Algorithm 2]."""
    if tokens > n:
        return
    world = walked(histogram_spec(n=n, laps=2, tokens=tokens))
    plan: WalkPlan = world.plan
    dummies = math.ceil(plan.noise.scale * n)
    put_in = [(peer, draw) for peer in world.draws for draw in world.draws[peer].drawn if draw[0] != plan.noise]
    assert [mechanism for _, (mechanism, _) in put_in] == [Mechanism("uniform_counts", float(dummies), CATEGORIES)] * (
        2 * tokens
    )
    first = {item * n // tokens for item in range(tokens)}
    last = {(user - 1) % n for user in first}
    assert {peer for peer, _ in put_in} == first | last
    reports = 2 * n * tokens
    published = HISTOGRAM.publish(plan, [world.totals[item] for item in range(tokens)])
    assert published.sum() == reports + 2 * tokens * dummies


def test_the_uniform_elements_of_the_start_are_in_before_the_token_leaves_its_first_holder() -> None:
    world = walked(histogram_spec(n=5, laps=1))
    second, last = (next(visit for visit in world.visits if visit.step == step) for step in (2, 5))
    assert second.before.sum() == 1 + world.plan.dummies
    assert last.before.sum() == 4 + world.plan.dummies
    assert world.totals[0].sum() == 5 + 2 * world.plan.dummies


@pytest.mark.parametrize("spec", [histogram_spec(n=5, hops=20), histogram_spec(n=5, laps=2, epsilon=0.0)])
def test_a_random_walk_and_a_walk_without_randomization_take_none(spec: Spec) -> None:
    world = walked(spec)
    assert world.plan.dummies == 0
    assert all(mechanism.name != "uniform_counts" for mechanism, _ in world.drawn)


def test_every_contribution_is_randomized_by_a_draw_of_its_own() -> None:
    world = walked(histogram_spec(n=5, hops=20))
    assert [mechanism for mechanism, _ in world.drawn] == [world.plan.noise] * 20
    responses = Counter(value for _, value in world.drawn)
    assert world.totals[0].sum() == 20
    assert all(world.totals[0][category] >= responses[category] for category in range(CATEGORIES))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("laps", [1, 3])
def test_without_randomization_the_counts_are_exact(n: int, laps: int) -> None:
    for spec in (histogram_spec(n=n, laps=laps, epsilon=0.0), histogram_spec(n=n, hops=n * laps, epsilon=0.0)):
        world = walked(spec)
        published = HISTOGRAM.publish(world.plan, list(world.totals.values()))
        estimate = HISTOGRAM.estimate(world.plan, published, n * laps)
        assert estimate.value == truth(world)
        assert estimate.standard_error == [0.0] * CATEGORIES


@pytest.mark.parametrize("tokens", [1, 2])
def test_the_estimator_is_applied_once_at_the_end(tokens: int) -> None:
    """[CB20, Algorithm 2], corrected.

    h_i = (tau_i - (gamma K n + m_0 + m_1) / L) / (1 - gamma); the paper's listing applies it at every lap.
    """
    world = walked(histogram_spec(n=5, laps=2, tokens=tokens))
    plan: WalkPlan = world.plan
    published = HISTOGRAM.publish(plan, [world.totals[item] for item in range(tokens)])
    reports, gamma = 10 * tokens, plan.noise.scale
    estimate = HISTOGRAM.estimate(plan, published, reports)
    uniform = (gamma * reports + 2 * tokens * plan.dummies) / CATEGORIES
    assert estimate.value == pytest.approx([(count - uniform) / (1 - gamma) for count in published])
    assert isinstance(estimate.value, list)
    assert sum(estimate.value) == pytest.approx(reports)


def test_inputs_come_back_from_the_private_ledger() -> None:
    class Rows:
        rows = np.array([2, 0])

    plan = plan_of_histogram(histogram_spec())
    made, values = HISTOGRAM.inputs(plan, Rows())
    assert values == [2, 0]
    assert all(type(value) is int for value in values)
    again = HISTOGRAM.inputs_again(plan, values)
    assert [again.contribution(visit).tolist() for visit in range(3)] == [
        made.contribution(visit).tolist() for visit in range(3)
    ]


class CountingDraws:
    """Real draws of one seed, many at a time."""

    def __init__(self, sampler: SeededSampler) -> None:
        self._sampler = sampler
        self._pools: dict[Any, list[Any]] = {}

    def noise(self, mechanism: Mechanism, shape: tuple[int, ...]) -> Any:
        pool = self._pools.setdefault((mechanism, shape), [])
        if not pool:
            pool += self._sampler.batch(mechanism, shape, 256)
        return pool.pop()

    def choice(self, options: int) -> int:
        return self._sampler.choice(options)


@pytest.mark.parametrize(
    "spec",
    [
        histogram_spec(n=5, laps=2, epsilon=1.5),
        histogram_spec(n=5, laps=1, epsilon=1.5, tokens=2),
        histogram_spec(n=5, hops=12, epsilon=1.5),
    ],
    ids=["ring", "two tokens", "complete"],
)
def test_estimates_are_unbiased_and_their_standard_errors_right(spec: Spec) -> None:
    """2500 walks, five and a half standard deviations allowed: below 1e-6 for a right protocol, with a fixed seed."""
    trials, plan = 2500, plan_of_histogram(spec)
    draws = CountingDraws(SeededSampler(5, "histograms"))
    errors, variances, claimed = [], [], []
    reports, dummies = plan.tokens * plan.steps, 2 * plan.tokens * plan.dummies
    for _ in range(trials):
        world = walked(spec, lambda _: draws)
        estimate = HISTOGRAM.estimate(plan, HISTOGRAM.publish(plan, list(world.totals.values())), reports)
        held = truth(world)
        errors.append(np.subtract(estimate.value or 0, held))
        variances.append(randomized_response.standard_error(held, reports, plan.noise.scale, dummies) ** 2)
        claimed.append(np.square(estimate.standard_error or 0))
    known = np.mean(variances, axis=0)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 5.5 * np.sqrt(known / trials))
    assert np.all(np.abs(np.var(errors, axis=0) / known - 1) < 5.5 * math.sqrt(2 / trials))
    # An estimate below 0 or above the number of reports is cut to these for its error, so that is not quite unbiased.
    assert np.all(np.abs(np.mean(claimed, axis=0) / known - 1) < 0.1)
