from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from p2pdp.experiments.contract import Setting
from p2pdp.experiments.figures import experiments
from p2pdp.mechanisms.reporting.privunit import UnitReports
from tests.support.small_figures import Run


def test_errors_are_those_of_the_randomizer() -> None:
    run = Run("003-fig9")
    n = run.answers["dummies"]["n"]
    expected = 1.0 / UnitReports(200, 2.0).split.length ** 2 / n
    assert np.mean(run.answers["eps-2"]["all"]) == pytest.approx(expected, rel=0.5)
    assert all(np.mean(found["single"]) > np.mean(found["all"]) for key, found in run.answers.items() if "eps" in key)


def test_the_papers_dummies_are_users_with_less_than_a_report_in_the_mean(data_dir: Path) -> None:
    piece = experiments()["003-fig9"].pieces(Setting(quick=True, data=data_dir))[0]
    assert piece.key == "dummies"
    found = piece.work()
    assert found["below_one"] == 7080
    assert found["empty"] == pytest.approx(5456.34, abs=0.01)
