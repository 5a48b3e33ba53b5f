from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.errors import Refused, UsageError
from p2pdp.privacy.contract import account

NAME = "network_shuffle_all"
ASKED: dict[str, Any] = {"epsilon0": 0.5, "n": 10_000, "sum_p2": 1e-4, "delta": 5e-7, "delta2": 5e-7}
APPROXIMATE = {"delta0": 1e-20, "delta1": 1e-12}


def test_as_printed() -> None:
    found = account(NAME, ASKED)
    assert not found.bound
    assert found.outputs["epsilon"] == pytest.approx(0.460404, abs=5.1e-7)
    assert found.outputs["epsilon_corrected"] == pytest.approx(0.500398, abs=5.1e-7)
    assert found.outputs["delta"] == pytest.approx(1e-6)


def test_theorem_5_4_has_rho() -> None:
    by_rho = account(NAME, {**ASKED, "rho": 2.0}).outputs["epsilon"]
    assert by_rho == pytest.approx(account(NAME, {**ASKED, "sum_p2": 4e-4}).outputs["epsilon"])


def test_approximate_reports_count_eight_times() -> None:
    asked = {**ASKED, "epsilon0": 0.01}
    found = account(NAME, {**asked, **APPROXIMATE}).outputs
    assert found["epsilon"] == pytest.approx(account(NAME, {**asked, "epsilon0": 0.08}).outputs["epsilon"])
    assert found["delta"] == pytest.approx(1e-6 + 10_000 * (2.71828182846 ** found["epsilon"] + 1.0) * 1e-12)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Refused, match="delta0"):
        account(NAME, {**ASKED, "delta0": 1e-6, "delta1": 1e-12})
    with pytest.raises(UsageError, match="delta1"):
        account(NAME, {**ASKED, "delta0": 1e-20})
    with pytest.raises(UsageError, match="sum_p2"):
        account(NAME, {**ASKED, "sum_p2": 5e-5})
