from __future__ import annotations

import pytest

from p2pdp.experiments.figures.fig_001_7 import EXPERIMENT
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(EXPERIMENT)
    assert line(made, "central, 2,000 nodes and 200").verdict in ("agrees", "differs", "cannot be known")
    noise = {n: answers[f"nodes-{n}"]["noise"]["central"] for n in (2000, 200)}
    assert noise[200] == pytest.approx(10 * noise[2000], rel=0.2)
