from __future__ import annotations

import pytest

from p2pdp.privacy.contract import account

TERMS = {"alpha": 32.0, "rdp": 0.5, "delta": 1e-6}


def test_known_answers_of_both_conversions_and_tight_by_default() -> None:
    simple = account("rdp_to_dp", {**TERMS, "conversion": "simple"})
    tight = account("rdp_to_dp", TERMS)
    assert simple.outputs["epsilon"] == pytest.approx(0.945661630902, abs=1e-12)
    assert tight.outputs["epsilon"] == pytest.approx(0.802115000249, abs=1.1e-11)
    assert tight == account("rdp_to_dp", {**TERMS, "conversion": "tight"})
    assert simple.bound
    assert simple.source != tight.source


def test_nothing_is_below_0() -> None:
    assert account("rdp_to_dp", {"alpha": 1e6, "rdp": 0.0, "delta": 0.999}).outputs["epsilon"] == 0.0
