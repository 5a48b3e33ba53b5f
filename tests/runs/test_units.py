from __future__ import annotations

import math
from pathlib import Path

import pytest

import p2pdp
from p2pdp.files.spec import demo_spec
from p2pdp.mechanisms import gaussian
from tests.support.record_runs import GAUSSIAN, ROWS, record_spec


def test_all_rows_of_a_user_move_a_sum_as_often_as_there_are_rows(tmp_path: Path) -> None:
    planned = p2pdp.plan(record_spec(tmp_path, "pairwise.sum", GAUSSIAN))
    assert planned.units is not None
    known = {claim.observer: claim.mu_max for claim in planned.claims if claim.bound and claim.method == "exact"}
    found = {str(one.observer): one for one in planned.units}
    mu = known["curator"]
    assert mu is not None
    assert found["curator"].record == pytest.approx(gaussian.epsilon_of(1e-5, mu))
    assert found["curator"].user == pytest.approx(gaussian.epsilon_of(1e-5, mu * max(ROWS)))


def test_answers_at_random_add_up_and_what_is_hidden_together_is_not_known(tmp_path: Path) -> None:
    planned = p2pdp.plan(record_spec(tmp_path, "shuffle.all"))
    assert planned.units is not None
    for one in planned.units:
        assert one.user == pytest.approx(max(ROWS) * 1.5)
        assert one.record < one.user < math.inf
    document = planned.to_json()["units"]
    assert {tuple(one) for one in document} == {("observer", "user", "record")}


def test_a_run_of_whole_users_has_nothing_beside_it() -> None:
    assert "units" not in p2pdp.plan(demo_spec()).to_json()
