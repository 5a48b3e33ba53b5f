"""Published theorems beside an audit's own claims."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.audit.auditor import Audit
from p2pdp.core.claims import Claim
from p2pdp.privacy.gaussian_curve import epsilons_of
from p2pdp.privacy.theorems.walk_any_graph import per_order
from p2pdp.topology.graphs import Graph
from tests.support.learners import learning
from tests.support.runs import DELTA, GAUSSIAN, HISTOGRAM, quiet, ring, walk


def published(audit: Audit) -> dict[str, Claim]:
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
    found = published(quiet(text).audit())
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
        assert published(audit) == {}
        assert refused(audit) == {}


def test_pairs_that_were_told_more_are_counted() -> None:
    """On the ring the theorem holds; on the complete graph a path may tell more than what it says of all paths."""
    on_ring = quiet(ring(5, 3)).audit()
    assert published(on_ring)["ring_sum"].violated_pairs == 0
    for noise in (GAUSSIAN, GAUSSIAN.replace("2.0", "40.0")):
        audit = quiet(walk(5, 40, noise=noise)).audit()
        assert audit.mu is not None
        for claim in published(audit).values():
            assert claim.epsilon_max is not None
            exact = epsilons_of(claim.delta, audit.mu)[~np.isnan(audit.mu)]
            assert claim.violated_pairs == np.count_nonzero(exact > claim.epsilon_max)


def test_on_any_graph_it_is_converted_at_the_best_order() -> None:
    """For c alpha of all orders, about c + 2 sqrt(c ln(1/delta)) less what the better conversion saves."""
    run = quiet(learning(5, 20, kind="path"))
    claim = published(run.audit())["walk_any_graph"]
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
