"""Published theorems beside a plan's own claims: what they are asked, and where they are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.auditor.audit import Audit
from p2pdp.core.claims import Claim, Refusal
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import account
from p2pdp.privacy.gaussian_curve import epsilons_of
from p2pdp.privacy.theorems.walk_any_graph import per_order
from p2pdp.protocols.walk.analysis.published import published
from p2pdp.topology.graphs import Graph
from tests.support import runs
from tests.support.learners import learning
from tests.support.plans import plan
from tests.support.runs import DELTA, GAUSSIAN, HISTOGRAM, quiet, ring, walk

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


def published_formulas(audit: Audit) -> dict[str, Claim]:
    return {one.method.removeprefix("published:"): one for one in audit.claims if one.method.startswith("published:")}


def refused(audit: Audit) -> dict[str, str]:
    return {one.method.removeprefix("published:"): one.reason for one in audit.refusals
            if one.method.startswith("published:")}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (ring(5, 3), {"ring_sum"}),
        (walk(5, 40), {"complete_sum", "complete_sum_v1"}),
        (learning(5, 20), {"complete_sgd"}),
        (learning(5, 20, kind="path"), {"walk_any_graph"}),
    ],
)
def test_they_stand_beside_and_bound_nothing(text: str, names: set[str]) -> None:
    found = published_formulas(quiet(text).audit())
    assert set(found) == names
    for claim in found.values():
        assert (claim.observer, claim.bound, claim.conditioning) == ("node", False, "a-priori")
        assert any("as planned" in said for said in claim.assumptions)
        assert claim.epsilon_max is not None
        assert claim.delta == pytest.approx(DELTA)
        assert (claim.violated_pairs is None) == ("sgd" in text)


def test_what_they_are_not_about_is_refused_or_left_out() -> None:
    assert set(refused(quiet(walk(5, 20, tokens=2)).audit())) == {"complete_sum", "complete_sum_v1"}
    assert set(refused(quiet(ring(5, 2, **HISTOGRAM)).audit())) == {"ring_histogram"}
    for text in (walk(5, 20, **HISTOGRAM), walk(6, 30, "exponential")):
        audit = quiet(text).audit()
        assert published_formulas(audit) == {}
        assert refused(audit) == {}


def test_pairs_that_were_told_more_are_counted() -> None:
    """On the ring the theorem holds; on the complete graph a path may tell more than what it says of all paths."""
    on_ring = quiet(ring(5, 3)).audit()
    assert published_formulas(on_ring)["ring_sum"].violated_pairs == 0
    for noise in (GAUSSIAN, GAUSSIAN.replace("2.0", "40.0")):
        audit = quiet(walk(5, 40, noise=noise)).audit()
        assert audit.mu is not None
        for claim in published_formulas(audit).values():
            assert claim.epsilon_max is not None
            exact = epsilons_of(claim.delta, audit.mu)[~np.isnan(audit.mu)]
            assert claim.violated_pairs == np.count_nonzero(exact > claim.epsilon_max)


def test_on_any_graph_it_is_converted_at_the_best_order() -> None:
    """For c alpha of all orders, about c + 2 sqrt(c ln(1/delta)) less what the better conversion saves."""
    run = quiet(learning(5, 20, kind="path"))
    claim = published_formulas(run.audit())["walk_any_graph"]
    line = Graph(5, ((1,), (0, 2), (1, 3), (2, 4), (3,)))
    losses = (2.0 / 0.8) ** 2 * per_order(line, 5, 20)
    most = float(losses.max())
    assert claim.worst_pair is not None
    assert isinstance(claim.worst_pair[1], int)
    assert losses[claim.worst_pair[0], claim.worst_pair[1]] == pytest.approx(most)
    assert claim.epsilon_max is not None
    simple = most + 2.0 * np.sqrt(most * np.log(1.0 / DELTA))
    assert 0.7 * simple < claim.epsilon_max <= simple * (1 + 1e-6)
    assert claim.epsilon_mean is not None
    assert claim.epsilon_mean < claim.epsilon_max
