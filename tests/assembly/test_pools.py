from __future__ import annotations

import numpy as np
import pytest

from p2pdp.assembly.pools import Pool
from p2pdp.protocols.learning import SCORES
from tests.support.learners import learning, prepared
from tests.support.score_worlds import TESTED, everybody


def test_scores_are_of_all_examples_and_of_those_kept_out() -> None:
    run, data = prepared(TESTED)
    pool = Pool(run, everybody(run, data))
    found = pool.scores(np.array([2.0, -1.5, 0.2]))
    assert set(found) == set(SCORES)
    learned = np.concatenate([data.user(user).features for user in range(5)])
    targets = np.concatenate([data.user(user).targets for user in range(5)])
    assert len(learned) == 50
    right = np.where(learned @ np.array([2.0, -1.5, 0.2]) >= 0, 1, -1) == targets
    assert found["score"] == pytest.approx(right.mean())
    assert found["test_score"] is not None
    without, data = prepared(learning(5, 60))
    assert Pool(without, everybody(without, data)).scores(np.zeros(3))["test_loss"] is None
    assert pool.scores(np.array([np.nan, 0.0, 0.0])) == dict.fromkeys(SCORES)
