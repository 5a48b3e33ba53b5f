from __future__ import annotations

from p2pdp.experiments.figures.fig_001_4 import EXPERIMENT
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(EXPERIMENT)
    assert line(made, "local, 11 columns (cardio) beside 57 (spambase)").verdict == "differs"
    assert answers["spambase"]["columns"] == 57
