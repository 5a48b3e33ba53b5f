"""All users at once against the machines, on the draws and meetings of the machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.values import LinearForm
from p2pdp.protocols.gossip.sgd import PROTOCOL, GossipLearner, GossipSgdPlan, learn, rounds_between, weight_of
from p2pdp.protocols.run_plan import plan_of_facts, plan_run
from p2pdp.tasks.descending import Population
from p2pdp.tasks.inputs import SymbolicInputs
from p2pdp.tasks.objectives import Objective
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_sgd_world import D, N, World, rows_of, run_of, run_without, world_of
from tests.support.gossip_world import PATIENCE_S, coins_of, met_in, room, shared


def expected(made: World) -> Any:
    """Algorithm 3 with dense matrices, on the noise that was drawn."""
    plan: GossipSgdPlan = made.plan  # type: ignore[assignment]
    inputs: Any = [PROTOCOL.inputs(plan, rows_of(user))[0] for user in range(N)]
    coins, drawn = coins_of(made.seed, N), [iter(draws.drawn) for draws in made.draws]
    models = np.zeros((N, D))
    kept = []
    for block in range(plan.gradients):
        noise = np.array([[next(drawn[user]) for _ in range(1)] for user in range(N)], dtype=float)
        common = shared(plan, made.graph, made.seed, block)
        steps = np.array([inputs[user].gradient(models[user], block) for user in range(N)]) + noise * plan.step + common
        rate = plan.rate_at(block + 1)
        models = models * (1.0 - rate * plan.descent.regularization) - rate * steps
        before = models
        for place in range(plan.block):
            number = block * plan.block + place + 1
            if plan.coin is None:
                matrix = sparse_weights(made.graph, plan.weights).toarray()
            else:
                matrix = sparse_weights(met_in(coins, number, plan.coin), plan.weights).toarray()
            moved = matrix @ models
            before, models = models, moved if place == 0 else plan.gamma * moved + (1.0 - plan.gamma) * before
        kept.append(models)
    weights = {"last": [0.0] * (plan.gradients - 1) + [1.0], "uniform": [1.0] * plan.gradients}
    return np.average(kept, axis=0, weights=weights.get(plan.averaging, range(1, plan.gradients + 1)))


@pytest.mark.parametrize("averaging", ["last", "uniform", "linear"])
@pytest.mark.parametrize(
    "more",
    [
        (),
        ("graph.changing=false", 'graph.kind="ring"'),
        ("gossip.accelerated=true",),
        ("graph.changing=false", "noise.pair_sigma=3.0"),
    ],
)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8)
def test_it_is_algorithm_3_in_any_order(averaging: str, more: tuple[str, ...], seed: int) -> None:
    """[CEBM22, Algorithm 3] with dense matrices.

    Scalar draws stand for each number of a vector alike: the world draws one number at a time.
    """
    dropped = [] if not more or "accelerated" in more[0] else ["graph.probability"]
    run = run_without(dropped, *more, f'task.averaging="{averaging}"')
    made = world_of(run, seed)
    made.start()
    made.run()
    found = np.array([made.final[user] for user in range(N)])
    np.testing.assert_allclose(found, expected(made), rtol=0, atol=room(run.plan))
    assert [len(draws.drawn) for draws in made.draws] == [run.plan.gradients] * N, "one draw a gradient"


def test_somebody_late_leaves_the_others_learning_and_the_sum_as_it_should_be() -> None:
    """Without regularization all moves are equal and opposite, or steps of somebody's own."""
    run = run_of("task.regularization=0", "graph.probability=0.9")
    made = world_of(run, 5)
    made.start()
    made.asleep.add(N - 1)
    for _ in range(3):
        made.deliver_all()
        made.pass_time(PATIENCE_S)
    made.asleep.clear()
    made.run()
    assert made.skips > 0
    assert made.faults == []
    assert np.all(np.isfinite(np.array(list(made.final.values()))))


def test_over_symbols_a_model_is_linear_in_gradients_and_noise() -> None:
    """With the rate's sign, and regularization's pull on what was learned before."""
    run = run_of('graph.kind="erdos_renyi"')
    learner = GossipLearner(run.plan, 0, (), SymbolicInputs(0, 5))
    learner._round, learner._met = 1, []

    class Symbols:
        drawn = 0

        def noise(self, mechanism: Any, shape: Any) -> LinearForm:
            self.drawn += 1
            return SymbolicInputs(0, 5).report(self.drawn, None)

    draws: Any = Symbols()
    learner._contribute(draws)
    learner._round = 1 + run.plan.block
    learner._contribute(draws)
    weights = {source.kind + str(source.number): weight for source, weight in learner._state.expand().items()}
    shrunk = 1.0 - 0.5 * 0.1
    assert weights["gradient0"] == pytest.approx(-0.5 * shrunk)
    assert weights["gradient1"] == pytest.approx(-0.5)
    assert weights["report1"] == pytest.approx(-0.5 * shrunk * run.plan.step)


