from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from p2pdp.core.draws import Mechanism
from p2pdp.core.spec import Spec
from p2pdp.mechanisms import randomized_response
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.walk.histogram import PROTOCOL
from p2pdp.protocols.walk.walking import WalkPlan
from p2pdp.tasks.inputs import CategoryInputs
from tests.support.walk_world import SeededDraws, World, histogram_spec, make_world

CATEGORIES = 3


def plan_of(spec: Spec) -> WalkPlan:
    return PROTOCOL.plan(spec, spec.run.nodes, 1)


def inputs(user: int) -> CategoryInputs:
    """Category 0 is rarer than 1, and 2 is absent among the first users."""
    return CategoryInputs([int(user > 0), user % 2], CATEGORIES)


def walked(spec: Spec, draws: Any = SeededDraws) -> World:
    return make_world(PROTOCOL, plan_of(spec), inputs, draws).walk()


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
    plan = plan_of(histogram_spec(epsilon=epsilon))
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
    published = PROTOCOL.publish(plan, [world.totals[item] for item in range(tokens)])
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
        published = PROTOCOL.publish(world.plan, list(world.totals.values()))
        estimate = PROTOCOL.estimate(world.plan, published, n * laps)
        assert estimate.value == truth(world)
        assert estimate.standard_error == [0.0] * CATEGORIES


@pytest.mark.parametrize("tokens", [1, 2])
def test_the_estimator_is_applied_once_at_the_end(tokens: int) -> None:
    """[CB20, Algorithm 2], corrected.

    h_i = (tau_i - (gamma K n + m_0 + m_1) / L) / (1 - gamma); the paper's listing applies it at every lap.
    """
    world = walked(histogram_spec(n=5, laps=2, tokens=tokens))
    plan: WalkPlan = world.plan
    published = PROTOCOL.publish(plan, [world.totals[item] for item in range(tokens)])
    reports, gamma = 10 * tokens, plan.noise.scale
    estimate = PROTOCOL.estimate(plan, published, reports)
    uniform = (gamma * reports + 2 * tokens * plan.dummies) / CATEGORIES
    assert estimate.value == pytest.approx([(count - uniform) / (1 - gamma) for count in published])
    assert isinstance(estimate.value, list)
    assert sum(estimate.value) == pytest.approx(reports)


def test_inputs_come_back_from_the_private_ledger() -> None:
    class Rows:
        rows = np.array([2, 0])

    plan = plan_of(histogram_spec())
    made, values = PROTOCOL.inputs(plan, Rows())
    assert values == [2, 0]
    assert all(type(value) is int for value in values)
    again = PROTOCOL.inputs_again(plan, values)
    assert [again.contribution(visit).tolist() for visit in range(3)] == [
        made.contribution(visit).tolist() for visit in range(3)
    ]


class Sampled:
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
    trials, plan = 2500, plan_of(spec)
    draws = Sampled(SeededSampler(5, "histograms"))
    errors, variances, claimed = [], [], []
    reports, dummies = plan.tokens * plan.steps, 2 * plan.tokens * plan.dummies
    for _ in range(trials):
        world = walked(spec, lambda _: draws)
        estimate = PROTOCOL.estimate(plan, PROTOCOL.publish(plan, list(world.totals.values())), reports)
        held = truth(world)
        errors.append(np.subtract(estimate.value or 0, held))
        variances.append(randomized_response.standard_error(held, reports, plan.noise.scale, dummies) ** 2)
        claimed.append(np.square(estimate.standard_error or 0))
    known = np.mean(variances, axis=0)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 5.5 * np.sqrt(known / trials))
    assert np.all(np.abs(np.var(errors, axis=0) / known - 1) < 5.5 * math.sqrt(2 / trials))
    # An estimate below 0 or above the number of reports is cut to these for its error, so that is not quite unbiased.
    assert np.all(np.abs(np.mean(claimed, axis=0) / known - 1) < 0.1)
