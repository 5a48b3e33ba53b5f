from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import Outcome, baselines, error_of, estimate_of, truth_of
from p2pdp.core.ids import CURATOR
from p2pdp.files.data import load_data
from p2pdp.mechanisms import randomized_response
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.outcome import name_of, names_at
from p2pdp.sim.faults import Crash
from tests.support.outcomes import outcome
from tests.support.runs import Run, quiet, run_of
from tests.support.shuffle_networks import MEAN
from tests.support.shuffle_specs import shuffle

COUNTS = shuffle(12)
BARE = COUNTS.replace('"randomized_response"\nepsilon = 3.0', '"none"')


def found_of(run: Run) -> tuple[RunPlan, Outcome, Any]:
    plan = run.world.run
    data = load_data(run.evidence.spec, plan.n)
    return plan, outcome(plan, run.evidence.views, run.world.out), data.user


def test_all_reports_are_in_and_without_noise_the_estimate_is_the_truth() -> None:
    plan, found, rows = found_of(quiet(BARE))
    assert found.counted == {user: {0: 1} for user in range(12)}
    estimate, truth = estimate_of(plan, found), truth_of(plan, found, rows)
    assert estimate.value == truth == [float(sum(rows(u).rows[0] == c for u in range(12))) for c in range(3)]
    assert error_of(plan, found, estimate.value, truth) == [0.0, 0.0, 0.0]


def test_a_mean_is_not_divided_again() -> None:
    plan, found, rows = found_of(quiet(MEAN))
    estimate, truth = estimate_of(plan, found), truth_of(plan, found, rows)
    assert truth == pytest.approx(np.mean([rows(user).rows[0] for user in range(20)]))
    assert abs(estimate.value - truth) < 6 * estimate.standard_error  # type: ignore[operator]


def test_of_single_those_count_whose_reports_were_chosen_scaled_up_to_all() -> None:
    plan, found, rows = found_of(quiet(BARE.replace("shuffle.all", "shuffle.single")))
    chosen = sorted(found.counted)
    assert 0 < len(chosen) < 12
    truth = truth_of(plan, found, rows)
    counts = [sum(int(rows(user).rows[0]) == c for user in chosen) for c in range(3)]
    assert truth == pytest.approx([count * 12 / len(chosen) for count in counts])


def test_a_report_goes_by_the_name_that_its_user_chose() -> None:
    run = quiet(COUNTS)
    views = run.contents()
    names = {name_of(views[user]) for user in range(12)}
    assert names == names_at(views[CURATOR])
    assert name_of(views[CURATOR]) is None


def test_who_was_gone_before_it_sent_anything_is_not_counted() -> None:
    run = run_of(COUNTS, Crash(4, at_record=3, down_s=None))
    _, found, _ = found_of(run)
    assert run.world.out == [4]
    assert sorted(found.counted) == [user for user in range(12) if user != 4]


def test_baselines_are_for_the_same_task_at_the_epsilon_of_the_headline() -> None:
    plan, found, _ = found_of(quiet(COUNTS))
    estimate = estimate_of(plan, found)
    made = baselines(plan, found, estimate, None, 1.0, 1e-5)
    local: Any = made["local"]["standard_error"]
    gamma = randomized_response.gamma_of(1.0, 3)
    assert local == pytest.approx(randomized_response.standard_error(np.array(estimate.value), 12, gamma).tolist())
    central: Any = made["central"]["standard_error"]
    assert len(set(central)) == 1
    assert central[0] == pytest.approx(2.0 * np.sqrt(2.0)), "Laplace noise for two counts that move by one"
    for epsilon in (None, 0.0, np.inf):
        assert baselines(plan, found, estimate, None, epsilon, 1e-5)["local"] == {"standard_error": None}
    plan, found, _ = found_of(quiet(MEAN))
    made = baselines(plan, found, estimate_of(plan, found), None, 1.0, 0.0)
    assert made["local"]["standard_error"] == pytest.approx(np.sqrt(2.0) * 2.0 / np.sqrt(20.0))
    assert made["central"]["standard_error"] == pytest.approx(np.sqrt(2.0) * 2.0 / 20.0)
