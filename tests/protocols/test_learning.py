from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.core.draws import Mechanism
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.spec import DataPart
from p2pdp.files.spec import parse_spec
from p2pdp.protocols import learning as rules
from p2pdp.protocols.run_plan import plan_of_facts
from p2pdp.tasks.examples import examples_of
from p2pdp.tasks.objectives import WHOLE, Guarantees, Objective
from p2pdp.tasks.regression import LogisticRegression
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import LOGISTIC, RANGES, learning, prepared

UNIT = f"{RANGES}\nunit_norm = true"


def plan(text: str, *overrides: str) -> Any:
    return prepared(text, *overrides)[0].plan


@pytest.mark.parametrize(
    ("data", "bound"),
    [
        (RANGES, math.sqrt(3)),  # two features within [-1, 1], and the intercept
        (UNIT, math.sqrt(2)),
        (f"{RANGES}\nclip = [-0.5, 0.25]", math.sqrt(1.5)),
        ("clip = [-3.0, 2.0]", math.sqrt(19)),
    ],
)
def test_the_gradients_bound_follows_from_what_is_public(data: str, bound: float) -> None:
    found = plan(learning(data=data)).descent.guarantees
    assert found.lipschitz == pytest.approx(bound, rel=1e-12)
    assert found.lipschitz >= bound
    assert found.smoothness == pytest.approx(bound**2 / 4)


def test_without_bounds_nothing_is_promised_and_no_rate_is_chosen() -> None:
    assert plan(learning(data="")).descent.guarantees.smoothness is None
    with pytest.raises(UsageError, match="rate: missing"):
        plan(learning(data="", task=LOGISTIC.replace("rate = 0.2", "")))
    assert plan(learning(task=LOGISTIC.replace("rate = 0.2", ""))).rate == pytest.approx(4 / 3)


def test_without_an_intercept_the_model_has_a_number_less() -> None:
    assert plan(learning()).descent.dimension == 3
    assert plan(learning(), "task.intercept=false").descent.dimension == 2


def test_noise_is_in_steps_of_the_grid_and_sums_are_exact() -> None:
    found = plan(learning(sigma=0.8))
    assert found.noise.scale * found.descent.step == pytest.approx(0.8, rel=1e-15)
    assert found.noise.scale >= 2**20
    assert (1.0 + 64 * 0.8) / found.descent.step < 2**53
    by_epsilon = plan(learning().replace("sigma = 0.8", "epsilon = 1.0\ndelta = 1e-5"))
    assert by_epsilon.noise.scale * by_epsilon.descent.step == pytest.approx(2 * 3.7306316348159, rel=1e-9)
    assert plan(learning(sigma=None)).noise.name == "none"


def test_rates_that_surely_diverge_are_refused_and_others_warned_of() -> None:
    with pytest.raises(UsageError, match="rate: diverges"):
        plan(learning(), "task.regularization=10.0")
    with pytest.raises(UsageError, match="beyond"):
        plan(learning(), "task.rate=1e11")
    assert rules.warnings_of(plan(learning()).descent, 0.2) == []
    assert "2/smoothness = 2.66667" in rules.warnings_of(plan(learning()).descent, 5.0)[0]
    assert rules.warnings_of(plan(learning(data="")).descent, 5.0) == []


def test_rates_follow_the_schedule() -> None:
    assert [rules.rate_at(0.6, "constant", step) for step in (1, 4)] == [0.6, 0.6]
    assert [rules.rate_at(0.6, "inverse_sqrt", step) for step in (1, 4)] == [0.6, 0.3]
    assert [rules.rate_at(0.6, "inverse", step) for step in (1, 3)] == pytest.approx([0.6, 0.2])
    assert plan(learning(hops=3), 'task.schedule="inverse"').rates == pytest.approx([0.2, 0.1, 0.2 / 3])


@pytest.mark.parametrize(
    "value",
    [None, 3, np.zeros(3, dtype=np.int64), np.zeros(2), np.array([0.0, 1.0, np.nan]), np.array([0, 1, 2.0**41])],
)
def test_models_that_cannot_be_are_faults(value: Any) -> None:
    assert rules.check_model((3,), value) == "bad_value"


def test_models_that_can_be_pass() -> None:
    assert rules.check_model((3,), np.array([0.0, 1.0, -(2.0**40)])) is None


