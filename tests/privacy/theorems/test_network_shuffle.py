from __future__ import annotations

import pytest

from p2pdp.privacy.contract import account

ASKED = {"epsilon0": 1.0, "n": 22_470, "delta": 1e-6}


@pytest.mark.parametrize(("kappa", "known"), [(1.0, 0.034), (0.82, 0.038)])
def test_it_is_the_clones_of_overlapping_walks(kappa: float, known: float) -> None:
    found = account("network_shuffle", {**ASKED, "kappa": kappa})
    assert found.bound
    assert found.outputs["upper"] == pytest.approx(known, abs=5e-4)
    assert found.outputs["lower"] == pytest.approx(found.outputs["upper"], rel=1e-6)


def test_with_full_overlap_it_is_uniform_shuffling() -> None:
    assert account("network_shuffle", {**ASKED, "kappa": 1.0}).outputs == account("clones", ASKED).outputs


def test_without_overlap_nothing_is_amplified() -> None:
    assert account("network_shuffle", {**ASKED, "kappa": 0.0}).outputs["upper"] == pytest.approx(1.0, abs=2e-6)


def test_randomized_response_has_a_blanket_of_its_own() -> None:
    asked = {**ASKED, "kappa": 0.82}
    found = account("network_shuffle", {**asked, "categories": 4}).outputs
    assert found["upper"] < account("network_shuffle", asked).outputs["lower"]
    perfect = account("krr_shuffle", {**ASKED, "categories": 4}).outputs
    assert found["lower"] == perfect["lower"]
    assert found["upper"] > perfect["upper"]
