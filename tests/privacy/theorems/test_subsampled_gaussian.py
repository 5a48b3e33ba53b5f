from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.privacy.contract import account


def epsilon(**inputs: float | str) -> float:
    found = account("subsampled_gaussian", {"q": 0.01, "sigma": 1.0, "steps": 1000, "delta": 1e-5, **inputs})
    assert found.bound
    return found.outputs["epsilon"]


def test_the_known_answer() -> None:
    assert epsilon() == pytest.approx(1.828244, abs=1e-5)


def test_of_all_rows_it_is_the_gaussian_curve() -> None:
    whole = account("gaussian", {"sigma": 2.0 / 10.0**0.5, "delta": 1e-5}).outputs["epsilon"]
    assert epsilon(q=1.0, sigma=2.0, steps=10) == pytest.approx(whole, rel=1e-9)
    assert epsilon(q=1.0, sigma=4.0, steps=10, relation="replace") == pytest.approx(whole, rel=1e-9)


def test_noise_that_is_next_to_none_is_refused() -> None:
    with pytest.raises(UsageError, match="sigma"):
        epsilon(sigma=0.01)
