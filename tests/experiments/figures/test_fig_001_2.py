from __future__ import annotations

from p2pdp.experiments.figures.fig_001_2 import EXPERIMENT
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(EXPERIMENT)
    assert "ε = 1" in {row[0] for row in made.tables[0].rows}
    assert line(made, "walk.sgd").verdict == "cannot be known"
    noise = {key: answers[f"epsilon-{key}"]["noise"]["local"] for key in (1, 10)}
    assert noise[1] > noise[10]
