from __future__ import annotations

import pytest

from p2pdp.privacy.contract import account


def test_it_answers_with_both_ends() -> None:
    found = account("krr_shuffle", {"epsilon0": 1.0, "categories": 10, "n": 100, "delta": 1e-5})
    assert found.outputs["lower"] == pytest.approx(0.22997, abs=5.1e-6)
    assert found.outputs["upper"] == pytest.approx(0.23072, abs=5.1e-6)
    assert found.bound
