"""What is read of a descent from ledgers, against the machines' own models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import Outcome, error_of, estimate_of, truth_of
from p2pdp.assembly.pools import CENTRAL, LOCAL, Pool
from p2pdp.auditor.a_priori import claims_a_priori
from p2pdp.core.values import ZERO_FORM, LinearForm, Source
from p2pdp.files.data import load_data
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.iteration.sampled import SampledSteps
from p2pdp.protocols.learning import SCORES
from p2pdp.protocols.walk.analysis import outcome_descent as descents
from p2pdp.protocols.walk.analysis.fast import fast_descents
from p2pdp.protocols.walk.analysis.outcome_descent import (
    baselines_of,
    scored,
    sigmas_along,
    sigmas_in_advance,
    sigmas_of,
)
from p2pdp.replay.rows import Layout
from p2pdp.sim.faults import Crash
from tests.support.learners import LOGISTIC, learning, prepared
from tests.support.outcomes import outcome
from tests.support.runs import Run, quiet, run_of
from tests.support.score_worlds import TESTED, everybody

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


DELTA = 1e-5
PATHS = [[(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (2, 1)]]


def test_along_a_path_local_counts_contributions_and_central_is_secret_or_spread() -> None:
    run, _ = prepared(learning(3, 6))
    found = sigmas_along(run, PATHS, 2.0, DELTA)
    unit = 2.0 / gaussian.mu_of_curve(2.0, DELTA)
    assert found[LOCAL] == pytest.approx(math.sqrt(2) * unit, rel=1e-6)
    spread = math.sqrt(1 / 2 + 1 / 1) * unit  # user 2, at steps 4 and 6
    assert found[CENTRAL] is not None
    assert 0.5 * spread < found[CENTRAL] < spread, "drawing in secret is worth more here"


def test_in_advance_each_level_meets_epsilon() -> None:
    run, _ = prepared(learning(30, 300))
    found = sigmas_in_advance(run, 2.0, DELTA)
    assert found[LOCAL] is not None
    assert found[CENTRAL] is not None
    assert found[LOCAL] > 3 * found[CENTRAL]
    noised, _ = prepared(learning(30, 300, sigma=found[LOCAL]))
    told = claims_a_priori(noised, DELTA, (), one_value=False).claims
    claim = next(one for one in told if one.method == "local")
    assert claim.epsilon_max == pytest.approx(2.0, rel=1e-4)
    secret = SampledSteps(2.0 / found[CENTRAL], 30, 300, DELTA).known(0)
    assert 1.99 < secret <= 2.0


def test_where_steps_may_expand_central_is_secret_all_the_same() -> None:
    wild, _ = prepared(learning(3, 6, task=LOGISTIC.replace("0.2", "9.0")))
    found = sigmas_along(wild, PATHS, 2.0, DELTA)[CENTRAL]
    assert found is not None
    assert SampledSteps(2.0 / found, 3, 6, DELTA).known(0) == pytest.approx(2.0, rel=5e-3)
    assert sigmas_in_advance(wild, 2.0, DELTA)[CENTRAL] == pytest.approx(found)


def test_nothing_is_compared_without_a_finite_epsilon_or_noise() -> None:
    run, _ = prepared(learning(3, 6))
    for epsilon in (None, 0.0, math.inf):
        assert sigmas_of(run, PATHS, epsilon, DELTA) == {LOCAL: None, CENTRAL: None}
    bare, _ = prepared(learning(3, 6, sigma=None))
    assert sigmas_of(bare, PATHS, 2.0, DELTA) == {LOCAL: None, CENTRAL: None}


def test_baselines_take_the_same_path_with_other_noise() -> None:
    run, data = prepared(TESTED)
    (found,) = fast_descents(run, data.user, [1])
    sigmas = sigmas_of(run, found.paths, 2.0, 1e-5)
    assert sigmas["local"] > sigmas["central"] > 0.0  # type: ignore[operator]
    own, against, _ = scored(run, found, data.user, found.truth, sigmas, 7)
    assert own["score_name"] == "accuracy"
    assert list(against) == ["local", "central", "none"]
    assert against["none"]["sigma"] == 0.0
    assert against["none"] == against["none"] | Pool(run, everybody(run, data)).scores(np.array(found.truth))
    assert against["none"]["loss"] < own["loss"]
    for told in against.values():
        assert set(told) == {"standard_error", "sigma", *SCORES}
    again = scored(run, found, data.user, found.truth, sigmas, 7)
    assert again[:2] == (own, against)
    assert scored(run, found, data.user, found.truth, sigmas, 8)[1]["local"] != against["local"]


def test_without_an_epsilon_there_is_nothing_to_compare_with() -> None:
    run, data = prepared(TESTED)
    for epsilon in (None, 0.0, math.inf):
        assert sigmas_of(run, None, epsilon, 1e-5) == {"local": None, "central": None}
    bare, _ = prepared(learning(3, 9, sigma=None))
    assert sigmas_of(bare, None, 1.0, 1e-5) == {"local": None, "central": None}
    told = baselines_of(run, {"local": None, "central": None})
    assert told["local"] == {"standard_error": None, "sigma": None}
    assert told["none"]["standard_error"] == [0.0] * 3
    nothing = scored(run, Outcome(), data.user, None, {"local": None, "central": None}, 1)
    assert nothing[0]["loss"] is None
    assert nothing[1]["none"]["loss"] is None


def test_a_user_may_see_how_good_a_model_is_on_its_own_rows() -> None:
    run, data = prepared(TESTED)
    told = run.protocol.own_scores(run.plan, lambda: data.user(2), np.array([2.0, -1.5, 0.2]))
    assert told is not None
    assert told == Pool(run, [data.user(2)]).scores(np.array([2.0, -1.5, 0.2]))
    assert told["test_loss"] is not None
