from __future__ import annotations

import math

import pytest

from p2pdp.core.errors import Refused
from p2pdp.privacy.contract import account

TERMS = {"epsilon": 0.1, "delta": 1e-10, "n": 1000, "hops": 100_000, "delta_prime": 1e-7, "delta_hat": 1e-7}


def test_it_is_theorem_3_as_printed_and_no_bound() -> None:
    """[CB20, Theorem 3]."""
    found = account("complete_sum_v1", TERMS)
    visits = 100 + math.sqrt(1.5 * 100_000 * math.log(1e7))
    gamma = 1 - 0.999 ** (math.sqrt(1000) / 2)
    large = math.sqrt(2) * 0.1 / 1000**0.25
    terms = (
        math.sqrt(2 * visits * math.log(1e7)) * large,
        2 * math.sqrt(2 * visits * gamma * math.log(1e7)) * 0.1,
        visits * large * (math.exp(large) - 1),
        4 * visits * gamma * 0.1 * (math.exp(0.1) - 1),
    )
    assert found.outputs["epsilon"] == pytest.approx(sum(terms), rel=1e-12)
    assert found.outputs["delta"] == pytest.approx(1e-8 + 2e-7)
    assert found.outputs["gamma"] == pytest.approx(gamma, rel=1e-12)
    assert round(found.outputs["visits"]) == 1655
    assert found.outputs["visits_exact"] == 156
    assert not found.bound


def test_one_user_and_infinite_answers() -> None:
    assert account("complete_sum_v1", {**TERMS, "n": 1, "epsilon": 700.0}).outputs["epsilon"] == math.inf
    with pytest.raises(Refused, match="add up"):
        account("complete_sum_v1", {**TERMS, "delta": 0.5})
