from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from p2pdp.assembly.outcome import Outcome, estimate_of
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.analysis.descents import gossip_sigmas_of
from p2pdp.protocols.gossip.analysis.fast import fast_gossip_descent
from p2pdp.protocols.learning import SCORES
from p2pdp.protocols.walk.analysis.fast import fast_descents, fast_outcome
from p2pdp.protocols.walk.analysis.outcome_descent import sigmas_of
from p2pdp.report.result import Circumstances, Level, Result, Sight, Trial, compared, make_result
from p2pdp.runs.prepared import prepare
from p2pdp.tasks.descending import Population
from tests.support import gossip_learners
from tests.support.learners import LOGISTIC, learning, prepared
from tests.support.made import verdict
from tests.support.small import ALL, HISTOGRAM, RING

FIELDS = (
    "run_id protocol transport nodes seeded seed started seconds startup_seconds private_kept messages bytes hops "
    "estimate standard_error truth error outputs baselines missing faults headline worst".split()
)
AROUND = Circumstances(
    run_id="00", seeded=False, seed=None, started="2030-01-31T12:00:00Z", bytes=9, missing=[3, 1],
    faults={"gap": 2, "bad_value": 1}, private_kept=False,
)  # fmt: skip


def made(text: str = RING, epsilon: float | None = 1.0, *, with_data: bool = True) -> Result:
    prepared = prepare(parse_spec(text, None))
    found = replace(fast_outcome(prepared.run, prepared.rows, 1), go_s=2.0, published_s=5.0)
    rows = prepared.rows if with_data else None
    return make_result(
        prepared.run, found, AROUND, rows, 1.0 if text is RING else None, None if epsilon is None else verdict(epsilon)
    )


def test_the_document_has_exactly_the_fields_of_the_contract() -> None:
    for text in ALL.values():
        document = made(text).to_json()
        assert list(document) == FIELDS
        assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_headline_and_worst_bound_are_those_of_the_audit() -> None:
    document = made(epsilon=math.inf).to_json()
    assert (document["headline"]["observer"], document["worst"]["observer"]) == ("node", "network")
    assert (document["headline"]["epsilon"], document["worst"]["reading"]) == ("inf", "none")
    assert made(epsilon=None).to_json()["headline"] is None


def test_folder_and_trials_are_there_where_they_are_given() -> None:
    result = replace(made(), folder="run", trials=[Trial(1.0, 2.0, -1.0)])
    assert list(result.to_json()) == [*FIELDS, "folder", "trials"]
    assert result.to_json()["trials"] == [{"estimate": 1.0, "truth": 2.0, "error": -1.0}]


def test_circumstances_and_times_are_taken_over() -> None:
    result = made()
    assert (result.seconds, result.startup_seconds) == (3.0, 2.0)
    assert (result.bytes, result.started, result.seeded, result.private_kept) == (9, AROUND.started, False, False)
    assert result.missing == [1, 3]
    assert list(result.faults) == ["bad_value", "gap"]
    assert result.hops == 8


def test_without_the_data_there_is_no_truth_and_no_error() -> None:
    result = made(with_data=False)
    assert (result.truth, result.error) == (None, None)
    assert result.estimate is not None


@pytest.mark.parametrize("epsilon", [None, math.inf, 0.0])
@pytest.mark.parametrize("text", [RING, HISTOGRAM])
def test_without_a_finite_epsilon_there_are_no_baselines(text: str, epsilon: float | None) -> None:
    baselines = made(text, epsilon).baselines
    assert baselines == {"local": {"standard_error": None}, "central": {"standard_error": None}}


def test_baselines_of_a_sum_are_those_of_the_gaussian_curve() -> None:
    """Four users contribute twice each; sigma for (1, 1e-5) and sensitivity 1 is a known answer."""
    baselines = made(epsilon=1.0).baselines
    assert baselines["central"]["standard_error"] == pytest.approx(2 * 3.7306316348159, rel=1e-6)
    assert baselines["local"]["standard_error"] == pytest.approx(4 * 3.7306316348159, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 10.0, 40.0])
def test_a_trusted_curator_is_never_worse_for_histograms(epsilon: float) -> None:
    baselines = made(HISTOGRAM, epsilon).baselines
    local, central = baselines["local"]["standard_error"], baselines["central"]["standard_error"]
    assert isinstance(local, list)
    assert isinstance(central, list)
    assert all(0.0 < theirs <= ours for theirs, ours in zip(central, local, strict=True))


BEFOREHAND = Level(sensitivity=None, epsilon=2.0, delta=1e-5, given_paths=False)
ALONG = Level(sensitivity=None, epsilon=2.0, delta=1e-5, given_paths=True)


def walked() -> tuple[Any, Outcome, Any, Any]:
    run, data = prepared(learning(5, 60, task=LOGISTIC))
    (found,) = fast_descents(run, data.user, [1])
    return run, found, estimate_of(run, found), data.user


def gossiped() -> tuple[Any, Outcome, Any, Any]:
    run, data = prepared(gossip_learners.gossip_learning(task=gossip_learners.LOGISTIC))
    found = fast_gossip_descent(run, Population(run.plan.descent, [data.user(user) for user in range(run.n)]), 1)
    return run, found, estimate_of(run, found), data.user


def test_what_adds_up_is_compared_by_standard_errors_alone() -> None:
    run = prepare(parse_spec(RING, None))
    found = fast_outcome(run.run, run.rows, 1)
    told = compared(run.run, found, estimate_of(run.run, found), Level(1.0, 1.0, 1e-5, given_paths=True))
    assert list(told.baselines) == ["local", "central"]
    assert (told.scores, told.warnings) == (None, None)


def test_walks_are_compared_along_their_own_path_or_in_advance() -> None:
    run, found, estimate, _ = walked()
    for level, paths in ((ALONG, found.paths), (BEFOREHAND, None)):
        sigmas = sigmas_of(run, paths, 2.0, 1e-5)
        told = compared(run, found, estimate, level).baselines
        assert {name: told[name]["sigma"] for name in sigmas} == sigmas
    along, beforehand = (compared(run, found, estimate, level).baselines["local"] for level in (ALONG, BEFOREHAND))
    assert along["sigma"] != beforehand["sigma"]


def test_gossip_is_compared_by_composition_over_its_gradients() -> None:
    run, found, estimate, _ = gossiped()
    sigmas = gossip_sigmas_of(run, 2.0, 1e-5)
    for level in (ALONG, BEFOREHAND):
        told = compared(run, found, estimate, level).baselines
        assert {name: told[name]["sigma"] for name in sigmas} == sigmas


@pytest.mark.parametrize("made", [walked, gossiped])
def test_scores_are_told_to_who_has_the_data_only(made: Any) -> None:
    run, found, estimate, rows = made()
    blind = compared(run, found, estimate, ALONG)
    assert blind.scores is None
    assert not set(SCORES) & set(blind.baselines["none"])
    seen = compared(run, found, estimate, ALONG, Sight(rows, found.truth, 7))
    assert seen.scores is not None
    assert set(SCORES) <= set(seen.scores)
    assert set(SCORES) <= set(seen.baselines["none"])
