from __future__ import annotations

from p2pdp.experiments.figures.fig_001_5 import EXPERIMENT
from tests.support.quick_figures import quick


def test_the_quick_form() -> None:
    made, answers = quick(EXPERIMENT)
    noise = [answers[f"updates-{updates}"]["noise"]["local"] for updates in (1, 10, 50)]
    assert noise == sorted(noise)
    assert {row[0] for row in made.tables[0].rows} == {1, 10, 50}
