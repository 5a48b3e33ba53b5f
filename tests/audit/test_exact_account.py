from __future__ import annotations

import numpy as np

from p2pdp.audit.exact_account import EXACT, exact_account
from p2pdp.audit.ground import Finding, Ground
from tests.audit.runs import DELTA, HISTOGRAM, Run, quiet, ring, walk


def account(run: Run, *, incomplete: tuple[int, ...] = (), colluders: tuple[int, ...] = ()) -> Finding:
    return exact_account(Ground(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders))


def test_one_claim_an_observer_and_a_column_a_user() -> None:
    found = account(quiet(ring(4, 2)), colluders=(0, 2))
    assert [claim.observer for claim in found.claims] == ["node", "coalition", "curator", "public", "network"]
    assert found.mu is not None
    assert found.mu_coalition is not None
    assert np.array_equal(np.isnan(found.mu), np.eye(4, dtype=bool))
    assert np.array_equal(np.isnan(found.mu_coalition), [True, False, True, False])
    assert not found.refusals


def test_a_node_that_is_not_at_hand_is_refused_by_name_and_the_network_too() -> None:
    found = account(quiet(ring(4, 2)), incomplete=(3,), colluders=(1, 3))
    assert {(one.observer, one.method) for one in found.refusals} == {
        ("node", EXACT), ("coalition", EXACT), ("network", EXACT),
    }  # fmt: skip
    assert found.mu is not None
    assert np.all(np.isnan(found.mu[:, 3]))


def test_noise_that_is_not_gaussian_has_no_exact_leak() -> None:
    found = account(quiet(walk(4, 8, **HISTOGRAM)))
    assert not found.claims
    assert found.mu is None
    assert all("randomized_response" in one.reason for one in found.refusals)
