from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2pdp.experiments.contract import Setting
from p2pdp.experiments.descents import METHODS, OURS, learned
from p2pdp.experiments.figures.fig_001_3 import CASE, EXPERIMENT, PRINTED
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    """Noise levels and accounts are those of the full form; the curves are a stand-in's."""
    made, _ = quick(EXPERIMENT)
    for method, printed in PRINTED.items():
        found = line(made, f"noise level, {method.replace('_', ', ')}")
        assert (found.paper, found.verdict) == (printed, "agrees")
    assert line(made, "epsilon at the published network noise").ours == "3.08 (soundly)"
    assert line(made, "local ceiling").ours == pytest.approx(22.71, abs=0.01)
    assert line(made, "noise level of walk.sgd").verdict == "cannot be known"


def test_accuracies_on_houses(data_dir: Path) -> None:
    """The authors' curves end at 0.956 to 0.959, and 0.880 for local (`houses/result/accuracy.pdf` of their code)."""
    found = learned(Setting(data=data_dir), replace(CASE, trials=4, points=4))
    last = {method: found[method]["accuracy"][-1] for method in (*METHODS, OURS)}
    assert last["central"] == pytest.approx(0.958, abs=0.006)
    assert last["network"] == pytest.approx(0.958, abs=0.006)
    assert last[OURS] == pytest.approx(0.960, abs=0.006)
    assert 0.75 < last["local"] < 0.94
