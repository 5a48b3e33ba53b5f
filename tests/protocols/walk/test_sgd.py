"""[ABR23, Algorithm 4], one test per statement that is relied on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from p2pdp.core.draws import DITHER
from p2pdp.core.errors import UsageError
from p2pdp.core.events import Preparer
from p2pdp.core.messages import TOKEN, TOTAL
from p2pdp.core.step import Message
from p2pdp.core.values import GRADIENT, LinearForm
from p2pdp.mechanisms import dither
from p2pdp.protocols.learning import MODEL_MAX
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.sgd import Learner
from p2pdp.tasks.descending import Population, visits_along
from p2pdp.tasks.descent import GradientInputs
from p2pdp.tasks.inputs import SymbolicInputs
from p2pdp.tasks.regression import LogisticRegression
from tests.support.learners import LINEAR, LOGISTIC, learning, prepared
from tests.support.walk_sgd_world import Scaled, world_of
from tests.support.walk_world import SymbolDraws, World

SPECS = {
    "complete": learning(5, 30),
    "tokens": learning(4, 20, tokens=3),
    "grid": learning(6, 25, kind="grid", task=LINEAR, target='target = "effect"\ntarget_range = [-4.0, 4.0]'),
    "ring": learning(4, kind="ring", order='order = "ring"\nlaps = 3', tokens=2),
    "batches": learning(3, 25, task='kind = "logistic_regression"\nclip = 0.3\nrate = 0.5\nbatch = 3'),
    "mean": learning(3, 12, task='kind = "mean"\nclip = 0.5\nrate = 0.3', data="clip = [-60.0, 60.0]", target=""),
    "bare": learning(3, 9, sigma=None),
}


def undithered(run: RunPlan) -> RunPlan:
    return replace(run, plan=replace(run.plan, dither=None))


def path_of(world: World, plan: Any) -> tuple[Any, Any]:
    """Who contributed at which step, and how often before, from the world's own book."""
    path, visits = np.zeros((2, plan.steps, plan.tokens), dtype=np.int64)
    seen: dict[int, int] = {}
    for visit in world.visits:
        path[visit.step - 1, visit.item] = visit.user
        visits[visit.step - 1, visit.item] = seen.get(visit.user, 0)
        seen[visit.user] = seen.get(visit.user, 0) + 1
    return path, visits


@pytest.mark.parametrize("dithered", [False, True])
@pytest.mark.parametrize("name", SPECS)
def test_machines_and_the_vectorized_descent_agree_on_the_same_draws(name: str, dithered: bool) -> None:
    """As the fast simulation promises: to 1e-12 but for dithers, of which each step adds one."""
    run, data = prepared(SPECS[name])
    apart = 1e-12
    if dithered and run.plan.dither is not None:
        apart += 6.0 * run.plan.dither.scale * run.plan.fine * run.plan.steps**0.5
    else:
        run = undithered(run)
    world = world_of(run, data)
    path, visits = path_of(world, run.plan)
    used = dict.fromkeys(range(run.n), 0)
    noise = np.zeros((run.plan.steps, run.plan.tokens, run.plan.shape[0]))
    for visit in world.visits if run.plan.noise.name != "none" else ():
        drawn = world.draws[visit.user].drawn[used[visit.user]][1]
        used[visit.user] += 1
        noise[visit.step - 1, visit.item] = drawn * run.plan.descent.step
    population = Population(run.plan.descent, [data.user(user) for user in range(run.n)])
    models = population.descend(path, visits, run.plan.rates, lambda step: noise[step - 1])
    for item, model in enumerate(models):
        assert world.totals[item] == pytest.approx(model, rel=0.0, abs=apart)
        assert run.plan.dither is None or not np.array_equal(world.totals[item], model)
    published = run.protocol.publish(run.plan, [world.totals[item] for item in sorted(world.totals)])
    assert published == pytest.approx(models.mean(axis=0), rel=0.0, abs=apart)
    if run.plan.tokens == 1:
        assert np.array_equal(visits, visits_along(path))


def test_a_learner_makes_its_next_dither_ready() -> None:
    run, data = prepared(SPECS["complete"])
    learner = run.protocol.machine(run.plan, 0, (), run.protocol.inputs(run.plan, data.user(0))[0])
    assert isinstance(learner, Preparer)
    with patch.object(dither, "unfolded", wraps=dither.unfolded) as unfolded:
        learner.prepare()
        assert unfolded.call_count == 0, "it has no seed before its first step"
        draws = Scaled(0)
        for made in range(1, 300):
            before = unfolded.call_count
            assert learner.receive(1, Message(TOKEN, (0, made), np.zeros(3)), 0.0, draws).sends
            assert unfolded.call_count == (1 if made == 1 else before)
            learner.prepare()
        assert unfolded.call_count == 3, "for 128 steps each"


def test_every_step_is_noised_once() -> None:
    run, data = prepared(SPECS["complete"])
    world = world_of(run, data)
    assert [mechanism for mechanism, _ in world.drawn] == [run.plan.noise] * run.plan.steps


def test_the_token_is_what_line_5_says() -> None:
    """Model minus rate times noised gradient, at every step."""
    run, data = prepared(learning(1, 3), "task.regularization=0.1")
    run = undithered(run)
    world = world_of(run, data)
    inputs = run.protocol.inputs(run.plan, data.user(0))[0]
    model: Any = np.zeros(3)
    for visit, (_, drawn) in enumerate(world.drawn):
        gradient = inputs.gradient(model, visit)  # type: ignore[attr-defined]
        model = model - 0.2 * (gradient + drawn * run.plan.descent.step + 0.1 * model)
    assert world.totals[0] == pytest.approx(model, abs=1e-15)