def test_the_private_ledger_keeps_what_inputs_are_made_of() -> None:
    run, data = prepared(learning())
    inputs, kept = run.protocol.inputs(run.plan, data.user(1))
    assert len(kept) == len(data.user(1)) == 12
    model = np.array([0.5, -1.0, 0.25])
    again = run.protocol.inputs_again(run.plan, kept)
    assert np.array_equal(inputs.gradient(model, 0), again.gradient(model, 0))  # type: ignore[attr-defined]


def test_the_bound_of_what_noise_does_is_met_by_descents() -> None:
    """Root mean square over 300 descents, against the bound that strong convexity makes small."""
    run, _ = prepared(learning(sigma=0.8), "task.regularization=0.5")
    steps, generator = run.plan.descent, np.random.default_rng(3)
    bound = rules.noise_bound(steps, run.plan.noise, [0.2] * 50)
    assert bound is not None
    noised, clean = np.zeros((300, 3)), np.zeros((300, 3))
    part = examples_of([[0.5, -0.5, 1.0]], [1.0], None)
    for _ in range(50):
        pairs = [(noised, 0.8 * generator.normal(size=(300, 3))), (clean, np.zeros((300, 3)))]
        noised, clean = (
            np.array([steps.moved(m, steps.contribution(m, part) + z, 0.2) for m, z in zip(models, noise, strict=True)])
            for models, noise in pairs
        )
    spread = math.sqrt(float(((noised - clean) ** 2).mean()))
    assert 0.5 * bound < spread <= bound * 1.05
    assert rules.noise_bound(steps, Mechanism("none", 0.0), [0.2]) == 0.0
    assert rules.noise_bound(steps, run.plan.noise, [9.0]) is None


class Mine(Objective):
    name = "mine"

    def guarantees(self, norm_max: float | None) -> Guarantees:
        return Guarantees(convex=True, lipschitz=norm_max, smoothness=0.25, clipping=WHOLE)


def test_what_an_own_objective_promises_is_signed_and_enough_for_an_auditor() -> None:
    text = learning(task='kind = "own"\nclip = 3.0\nrate = 0.1')
    run, data = prepared(text, own=Mine())
    assert data.dimensions == 2
    facts = rules.facts_of(run.spec)
    assert facts["objective"] == "mine"
    bare = replace(run.spec, task=replace(run.spec.task, own=None))
    assert rules.guarantees_of(bare, 2, facts) == run.plan.descent.guarantees
    with pytest.raises(UsageError, match="needs the objective itself"):
        prepared(text)


def test_a_roster_without_these_facts_is_no_evidence() -> None:
    run, _ = prepared(learning(task='kind = "own"\nclip = 3.0\nrate = 0.1'), own=Mine())
    spec = replace(run.spec, task=replace(run.spec.task, own=None))
    with pytest.raises(VerificationFailed, match="facts"):
        rules.guarantees_of(spec, 2, {"convex": 1})
    assert type(rules.objective_of(spec)) is Objective
    assert isinstance(rules.objective_of(prepared(learning())[0].spec), LogisticRegression)


class Projecting(Mine):
    def project(self, model: Any) -> Any:
        return np.maximum(model, 0.0)


def test_a_projection_of_ones_own_is_convex_only_if_that_is_promised() -> None:
    text = learning(task='kind = "own"\nclip = 3.0\nrate = 0.1')
    assert prepared(text, own=Mine())[0].plan.descent.guarantees.convex_projection
    assert not prepared(text, own=Projecting())[0].plan.descent.guarantees.convex_projection


@pytest.mark.parametrize(
    ("terms", "apart"),
    [
        ({"clip": (0.0, 1.0)}, math.sqrt(3)),
        ({"clip": (-1.0, 1.0)}, 2.0 * math.sqrt(3)),
        ({"clip": (5.0, 6.0)}, math.sqrt(3)),
        ({"unit_norm": True}, 2.0),
        ({"unit_norm": True, "clip": (0.0, 9.0)}, math.sqrt(2)),
        ({"unit_norm": True, "clip": (-1.0, 9.0)}, 2.0),
        ({"standardize": {"low": [0.0] * 3, "high": [1.0] * 3}}, 2.0 * math.sqrt(3)),
        ({"standardize": {"low": [0.0] * 3, "high": [1.0] * 3}, "clip": (-0.5, 9.0)}, 2.0 * math.sqrt(3)),
        ({}, None),
    ],
)
def test_how_far_apart_two_rows_are_follows_from_what_is_public(terms: dict[str, Any], apart: float | None) -> None:
    found = rules.apart_bound(DataPart("csv", **terms), 3)
    assert found is None if apart is None else found == pytest.approx(apart, rel=1e-12)
    rng = np.random.default_rng(1)
    low, high = terms.get("clip", (-1.0, 1.0))
    rows = rng.choice([max(low, -1.0) if "standardize" in terms else low, min(high, 1.0) if "standardize" in terms
                       else high], (200, 3))  # fmt: skip
    if "unit_norm" in terms:
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    if found is not None:
        assert np.linalg.norm(rows[:, None] - rows[None], axis=2).max() <= found * (1 + 1e-12)


