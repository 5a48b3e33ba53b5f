from __future__ import annotations

import pytest

from p2pdp.audit.beforehand import beforehand
from p2pdp.audit.estimates import Cost, cost_of, left_of
from p2pdp.core.errors import UsageError
from tests.support.estimates import PRIVATE
from tests.support.learners import learning, prepared
from tests.support.plans import node_epsilon
from tests.support.runs import DELTA, quiet

PUBLIC = learning(5, 60, data="unit_norm = true")


def test_only_estimates_cost_something() -> None:
    assert cost_of(prepared(PUBLIC)[0].spec) is None
    assert cost_of(prepared(learning())[0].spec) is None, "public ranges are free"
    assert cost_of(prepared(PRIVATE)[0].spec) == Cost(0.5, 4e-6)


def test_an_audit_adds_their_cost_to_every_claim() -> None:
    whole, dear = quiet(PUBLIC).audit(delta=6e-6), quiet(PRIVATE).audit(delta=1e-5)
    assert len(whole.claims) == len(dear.claims)
    for free, claim in zip(whole.claims, dear.claims, strict=True):
        assert (free.observer, free.method) == (claim.observer, claim.method)
        assert claim.delta == pytest.approx(1e-5)
        assert free.epsilon_max is not None
        assert claim.epsilon_max == pytest.approx(free.epsilon_max + 0.5)
        assert claim.mu_max is None
        assert any("standardized cost epsilon 0.5" in text for text in claim.assumptions)
    assert whole.epsilon is not None
    assert dear.epsilon == pytest.approx(whole.epsilon + 0.5, nan_ok=True)


def test_a_plan_does_too() -> None:
    free = beforehand(prepared(PUBLIC)[0], 6e-6, (), one_value=False)
    dear = beforehand(prepared(PRIVATE)[0], DELTA, (), one_value=False)
    for one, other in zip(free.claims, dear.claims, strict=True):
        assert other.epsilon_max == pytest.approx((one.epsilon_max or 0.0) + 0.5, rel=1e-6)
    bound = node_epsilon(prepared(PRIVATE)[0], DELTA, one_value=False)
    assert bound == pytest.approx(node_epsilon(prepared(PUBLIC)[0], 6e-6, one_value=False) + 0.5, rel=1e-6)


def test_a_delta_that_they_use_up_is_refused() -> None:
    assert left_of(1e-5, None) == 1e-5
    with pytest.raises(UsageError, match="leaves nothing"):
        quiet(PRIVATE).audit(delta=4e-6)
    with pytest.raises(UsageError, match="leaves nothing"):
        beforehand(prepared(PRIVATE)[0], 1e-6, (), one_value=False)
