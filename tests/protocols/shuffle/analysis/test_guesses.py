from __future__ import annotations

import numpy as np
import pytest

from p2pdp.attacks.decoding import readings_of
from p2pdp.core.errors import Refused
from p2pdp.core.ids import CURATOR
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import plan_run
from p2pdp.protocols.shuffle.analysis.guesses import USERS_MAX, Guess, guesses_of, opened_by, value_as_weight
from p2pdp.protocols.shuffle.analysis.outcome import name_of
from p2pdp.sim.faults import Crash
from tests.support.runs import Run, quiet, run_of
from tests.support.shuffle_specs import shuffle

PATH = shuffle(3, 'kind = "path"', terms="rounds = 1")


def guessed(run: Run) -> list[Guess]:
    graph = run.world.run.graph
    assert graph is not None
    return guesses_of(run.world.run, graph, opened_by(run.world.run, run.contents()[CURATOR]))


def found_by(run: Run) -> list[bool]:
    return [guess.name == name_of(run.contents()[guess.user]) for guess in guessed(run)]


def test_after_one_round_on_a_path_the_middle_is_known_and_the_ends_are_one_of_two() -> None:
    for seed in range(6):
        run = quiet(PATH.replace("seed = 1", f"seed = {seed}"))
        guesses = guessed(run)
        assert [round(guess.probability, 9) for guess in guesses] == [0.5, 1.0, 0.5]
        assert found_by(run)[1]


def test_estimates_are_what_the_reports_weigh() -> None:
    run = quiet(PATH)
    opened = opened_by(run.world.run, run.contents()[CURATOR])
    middle = guessed(run)[1]
    np.testing.assert_allclose(middle.estimate, opened.weights[opened.names.index(middle.name)])
    assert opened.weights.shape == (3, 3)
    assert sorted(opened.names) == sorted(name_of(run.contents()[user]) or 0 for user in range(3))


def test_mixed_walks_leave_nothing_but_the_mean() -> None:
    run = quiet(shuffle(20, terms="rounds = 9"))
    opened = opened_by(run.world.run, run.contents()[CURATOR])
    for guess in guessed(run):
        np.testing.assert_allclose(guess.estimate, opened.weights.mean(axis=0), atol=1e-3)
        assert guess.probability == pytest.approx(0.05, abs=0.01)


def test_of_single_what_is_not_there_is_taken_for_usual() -> None:
    run = quiet(shuffle(20, protocol="single", terms="rounds = 9"))
    estimates = np.array([guess.estimate for guess in guessed(run)])
    assert np.ptp(estimates, axis=0).max() < 0.02


def test_early_guesses_are_better_than_late_ones() -> None:
    text = shuffle(40, 'kind = "regular"\ndegree = 3')
    early, late = (sum(found_by(quiet(text.replace("rounds = 4", f"rounds = {rounds}")))) for rounds in (1, 12))
    assert early >= 9 > late


def test_a_relay_decodes_nothing() -> None:
    run = quiet(PATH)
    with pytest.raises(Refused, match="sealed reports only"):
        readings_of(run.plan, 0, run.contents()[0])


def test_what_did_not_go_as_walks_do_is_refused() -> None:
    gone = run_of(shuffle(5), Crash(2, at_record=20, down_s=None))
    assert gone.world.out == [2]
    with pytest.raises(Refused, match="put out"):
        guessed(gone)
    spec = parse_spec(shuffle(USERS_MAX + 1, 'kind = "ring"'), None)
    large = plan_run(spec, USERS_MAX + 1, 1)
    assert large.graph is not None
    run = quiet(PATH)
    with pytest.raises(Refused, match="do not fit"):
        guesses_of(large, large.graph, opened_by(run.world.run, run.contents()[CURATOR]))


def test_values_have_the_form_of_estimates_and_texts_show_none() -> None:
    plan = quiet(PATH).world.run.plan
    assert value_as_weight(plan, 2).tolist() == [0.0, 0.0, 1.0]
    guess = guessed(quiet(PATH))[0]
    assert repr(guess) == "Guess(user=0)"
    assert repr(opened_by(quiet(PATH).world.run, quiet(PATH).contents()[CURATOR])) == "Opened(3 reports)"