def test_over_symbols_a_token_is_the_trace_of_its_path() -> None:
    run, data = prepared(SPECS["tokens"])
    world = world_of(run, data, symbols=True)
    path, visits = path_of(world, run.plan)
    for item, total in world.totals.items():
        form: LinearForm = total
        sources = [source for source in form.expand() if source.kind == GRADIENT]
        expected = zip(path[:, item], visits[:, item], strict=True)
        assert sorted((source.peer, source.number) for source in sources) == sorted(expected)


def test_only_models_and_counts_that_can_be_pass() -> None:
    check, good = prepared(SPECS["tokens"])[0].check, np.zeros(3)
    assert check(Message(TOKEN, (2, 20), good)) is None
    assert check(Message(TOTAL, (2, 21), good)) is None
    for message in (
        Message(TOKEN, (3, 20), good),
        Message(TOKEN, (0, 21), good),
        Message(TOTAL, (0, 20), good),
        Message(TOKEN, (0,), good),
        Message("hello"),
    ):
        assert check(message) == "malformed"
    assert check(Message(TOKEN, (0, 1), np.zeros(3, dtype=np.int64))) == "bad_value"


def test_the_estimate_is_the_model_with_an_upper_end_of_its_error() -> None:
    run, _ = prepared(SPECS["complete"])
    told = run.protocol.estimate(run.plan, np.array([1.0, 2.0, 3.0]), 30)
    assert told.value == [1.0, 2.0, 3.0]
    assert told.standard_error == [pytest.approx(0.2 * 0.8 * 30**0.5, rel=1e-6)] * 3
    wild, _ = prepared(SPECS["complete"], "task.rate=9.0")
    assert wild.protocol.estimate(wild.plan, np.zeros(3), 30).standard_error is None


def test_a_ring_carries_a_token_a_user_at_most() -> None:
    with pytest.raises(UsageError, match="tokens"):
        prepared(learning(3, kind="ring", order='order = "ring"\nlaps = 2', tokens=4))


def test_no_text_shows_a_route_or_a_model() -> None:
    run, data = prepared(SPECS["complete"])
    machine = run.machine(2, None, run.protocol.inputs(run.plan, data.user(2))[0])
    assert repr(machine) == "Learner(user=2)"


def test_beyond_the_limit_a_step_is_noise_only() -> None:
    plan = replace(prepared(learning(4, 40))[0].plan, visits_max=3)
    inputs = SymbolicInputs(0, 1)
    learner, model = Learner(plan, 0, (1, 2, 3), inputs), LinearForm((), ())
    draws = SymbolDraws(0, 0)
    for step in range(1, 20):
        (send,) = learner.receive(1, Message(TOKEN, (0, step), model), 0.0, draws).sends
        model = send.message.value
    assert (inputs.made, sorted(inputs.models)) == (3, [0, 1, 2])
    assert [mechanism for mechanism, _ in draws.drawn if mechanism.name != DITHER] == [plan.noise] * 19


class Positive(LogisticRegression):
    """Has a gradient at positive models only, and projects on these."""

    def project(self, model: Any) -> Any:
        return np.maximum(model, 0.125)

    def gradient(self, model: Any, examples: Any) -> Any:
        assert (model >= 0.125).all() or not model.any()
        return np.log(np.maximum(model, 0.125)) - examples.features.mean(axis=0)

    def clipped_gradient(self, model: Any, examples: Any, clip: float) -> Any:
        return self.gradient(model, examples)


class Unready(GradientInputs):
    """Takes the objective at its word: nothing is worked out beforehand."""

    def _ready(self, examples: Any, rows: Any) -> Any:
        part, _, share = super()._ready(examples, rows)
        return part, None, share


def test_an_objective_that_projects_is_asked_at_projected_models_only() -> None:
    run, data = prepared(SPECS["complete"])
    plan = replace(run.plan, descent=replace(run.plan.descent, objective=Positive()))
    run = replace(run, plan=plan)
    made: dict[int, Any] = {
        user: run.machine(user, run.neighbours(user), Unready(plan.descent, data.user(user))) for user in range(run.n)
    }
    world = World(plan, made, {user: Scaled(user) for user in range(run.n)}).walk()
    assert not world.faults
    models = np.array([visit.before for visit in world.visits[1:]] + [world.totals[0]])
    assert (models < 0.125).any(), "dithers carry models out of where they were projected to"
    assert (models >= 0.125 - 6.0 * plan.dither.scale * plan.fine).all()


def test_models_beyond_what_the_grid_is_made_for_are_refused() -> None:
    plan, check = prepared(SPECS["complete"])[0].plan, prepared(SPECS["complete"])[0].protocol.check
    reach = 30 * 0.2 * 1.0 + 12 * 0.8 * 0.2 * 30**0.5
    assert reach < plan.model_max / 2 < 2.01 * reach
    for sign in (-1.0, 1.0):
        model = np.array([0.0, sign * plan.model_max, 0.0])
        assert check(plan, Message(TOKEN, (0, 20), model)) is None
        assert check(plan, Message(TOKEN, (0, 20), model * (1 + 1e-15))) == "bad_value"
    assert check(plan, Message(TOKEN, (0, 20), np.array([0.0, np.nan, 0.0]))) == "bad_value"
    radius = prepared(SPECS["complete"], "task.radius=0.7")[0].plan
    assert 0.7 < radius.model_max / 2 < 2 * 0.7001
    assert prepared(SPECS["bare"])[0].plan.model_max == MODEL_MAX
    assert prepared(learning(5, 30, task=LOGISTIC + '\nschedule = "inverse"'))[0].plan.model_max < plan.model_max
