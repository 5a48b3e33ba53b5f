from __future__ import annotations

import sys

import numpy as np
import pytest

from p2pdp.core.errors import NotReady
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.correlated import (
    CORRELATED,
    CURATOR,
    FLORENTINE,
    HOUSES,
    NOTHING,
    Size,
    digits,
    encoded,
    florentine,
    houses,
    learned,
)
from p2pdp.experiments.factorized import sensitivity

SIZE = Size(times=2, period=3, trials=2, mus=(1e9,), rates=(0.1, 0.5))


def test_without_noise_to_speak_of_every_correlation_learns_the_same() -> None:
    told = [learned(Setting(quick=True), HOUSES, FLORENTINE, method, SIZE)["found"][0] for method in CORRELATED]
    assert [one["mean"] for one in told] == pytest.approx([told[0]["mean"]] * 3, rel=1e-4)
    curator, free = (
        learned(Setting(quick=True), HOUSES, FLORENTINE, one, SIZE)["found"][0] for one in (CURATOR, NOTHING)
    )
    assert curator["mean"] == pytest.approx(free["mean"], rel=1e-4)
    assert free["mu"] == "inf"


def test_encoders_are_of_sensitivity_one_but_for_independent_noise() -> None:
    assert florentine().n == 15
    found = [sensitivity(encoded(florentine(), method, SIZE), SIZE.period) for method in CORRELATED]
    assert found == pytest.approx([np.sqrt(2.0), 1.0, 1.0])


def test_columns_of_houses_are_standardized() -> None:
    features, targets = houses(Setting(quick=True))
    assert features.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    assert features.std(axis=0) == pytest.approx(1.0)
    assert features.shape == (len(targets), 8)


def test_digits_without_scikit_learn_name_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(NotReady, match="scikit-learn"):
        digits(Setting(quick=True))
