from __future__ import annotations

from typing import Any

import pytest

from p2pdp.assembly.found import Outcome
from p2pdp.assembly.outcome import estimate_of
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.analysis.fast_descent import fast_gossip_descent
from p2pdp.protocols.gossip.analysis.levels import gossip_sigmas_of
from p2pdp.protocols.learning import SCORES
from p2pdp.protocols.walk.analysis.fast import fast_outcome
from p2pdp.protocols.walk.analysis.fast_descent import fast_descents
from p2pdp.protocols.walk.analysis.levels import sigmas_of
from p2pdp.report.compared import Level, Sight, compared
from p2pdp.runs.prepared import prepare
from p2pdp.tasks.descending import Population
from tests.support import gossip_learners
from tests.support.learners import LOGISTIC, learning, prepared
from tests.support.small import RING

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
