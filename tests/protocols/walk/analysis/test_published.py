"""Published theorems beside a plan's own claims: what they are asked, and where they are refused."""

from __future__ import annotations

import math

import pytest

from p2pdp.core.claims import Claim, Refusal
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import account
from p2pdp.protocols.walk.analysis.published import published
from tests.support import runs
from tests.support.plans import DELTA, plan

RESPONSE = runs.HISTOGRAM | {"noise": '[noise]\nmechanism = "randomized_response"\nepsilon = 0.01\n'}


def test_the_ring_is_asked_for_its_laps_at_the_runs_delta() -> None:
    (claim,) = published(plan(runs.ring(6, 3)), DELTA)
    assert isinstance(claim, Claim)
    each = gaussian.epsilon_of(DELTA / 6, 0.5)
    answer = account("ring_sum", {"epsilon": each, "delta": DELTA / 6, "laps": 3, "delta_prime": DELTA / 2})
    assert claim.epsilon_max == pytest.approx(answer.outputs["epsilon"], rel=1e-5)
    assert (claim.method, claim.bound, claim.conditioning) == ("published:ring_sum", True, "a-priori")
    assert claim.delta == pytest.approx(DELTA)


def test_the_complete_graph_has_two_theorems_and_neither_is_a_bound() -> None:
    found = published(plan(runs.walk(6, 60)), DELTA)
    assert [one.method for one in found] == ["published:complete_sum", "published:complete_sum_v1"]
    for claim in found:
        assert isinstance(claim, Claim)
        assert not claim.bound
        assert claim.delta == pytest.approx(DELTA)
        assert claim.epsilon_max is not None
        assert 0 < claim.epsilon_max < math.inf


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (runs.ring(5, 2, "closing = false\n"), "closing"),
        (runs.ring(5, 2, "share = true\n"), "n - 1 steps"),
        (runs.ring(5, 2, tokens=2), "one token"),
        (runs.walk(5, 20, tokens=2), "one token"),
        (runs.ring(5, 2, **runs.HISTOGRAM), "assumes"),
        (runs.ring(5, 2, tokens=2, **runs.HISTOGRAM), "one token"),
    ],
)
def test_what_a_theorem_is_not_about_is_refused(text: str, why: str) -> None:
    found = published(plan(text), DELTA)
    assert found
    for refusal in found:
        assert isinstance(refusal, Refusal)
        assert why in refusal.reason
        assert refusal.method.startswith("published:")


def test_what_no_theorem_is_about_has_none() -> None:
    for text in (
        runs.walk(6, 20, "ring"),
        runs.walk(6, 20, **runs.HISTOGRAM),
        runs.ring(4, 1, noise='[noise]\nmechanism = "laplace"\nsigma = 2.0\n'),
        runs.ring(1, 3),
    ):
        assert published(plan(text), DELTA) == []


def test_the_ring_histogram_is_asked_for_the_epsilon_of_a_lap() -> None:
    (claim,) = published(plan(runs.ring(2000, 1, **RESPONSE)), 1e-3)
    assert isinstance(claim, Claim), claim
    assert claim.bound
    lap = 12 * 0.01 * math.sqrt(math.log(2e3) / 2000)
    assert claim.epsilon_max == pytest.approx(math.sqrt(2 * math.log(2e3)) * lap + lap * math.expm1(lap), rel=1e-3)
