from __future__ import annotations

from p2pdp.privacy.contract import account
from p2pdp.privacy.shuffle.krr import clones


def test_it_answers_with_both_ends() -> None:
    found = account("clones", {"epsilon0": 4.0, "n": 100_000, "delta": 1e-6})
    assert (found.outputs["lower"], found.outputs["upper"]) == clones(4.0, 100_000, 1e-6)
    assert 0.167458 <= found.outputs["lower"] <= found.outputs["upper"] <= 0.172434
    assert found.bound
