from __future__ import annotations

from p2pdp.experiments.figures import fig_000_2b
from p2pdp.experiments.figures.fig_001_1 import EXPERIMENT, losses
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, _ = quick(EXPERIMENT)
    assert line(made, "network DP below local DP").ours == "from n = 13 on"
    assert line(made, "mean loss by the recipe").verdict == "agrees"
    assert line(made, "theorem over recipe").verdict == "agrees"
    assert [table.name for table in made.tables] == ["", "theory"]


def test_its_walks_are_those_of_the_paper_before() -> None:
    whole = fig_000_2b.losses(10, 1, 0.4)
    assert losses(10, 1, 0.4) == {name: whole[name] for name in ("local", "recipe")}
