"""Claims against attacks on replays of the same route: no attack proves more than was claimed.

All intervals and lower ends together are wrong with a probability below 1e-6 (`ERROR` is shared out), so a
failure here is a wrong claim. Gaussian claims must lie inside an interval: too large is as wrong as too small.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from p2pdp.auditor.audit import audit_run
from p2pdp.mechanisms import gaussian
from p2pdp.replay.evidence import Recorded
from tests.support.likelihood import epsilon_lower_end, mu_interval, statistic
from tests.support.replays import replays
from tests.support.runs import HISTOGRAM, Run, quiet, ring, walk

if TYPE_CHECKING:
    import numpy as np

ERROR = 1e-6 / 1000  # fewer pairs than that are tested
DELTA = 1e-2
COUNT = 20_000
LAPLACE = '[noise]\nmechanism = "laplace"\nsigma = 1.0\n'

GAUSSIAN_RUNS = {
    "ring": ring(4, 2),
    "ring without closing": ring(5, 2, "closing = false\n"),
    "remark 1": ring(4, 2, "share = true\n"),
    "several tokens on a ring": ring(4, 1, tokens=2),
    "random walk": walk(4, 14),
    "several tokens": walk(4, 8, tokens=2),
    "sparse": walk(5, 16, "ring"),
}


def views(run: Run, user: int, moved: float, observer: int, seed: int) -> np.ndarray:
    values = [[0.0] for _ in range(run.plan.n)]
    values[user] = [moved]
    return replays(run.plan, run.contents(), values, COUNT, seed).view(observer)


@pytest.mark.parametrize("text", GAUSSIAN_RUNS.values(), ids=GAUSSIAN_RUNS)
def test_exact_leaks_are_matched_from_both_sides(text: str) -> None:
    run = quiet(text)
    audit = audit_run(run.plan, Recorded(run.plan, run.contents()), (), DELTA, ())
    assert audit.mu is not None
    one = math.ldexp(1.0, -run.plan.plan.grid_exponent)
    for user, observer in ((0, 1), (1, 0), (2, 1), (run.plan.n - 1, run.plan.n - 2), (0, 3)):
        claimed = float(audit.mu[user, observer])
        weights = statistic(views(run, user, 0.0, observer, 1), views(run, user, one, observer, 2))
        without, with_ = (views(run, user, *terms) @ weights for terms in ((0.0, observer, 3), (one, observer, 4)))
        low, high = mu_interval(without, with_, ERROR)
        if math.isinf(claimed):
            assert low > 100.0, "it is read, not guessed"
        else:
            assert low <= claimed * (1 + 1e-9)
            assert claimed <= high * (1 + 1e-9)
            assert epsilon_lower_end(without, with_, DELTA, ERROR) <= gaussian.epsilon_of(DELTA, claimed)


@pytest.mark.parametrize("text", [ring(4, 2, noise=LAPLACE), walk(4, 14, noise=LAPLACE)], ids=["ring", "random walk"])
def test_laplace_sums_stay_below_their_ceiling(text: str) -> None:
    run = quiet(text)
    ceiling = max(
        claim.epsilon_max or 0.0
        for claim in audit_run(run.plan, Recorded(run.plan, run.contents()), (), DELTA, ()).claims
    )
    one = math.ldexp(1.0, -run.plan.plan.grid_exponent)
    for user, observer in ((0, 1), (2, 3)):
        weights = statistic(views(run, user, 0.0, observer, 1), views(run, user, one, observer, 2))
        without, with_ = (views(run, user, *terms) @ weights for terms in ((0.0, observer, 3), (one, observer, 4)))
        assert epsilon_lower_end(without, with_, DELTA, ERROR) <= ceiling


@pytest.mark.parametrize("tokens", [1, 2])
def test_histograms_stay_below_each_pair_s_bound(tokens: int) -> None:
    """A user's category is 0 or 1; all others have the third, which hides it least (guide/accounting.md, section 2)."""
    for text in (walk(4, 14, tokens=tokens, **HISTOGRAM), ring(4, 2, tokens=tokens, **HISTOGRAM)):
        run = quiet(text)
        audit = audit_run(run.plan, Recorded(run.plan, run.contents()), (), DELTA, ())
        ceiling = max(claim.epsilon_max or 0.0 for claim in audit.claims)
        for user, observer in ((0, 1), (1, 2), (2, 0)):
            bound = ceiling if audit.epsilon is None else float(audit.epsilon[user, observer])
            sides = []
            for category, seed in ((0.0, 1), (1.0, 2)):
                values = [[2.0] for _ in range(4)]
                values[user] = [category]
                sides.append(replays(run.plan, run.contents(), values, COUNT, seed).view(observer))
            weights = statistic(sides[0][: COUNT // 2], sides[1][: COUNT // 2])
            scores = [side[COUNT // 2 :] @ weights for side in sides]
            assert epsilon_lower_end(scores[0], scores[1], DELTA, ERROR) <= bound
