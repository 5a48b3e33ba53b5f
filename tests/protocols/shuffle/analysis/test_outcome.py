from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import Outcome, baselines, error_of, estimate_of, truth_of
from p2pdp.core import messages
from p2pdp.core.ids import CURATOR
from p2pdp.files.data import load_data
from p2pdp.ledger.records import SENT, public_message
from p2pdp.mechanisms import randomized_response
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.outcome import (
    MARK_BYTES,
    Sent,
    name_of,
    names_at,
    report_frame_bytes,
    sent_in,
    traffic_of,
)
from p2pdp.protocols.shuffle.plan import MARK, RELAY
from p2pdp.sim.faults import Crash
from p2pdp.wire.padding import FRAME_SIZES
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


TEXT = shuffle(10, 'kind = "regular"\ndegree = 4', terms="rounds = 7\nstay = 0.2")


def test_what_ledgers_say_is_counted_by_user() -> None:
    run = quiet(TEXT)
    sent = sent_in(run.contents(), 10)
    own = [record for record in run.contents()[4].records if record.kind == SENT]
    kinds = [public_message(record).type for record in own]
    assert sent.relayed[4] == kinds.count(RELAY)
    assert sent.handed_in[4] == kinds.count(messages.REPORT)
    assert sent.marks[4] == kinds.count(MARK) == 4 * 7
    assert sent.handed_in.sum() == 10
    assert not sent.cover.any()
    assert 1 <= sent.held <= 10


def test_cover_makes_all_alike() -> None:
    sent = sent_in(quiet(TEXT.replace("stay = 0.2", "cover = true")).contents(), 10)
    assert len(set((sent.relayed + sent.cover).tolist())) == 1


def test_reports_are_as_many_as_rounds_and_bytes_those_of_frames() -> None:
    """[LTT22, Table 3]: reports that a user sends."""
    run = quiet(TEXT)
    plan = run.plan.plan
    found = traffic_of(plan, sent_in(run.contents(), 10))
    assert found["reports_per_user_expected"] == pytest.approx(7 * 0.8 + 1)
    assert found["reports_per_user_mean"] == pytest.approx(6.6, abs=1.5)
    assert found["messages_per_user_mean"] == pytest.approx(found["reports_per_user_mean"] + 28 + 1)
    assert all(found[f"{name}_per_user_max"] >= found[f"{name}_per_user_mean"] for name in ("reports", "bytes"))
    made = traffic_of(plan, Sent(*(np.array(one) for one in ([2, 0], [1, 1], [0, 3], [5, 5])), 2))  # type: ignore[arg-type]
    assert made["bytes_per_user_max"] == 4 * report_frame_bytes(plan) + 6 * MARK_BYTES
    assert report_frame_bytes(plan) in FRAME_SIZES


def test_bytes_are_a_part_of_those_of_the_run() -> None:
    run = quiet(TEXT)
    found = traffic_of(run.plan.plan, sent_in(run.contents(), 10))
    assert 0.3 * run.world.network.bytes <= 10 * found["bytes_per_user_mean"] <= run.world.network.bytes
