from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.attacks.decoding import readings_of
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import CURATOR
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import plan_run
from p2pdp.protocols.shuffle.analysis.attack import USERS_MAX, Guess, guesses_of, opened_by, value_as_weight
from p2pdp.protocols.shuffle.analysis.outcome import name_of
from p2pdp.runs.attack import attack
from p2pdp.sim.faults import Crash
from tests.support.runs import Run, quiet, run_of
from tests.support.shuffle_specs import shuffle
from tests.support.small import RING, recorded

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


REALS = (
    PATH.replace('"randomized_response"\nepsilon = 3.0', '"gaussian"\nsigma = 0.5')
    .replace('"categories"', '"uniform"\nclip = [0.0, 1.0]')
    .replace('"histogram"\ncategories = 3', '"mean"')
)
KEYS = {"user", "estimate", "error", "noised_value_error_in_sigma", "report_probability", "report_found"}


def test_whoever_is_known_for_certain_is_read_as_it_was_noised(tmp_path: Path) -> None:
    """After one round on a path the middle's report is the one that an end hands in."""
    found = attack(recorded(tmp_path, REALS), "curator")
    assert found.to_json()["observer"] == "curator"
    assert [target["user"] for target in found.targets] == [0, 1, 2]
    assert all(set(target) == KEYS for target in found.targets)
    middle = found.targets[1]
    assert middle["report_probability"] == pytest.approx(1.0)
    assert middle["report_found"] is True
    assert middle["noised_value_error_in_sigma"] == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < abs(middle["error"]) < 3.0
    assert attack(tmp_path / "run", "curator", 1).targets == [middle]


def test_of_categories_the_error_is_a_vectors(tmp_path: Path) -> None:
    for target in attack(recorded(tmp_path, PATH), "curator").targets:
        assert np.shape(target["estimate"]) == np.shape(target["error"]) == (3,)
        assert target["noised_value_error_in_sigma"] is None
        assert sum(target["error"]) == pytest.approx(0.0, abs=1e-9)


def test_without_the_users_ledgers_nothing_is_scored(tmp_path: Path) -> None:
    place = recorded(tmp_path, REALS)
    before = attack(place, "curator").targets
    shutil.rmtree(place / "nodes")
    after = attack(place, "curator").targets
    assert [one["estimate"] for one in after] == [one["estimate"] for one in before]
    for one in after:
        assert one["error"] is one["noised_value_error_in_sigma"] is one["report_found"] is None


def test_a_relay_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="sealed reports only"):
        attack(recorded(tmp_path, PATH), 0)


def test_elsewhere_the_curator_has_what_is_published(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--observer curator: .*walk\.sum"):
        attack(recorded(tmp_path, RING), "curator")


def test_a_skeleton_tells_nothing(tmp_path: Path) -> None:
    place = recorded(tmp_path, PATH)
    p2pdp.export(place, tmp_path / "skeletons")
    with pytest.raises(UsageError, match=r"view\.ledger of the curator is not there"):
        attack(tmp_path / "skeletons", "curator")
    with pytest.raises(UsageError, match="--observer"):
        attack(place, "bootstrap")


def test_a_graph_from_a_file_is_that_of_the_ledgers(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n1 2\n2 3\n")
    text = shuffle(4, f"kind = \"file\"\npath = '{edges}'\npublic = false", terms="rounds = 2\nstay = 0.1")
    place = recorded(tmp_path, text)
    found = attack(place, "curator").targets
    assert len(found) == 4
    edges.write_text("0 1\n1 2\n2 3\n3 0\n")
    assert attack(place, "curator").targets == found
    edges.unlink()
    assert attack(place, "curator").targets == found
