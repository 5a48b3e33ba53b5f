"""What accounts of pairs share; `test_exact_account.py` and `test_iteration.py` test their leaks."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.audit.exact import Leaks
from p2pdp.audit.ground import Ground
from p2pdp.audit.pair_claims import PairClaims, account_of_pairs
from tests.support.learners import learning
from tests.support.runs import DELTA, quiet


class Fixed:
    """User 0 leaks 4 times what others leak, to everybody; nothing is published."""

    def nodes(self, members: object) -> Leaks:
        return Leaks(np.array([4.0, 1.0, 1.0]) * 1e-20)

    def curator(self) -> Leaks:
        return Leaks(None)

    def public(self) -> Leaks:
        return Leaks(np.zeros(3))

    def network(self) -> Leaks:
        return Leaks(np.array([9.0, 1.0, 1.0]) * 1e-20)


def ground(colluders: tuple[int, ...] = (), incomplete: tuple[int, ...] = ()) -> Ground:
    run = quiet(learning(3, 9))
    return Ground(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders)


def test_the_worst_pair_and_the_mean_are_told() -> None:
    found = account_of_pairs(ground((1,)), Fixed(), "exact", "an assumption")
    claims = {claim.observer: claim for claim in found.claims}
    assert set(claims) == {"node", "coalition", "public", "network"}
    assert claims["node"].worst_pair == (0, 0)
    assert claims["coalition"].worst_pair == (0, (1,))
    assert claims["node"].mu_max == pytest.approx(2 * claims["node"].mu_mean * 3 / 4)  # type: ignore[operator]
    assert claims["public"].epsilon_max == 0.0
    assert "an assumption" in claims["node"].assumptions
    assert [refusal.observer for refusal in found.refusals] == ["curator"]


def test_who_is_not_at_hand_is_refused_by_name() -> None:
    found = account_of_pairs(ground((1,), (1,)), Fixed(), "exact")
    assert [refusal.observer for refusal in found.refusals] == ["node", "coalition", "curator", "network"]
    assert found.refusals[0].reason.startswith("user 1:")
    assert found.mu is not None
    assert np.isnan(found.mu[:, 1]).all()


def test_mu_is_rounded_up() -> None:
    claims = PairClaims(ground(), "exact")
    leaks = np.array([1e-18])
    assert claims.mu(leaks)[0] >= ground().sensitivity * 1e-9


def test_rounding_adds_up_to_each_users_ceiling() -> None:
    """User 0 is at its ceiling, user 1 comes to it, user 2 is far below; of whom nothing is told, nothing is added."""
    claims = PairClaims(ground(), "exact", rounding=0.5, ceilings=np.array([1.0, 1.2, 9.0]))
    mu = np.array([[1.0, 0.0], [1.0, np.nan], [1.0, 0.25]])
    claim = claims.claim("node", mu, [0, 1])
    assert claim.worst_pair == (2, 0)
    assert claim.mu_max == pytest.approx(1.5)
    assert claim.mu_mean == pytest.approx((1.0 + 0.0 + 1.2 + 1.5 + 0.75) / 5)