class Elsewhere(Mine):
    """Half the squared distance to each row, by a model that starts somewhere."""

    def __init__(self, start: Sequence[float]) -> None:
        self.begin = start

    def start(self, dimension: int) -> Any:
        return np.array(self.begin)

    def gradient(self, model: Any, examples: Any) -> Any:
        return model - examples.features.mean(axis=0)

    def loss(self, model: Any, examples: Any) -> float:
        return float(((model - examples.features) ** 2).mean())


GRADIENTS = 'kind = "own"\nclip = 3.0\nrate = 0.1\nrounds = 3'
STARTS = learning(3, 9, task='kind = "own"\nclip = 3.0\nrate = 0.1')


def test_a_start_is_signed_and_models_have_room_for_it() -> None:
    run, _ = prepared(STARTS, own=Elsewhere([300.0, -5.0]))
    facts = rules.model_facts(run.spec, 2)
    assert facts["start_max"] == 300.0
    assert dict(run.graph_facts) == {**run.graph_facts, **facts}
    assert run.plan.descent.start().tolist() == [300.0, -5.0]
    again = plan_of_facts(replace(run.spec, task=replace(run.spec.task, own=None)), run.facts).plan
    near = prepared(STARTS, own=Elsewhere([0.0, 0.0]))[0]
    assert (again.fine_exponent, again.model_max) == (run.plan.fine_exponent, run.plan.model_max)
    assert again.fine_exponent > near.plan.fine_exponent, "what an auditor plans has room for it too"
    assert rules.model_facts(near.spec, 2) == {}
    with pytest.raises(VerificationFailed, match="start"):
        again.descent.start()


@pytest.mark.parametrize("start", [[math.nan, 0.0], [2.0**21, 0.0], [1.0]])
def test_a_start_that_cannot_be_is_refused(start: list[float]) -> None:
    with pytest.raises(UsageError, match="start"):
        prepared(STARTS, own=Elsewhere(start))


@pytest.mark.parametrize("protocol", ["walk", "gossip"])
@pytest.mark.parametrize("fast", [False, True])
def test_learning_goes_on_from_where_it_starts(protocol: str, fast: bool) -> None:
    """Descent on a quadratic from s is descent from zeros on what is shifted by s, in machines and all at once."""
    start = np.array([0.5, -0.25])

    class Shifted(Elsewhere):
        def gradient(self, model: Any, examples: Any) -> Any:
            return super().gradient(model + start, examples)

    text = STARTS if protocol == "walk" else gossip_learning(4, "ring", 'rounds = 2\npublish = "all"', task=GRADIENTS)
    spec = parse_spec(text, None)
    there = p2pdp.simulate(spec, task=Elsewhere(start.tolist()), fast=fast)
    shifted = p2pdp.simulate(spec, task=Shifted([0.0, 0.0]), fast=fast)
    assert there.estimate == pytest.approx((np.array(shifted.estimate) + start).tolist(), abs=1e-6)


def test_what_a_spec_names_is_not_loaded_by_who_reads_facts() -> None:
    task = 'kind = "torch"\nmodel = "there_is_no.such:thing"\nclip = 1.0\nrate = 0.2'
    spec = parse_spec(learning(3, 9, task=task), None)
    assert rules.facts_of(spec) == rules.model_facts(spec, 7) == {}
    assert rules.guarantees_of(spec, 7, {}) == Guarantees()
    assert not rules.is_built_in(spec)
    facts = {"start": "sha256:" + "0" * 64, "start_max": 2.0, "convex": 0, "lipschitz": -1.0, "smoothness": -1.0}
    plan = rules.descent_of(spec, 7, {**facts, "clipping": "whole", "convex_projection": 1})
    assert (plan.start_max, plan.projects, plan.starts_at_zero) == (2.0, False, False)
    assert rules.descent_of(spec, 7, {}).start_digest == "", "nothing is signed yet, so nobody can begin"
