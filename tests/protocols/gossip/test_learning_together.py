"""All users at once against the machines, on the draws and meetings of the machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.protocols.gossip.learning_together import learn, weight_of
from p2pdp.tasks.descending import Population
from p2pdp.topology.weights import sparse_weights
from tests.support.gossip_sgd_world import N, World, rows_of, run_of, run_without, world_of
from tests.support.gossip_world import coins_of, met_in, room


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
