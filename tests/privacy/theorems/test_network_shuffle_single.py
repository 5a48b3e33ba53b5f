from __future__ import annotations

from typing import Any

import pytest

from p2pdp.privacy.contract import account

NAME = "network_shuffle_single"
ASKED: dict[str, Any] = {"epsilon0": 1.0, "n": 22_470, "sum_p2": 1 / 22_470, "delta": 5e-7}


def test_as_printed() -> None:
    found = account(NAME, {**ASKED, "delta2": 5e-7})
    assert not found.bound
    assert found.outputs["epsilon"] == pytest.approx(0.168333, abs=5.1e-7)
    assert found.outputs["delta"] == 5e-7


def test_rho_and_delta2_make_no_difference_to_pure_reports() -> None:
    """[LTT22, Theorem 5.6] prints what [LTT22, Theorem 5.5] does."""
    assert account(NAME, {**ASKED, "rho": 5.0}).outputs == account(NAME, {**ASKED, "delta2": 0.1}).outputs


def test_approximate_reports_count_eight_times() -> None:
    asked = {**ASKED, "epsilon0": 0.01, "delta2": 5e-7}
    found = account(NAME, {**asked, "delta0": 1e-20, "delta1": 1e-12}).outputs
    assert found["epsilon"] == pytest.approx(account(NAME, {**asked, "epsilon0": 0.08}).outputs["epsilon"])
    assert found["delta"] > 1e-6