def test_rounds_between_gradients_follow_from_public_numbers() -> None:
    """[CEBM22, Theorem 5]: ln(max(n, spread / sigma^2)) over the root of the gap; the clip bounds the spread."""
    descent = run_of().plan.descent
    assert rounds_between(0.25, 100, descent, 1.0, accelerated=True) == int(np.ceil(np.log(100) / 0.5))
    assert rounds_between(0.25, 100, descent, 0.01, accelerated=False) == int(np.ceil(np.log(10_000) / 0.25))
    assert rounds_between(1.0, 1, descent, 1.0, accelerated=True) == 1
    assert run_of('gossip.rounds="auto"', "gossip.lambda=0.25").plan.block == int(np.ceil(np.log(6) / 0.25))
    with pytest.raises(UsageError, match="gap"):
        rounds_between(0.0, 5, descent, 1.0, accelerated=True)


def test_an_auditor_has_the_same_plan_but_for_what_only_the_caller_has() -> None:
    run = run_of()
    assert plan_of_facts(run.spec, run.facts).plan == run.plan
    assert run.plan.rounds == 12


def test_a_projection_is_refused() -> None:
    with pytest.raises(UsageError, match="radius"):
        run_of("task.radius=2.0")

    class Boxed(Objective):
        def project(self, model: Any) -> Any:
            return np.clip(model, -1.0, 1.0)

    spec = run_of().spec
    with pytest.raises(UsageError, match="projection"):
        plan_run(replace(spec, task=replace(spec.task, kind="own", own=Boxed())), N, D)


def matrices_of(made: World) -> list[Any]:
    plan = made.plan
    if plan.coin is None:
        return [sparse_weights(made.graph, plan.weights)] * plan.rounds
    coins = coins_of(made.seed, N)
    return [sparse_weights(met_in(coins, number, plan.coin), plan.weights) for number in range(1, plan.rounds + 1)]


@pytest.mark.parametrize("averaging", ["last", "uniform", "linear"])
@pytest.mark.parametrize("more", [(), ("fixed",), ("gossip.accelerated=true", "task.batch=2")])
@pytest.mark.parametrize("seed", [0, 4])
def test_it_comes_to_what_machines_come_to(averaging: str, more: tuple[str, ...], seed: int) -> None:
    fixed = more == ("fixed",)
    run = run_without(["graph.probability"] if fixed else [], *(() if fixed else more), f'task.averaging="{averaging}"')
    made = world_of(run, seed)
    made.start()
    made.run()
    drawn = np.array([draws.drawn for draws in made.draws], dtype=float) * run.plan.step
    noise = np.repeat(drawn[:, :, None, None], run.plan.shape[0], axis=3)
    seen: list[int] = []
    found = learn(
        run.plan,
        Population(run.plan.descent, [rows_of(user) for user in range(N)]),
        matrices_of(made),
        lambda visit: noise[:, visit],
        watch=lambda number, _sent: seen.append(number),
    )
    machines = np.array([made.final[user] for user in range(N)])
    np.testing.assert_allclose(found[:, 0], machines, rtol=0, atol=room(run.plan))
    assert seen == list(range(1, run.plan.rounds + 1))


def test_columns_know_nothing_of_each_other() -> None:
    run = run_of("graph.probability=0.5")
    made = world_of(run, 2)
    population = Population(run.plan.descent, [rows_of(user) for user in range(N)])
    noise = np.random.default_rng(1).normal(size=(run.plan.gradients, N, 2, 3))
    both = learn(run.plan, population, matrices_of(made), lambda visit: noise[visit], columns=2)
    for column in range(2):
        alone = learn(run.plan, population, matrices_of(made), lambda visit, at=column: noise[visit][:, at : at + 1])
        np.testing.assert_allclose(both[:, column], alone[:, 0], rtol=0, atol=1e-13)


def test_weights_of_a_result() -> None:
    last, uniform, linear = (run_of(f'task.averaging="{name}"').plan for name in ("last", "uniform", "linear"))
    assert [weight_of(last, number) for number in range(5)] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert [weight_of(uniform, number) for number in range(5)] == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert [weight_of(linear, number) for number in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]
