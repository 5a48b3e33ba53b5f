"""What is read of a descent from ledgers, against the machines' own models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import Outcome, error_of, estimate_of, truth_of
from p2pdp.core.values import ZERO_FORM, LinearForm, Source
from p2pdp.files.data import load_data
from p2pdp.protocols.walk.analysis import outcome_descent as descents
from p2pdp.replay.rows import Layout
from p2pdp.sim.faults import Crash
from tests.support.learners import learning, prepared
from tests.support.outcomes import outcome
from tests.support.runs import Run, quiet, run_of

BATCHES = 'kind = "logistic_regression"\nclip = 0.5\nrate = 0.4\nbatch = 3'


def found_of(run: Run) -> Outcome:
    return outcome(run.world.run, run.evidence.views, run.world.out)


def rows_of(text: str) -> Any:
    return load_data(prepared(text)[0].spec, prepared(text)[0].n).user


@pytest.mark.parametrize("text", [learning(4, 25), learning(3, 12, tokens=3, task=BATCHES)])
def test_every_step_is_on_a_path_with_its_users_visits_in_order(text: str) -> None:
    run = quiet(text)
    found, plan = found_of(run), run.plan.plan
    assert found.paths is not None
    assert [len(path) for path in found.paths] == [plan.steps] * plan.tokens
    visits = sorted(pair for path in found.paths for pair in path)
    assert len(set(visits)) == len(visits)
    for user in range(plan.n):
        numbers = [number for who, number in visits if who == user]
        assert numbers == list(range(len(numbers)))
        assert found.counted.get(user, {0: 0}) == {0: len(numbers)}
    assert found.contributions == plan.length


def test_without_noise_the_truth_is_the_estimate() -> None:
    text = learning(4, 30, sigma=None, tokens=2, task=BATCHES)
    run = quiet(text)
    found = found_of(run)
    estimate, truth = estimate_of(run.world.run, found).value, truth_of(run.world.run, found, rows_of(text))
    assert estimate == pytest.approx(truth, abs=1e-12)
    assert error_of(run.world.run, found, estimate, truth) == pytest.approx([0.0] * 3, abs=1e-12)


def test_the_truth_is_the_path_without_noise() -> None:
    text = learning(4, 30)
    run = quiet(text)
    truth = truth_of(run.world.run, found_of(run), rows_of(text))
    estimate = estimate_of(run.world.run, found_of(run)).value
    assert isinstance(truth, list)
    assert isinstance(estimate, list)
    assert 0.0 < np.linalg.norm(np.subtract(estimate, truth)) < 10.0


def test_who_was_gone_round_is_found_by_replay() -> None:
    text = learning(5, 60, sigma=None)
    run = run_of(text, Crash(2, at_record=30, down_s=None))
    found = found_of(run)
    assert run.world.out == [2]
    assert found.paths is not None
    assert len(found.paths[0]) == 60
    truth = truth_of(run.world.run, found, rows_of(text))
    assert estimate_of(run.world.run, found).value == pytest.approx(truth, abs=1e-12)


def test_what_is_no_trace_has_no_path() -> None:
    layout = Layout()
    one = ZERO_FORM + LinearForm.of(Source("gradient", 2, 0))
    assert descents.trace_of(layout, one) == [(2, 0)]
    mixed = one * 0.5 + LinearForm.of(Source("gradient", 1, 0)) * 0.5
    longer = mixed + (one + LinearForm.of(Source("gradient", 3, 0)))
    assert descents.trace_of(layout, longer) is None


def test_nothing_known_of_the_paths_is_no_truth() -> None:
    run, data = prepared(learning(4, 25))
    assert descents.truth_of(run, Outcome(published=np.zeros(3)), data.user) is None
    assert descents.truth_of(run, Outcome(published=np.zeros(3), truth=[1.0, 2.0, 3.0]), data.user) == [1.0, 2.0, 3.0]
