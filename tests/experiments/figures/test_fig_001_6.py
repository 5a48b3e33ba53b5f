from __future__ import annotations

from p2pdp.experiments.figures.fig_001_6 import EXPERIMENT
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(EXPERIMENT)
    assert line(made, "central, over the lengths").verdict in ("agrees", "differs")
    assert answers["steps-20000"]["steps"][-1] == 10 * answers["steps-2000"]["steps"][-1]
