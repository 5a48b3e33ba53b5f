from __future__ import annotations

import pytest

from p2pdp.core.errors import Refused
from p2pdp.privacy.contract import account

TERMS = {"epsilon": 0.1, "delta": 1e-9, "k": 100, "delta_prime": 1e-7}


def test_known_answers() -> None:
    found = account("advanced_composition", TERMS).outputs
    assert found["epsilon"] == pytest.approx(6.729401608311588, rel=1e-14)
    assert found["epsilon_kov"] == pytest.approx(6.177276177133911, rel=1e-14)
    assert found["epsilon_optimal"] < found["epsilon_kov"]
    assert found["epsilon_sum"] == pytest.approx(10.0)
    assert found["delta"] == pytest.approx(2e-7)


def test_a_delta_of_1_says_nothing() -> None:
    with pytest.raises(Refused, match="account advanced_composition: the deltas add up to"):
        account("advanced_composition", {**TERMS, "delta": 0.01})
