from __future__ import annotations

import math

import numpy as np

from p2pdp.assembly.outcome import Outcome
from p2pdp.assembly.pools import Pool
from p2pdp.protocols.learning import SCORES
from p2pdp.protocols.walk.analysis.fast_descent import fast_descents
from p2pdp.protocols.walk.analysis.levels import sigmas_of
from p2pdp.protocols.walk.analysis.scores import baselines_of, scored
from tests.support.learners import learning, prepared
from tests.support.score_worlds import TESTED, everybody


def test_baselines_take_the_same_path_with_other_noise() -> None:
    run, data = prepared(TESTED)
    (found,) = fast_descents(run, data.user, [1])
    sigmas = sigmas_of(run, found.paths, 2.0, 1e-5)
    assert sigmas["local"] > sigmas["central"] > 0.0  # type: ignore[operator]
    own, against = scored(run, found, data.user, found.truth, sigmas, 7)
    assert own["score_name"] == "accuracy"
    assert list(against) == ["local", "central", "none"]
    assert against["none"]["sigma"] == 0.0
    assert against["none"] == against["none"] | Pool(run, everybody(run, data)).scores(np.array(found.truth))
    assert against["none"]["loss"] < own["loss"]
    for told in against.values():
        assert set(told) == {"standard_error", "sigma", *SCORES}
    again = scored(run, found, data.user, found.truth, sigmas, 7)
    assert again == (own, against)
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
