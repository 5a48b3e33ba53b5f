"""Many lanes at once against one step at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.tasks import descending
from p2pdp.tasks.descending import Population, visits_along
from p2pdp.tasks.descent import Descent, GradientInputs
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import Objective
from p2pdp.tasks.regression import LinearRegression, LogisticRegression, MeanEstimation


class Own(LogisticRegression):
    """An objective that the tables know nothing of."""

    def project(self, model: Any) -> Any:
        return np.clip(model, -0.5, 0.5)


class Plain(Objective):
    def gradient(self, model: Any, examples: Examples) -> Any:
        return LogisticRegression().gradient(model, examples)


def users(count: int, *, equal: bool) -> list[Examples]:
    generator = np.random.default_rng(7)
    sizes = [4] * count if equal else [1 + 2 * user for user in range(count)]
    return [
        examples_of(generator.uniform(-1, 1, (size, 3)), generator.choice([-1.0, 1.0], size), None) for size in sizes
    ]


def one_by_one(descent: Descent, people: list[Examples], path: Any, visits: Any, rates: Any, noise: Any) -> Any:
    inputs = [GradientInputs(descent, examples) for examples in people]
    models = [descent.zero() for _ in path[0]]
    for step, rate in enumerate(rates):
        for lane, model in enumerate(models):
            direction = inputs[path[step, lane]].gradient(model, int(visits[step, lane]))
            models[lane] = descent.moved(model, direction + noise[step, lane], rate)
    return np.array(models)


@pytest.mark.parametrize("objective", [LogisticRegression(), LinearRegression(), MeanEstimation(), Own(), Plain()])
@pytest.mark.parametrize("terms", [{}, {"batch": 2}, {"batch": 3, "regularization": 0.1, "radius": 0.3}])
@pytest.mark.parametrize("equal", [True, False])
def test_lanes_are_what_machines_do(objective: Objective, terms: dict[str, Any], equal: bool) -> None:
    people, generator = users(5, equal=equal), np.random.default_rng(1)
    descent = Descent(objective, objective.guarantees(2.0), 3, 0.4, -30, **terms)
    path = generator.integers(5, size=(40, 6))
    visits = np.stack([visits_along(path[:, lane : lane + 1])[:, 0] for lane in range(6)], axis=1)
    noise = generator.normal(scale=0.5, size=(40, 6, 3))
    rates = [0.3 / np.sqrt(step + 1) for step in range(40)]
    found = Population(descent, people).descend(path, visits, rates, lambda step: noise[step - 1])
    assert found == pytest.approx(one_by_one(descent, people, path, visits, rates, noise), abs=1e-12)


def test_tables_that_would_be_too_large_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    people, descent = (
        users(4, equal=False),
        Descent(LogisticRegression(), LogisticRegression().guarantees(1.0), 3, 1.0, -30),
    )
    path = np.random.default_rng(2).integers(4, size=(20, 2))
    told = [path, path * 0, [0.1] * 20, lambda _step: None]
    found = Population(descent, people).descend(*told)
    monkeypatch.setattr(descending, "_PADDED_MAX", 0)
    assert Population(descent, people).descend(*told) == pytest.approx(found, abs=1e-12)


def test_whoever_watches_sees_every_step() -> None:
    descent = Descent(MeanEstimation(), MeanEstimation().guarantees(1.0), 3, 1.0, -30)
    path, seen = np.zeros((4, 2), dtype=np.int64), []
    population = Population(descent, users(2, equal=True))
    models = population.descend(path, path, [0.1] * 4, lambda _: None, lambda *told: seen.append(told))
    assert [step for step, _, _ in seen] == [1, 2, 3, 4]
    assert not seen[0][1].any()
    assert all(np.array_equal(seen[k][2], seen[k + 1][1]) for k in range(3))
    assert np.array_equal(seen[3][2], models)


def test_visits_count_over_all_tokens_that_go_side_by_side() -> None:
    path = np.array([[0, 1], [0, 0], [1, 0]])
    assert visits_along(path).tolist() == [[0, 0], [1, 2], [1, 3]]
