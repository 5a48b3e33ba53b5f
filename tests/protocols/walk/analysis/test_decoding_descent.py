"""What a user reads of a step that lay alone between two looks: the very gradient that was noised."""

from __future__ import annotations

from pathlib import Path

import pytest

import p2pdp
from p2pdp.protocols.walk.analysis.decoding_descent import read_descent
from tests.support.learners import LOGISTIC, learning, prepared
from tests.support.runs import quiet
from tests.support.token_paths import paths

SPECS = {
    "complete": learning(4, 60, task=LOGISTIC + '\nregularization = 0.3\nschedule = "inverse_sqrt"'),
    "tokens": learning(3, 20, tokens=2),
    "ring": learning(3, kind="ring", order='order = "ring"\nlaps = 4'),
    "grid": learning(6, 60, kind="grid"),
}


@pytest.mark.parametrize("name", SPECS)
def test_readings_are_of_the_users_who_took_those_steps(name: str) -> None:
    run = quiet(SPECS[name])
    path, read = paths(run), 0
    for observer in range(run.plan.n):
        for (user,), _, places in read_descent(run.plan, observer, run.contents()[observer]):
            (item, step) = places[0]
            assert path[item, step - 1] == user != observer
            neighbours = [path[item, at - 1] if 1 <= at <= path.shape[1] else observer for at in (step - 1, step + 1)]
            if step > 1:
                assert neighbours == [observer, observer]
            read += 1
    assert read > 0


@pytest.mark.parametrize("name", ["complete", "ring"])
def test_the_noised_gradient_is_read_to_the_last_digits(tmp_path: Path, name: str) -> None:
    p2pdp.simulate(prepared(SPECS[name])[0].spec, tmp_path / "run")
    told = [target for observer in range(3) for target in p2pdp.attack(tmp_path / "run", observer).targets]
    assert told
    for target in told:
        assert max(map(abs, target["noised_value_error_in_sigma"])) < 1e-9
        assert max(map(abs, target["error"])) > 1e-3, "noise is what protects"
    for record in p2pdp.views(tmp_path / "run"):
        assert record["kind"] in ("received", "sent", "own", "published", "drawn")
