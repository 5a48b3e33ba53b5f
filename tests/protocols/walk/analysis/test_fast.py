from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import estimate_of, truth_of
from p2pdp.core.arrays import Floats
from p2pdp.core.messages import TOKEN, TOTAL
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger.records import SENT, public_message, read
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.walk.analysis.fast import fast_outcome
from p2pdp.sim.world import World
from tests.support.outcomes import outcome
from tests.support.small import ALL, BARE, COMPLETE, HISTOGRAM, RING, SPARSE


def prepared(text: str, *overrides: str) -> tuple[RunPlan, Any]:
    spec = parse_spec(text, None, overrides)
    data = load_data(spec, spec.run.nodes)
    return plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded"), data.user


def numbers(run: RunPlan, rows: Any, found: Any) -> list[float]:
    """Estimate, truth, messages and visits as one row."""
    visits = [float(sum(times.values())) for _, times in sorted(found.counted.items())]
    estimate, truth = np.atleast_1d(estimate_of(run, found).value), np.atleast_1d(truth_of(run, found, rows))
    return [*estimate.tolist(), *truth.tolist(), *visits]


def in_the_world(run: RunPlan, rows: Any, seed: int) -> tuple[list[float], int]:
    world = World(run, rows, "", spec_digest(run.spec), seed)
    world.run_to_end()
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    carried = sum(
        record.kind == SENT and public_message(record).type in (TOKEN, TOTAL)
        for peer, view in views.items()
        if peer >= 0
        for record in read(view).records
    )
    return numbers(run, rows, outcome(run, views, [])), carried


@pytest.mark.parametrize("name", ALL)
def test_the_distribution_is_that_of_the_world(name: str) -> None:
    """Same data and graph, other randomness: means and spreads agree within 5 standard deviations."""
    run, rows = prepared(ALL[name])
    slow, carried = zip(*(in_the_world(run, rows, seed) for seed in range(100)), strict=True)
    outcomes = [fast_outcome(run, rows, seed) for seed in range(2000)]
    quick = np.array([numbers(run, rows, found) for found in outcomes])
    assert_alike(np.array(slow), quick)
    sent = np.array([[float(found.messages)] for found in outcomes])
    assert_alike(np.array(carried, dtype=float)[:, None], sent)


def assert_alike(some: Floats, many: Floats) -> None:
    spread = many.std(axis=0)
    error = spread * math.sqrt(1 / len(some) + 1 / len(many)) + 1e-6
    assert np.all(np.abs(some.mean(axis=0) - many.mean(axis=0)) < 5 * error)
    # The variance of a sample variance is at most (kurtosis - 1) s^4 / count.
    centred = many - many.mean(axis=0)
    fourth = (centred**4).mean(axis=0)
    slack = 5 * np.sqrt(np.maximum(fourth - spread**4, 0.0) / len(some)) + 1e-6
    assert np.all(np.abs(some.var(axis=0) - spread**2) < slack + 0.1 * spread**2)


def test_one_seed_is_one_outcome() -> None:
    for text in ALL.values():
        run, rows = prepared(text)
        first, again, other = (numbers(run, rows, fast_outcome(run, rows, seed)) for seed in (1, 1, 2))
        assert first == again
        assert first != other or text == BARE


def test_without_noise_the_estimate_is_the_truth() -> None:
    run, rows = prepared(BARE)
    found = fast_outcome(run, rows, 1)
    assert estimate_of(run, found).value == pytest.approx(truth_of(run, found, rows), abs=1e-6)
    text = HISTOGRAM.replace('"randomized_response"\nepsilon = 1.0', '"none"')
    run, rows = prepared(text)
    found = fast_outcome(run, rows, 1)
    assert estimate_of(run, found).value == truth_of(run, found, rows)


@pytest.mark.parametrize("text", [RING, COMPLETE, SPARSE])
def test_every_step_has_its_visit(text: str) -> None:
    run, rows = prepared(text)
    for seed in range(20):
        found = fast_outcome(run, rows, seed)
        assert found.contributions == run.plan.steps * run.plan.tokens
        assert found.messages <= (run.plan.steps + 1) * run.plan.tokens
    if text == RING:
        assert found.messages == run.plan.steps * run.plan.tokens


def test_values_are_used_cyclically() -> None:
    run, _ = prepared(RING)

    class Three:
        rows = np.array([0.25, 0.5, 1.0])

    three = Three()
    found = fast_outcome(run, lambda _user: three, 1)
    assert found.counted == {user: {0: 1, 1: 1} for user in range(4)}
    assert truth_of(run, found, lambda _user: three) == 4 * 0.75


@pytest.mark.parametrize("kind", ["path", "complete"])
def test_a_user_alone_keeps_the_token(kind: str) -> None:
    for tokens in (1, 2):
        run, rows = prepared(COMPLETE, "run.nodes=1", f'graph.kind="{kind}"', f"walk.tokens={tokens}")
        found = fast_outcome(run, rows, 1)
        assert (found.contributions, found.messages) == (20 * tokens, tokens)
