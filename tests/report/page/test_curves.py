from __future__ import annotations

from p2pdp.report.page.curves import learning_chart, learning_curves
from p2pdp.report.page.facts import LearningCurves
from tests.support.made import read

LINES = {
    "run": {"loss": (0.7, 0.6, None), "score": (0.5, 0.6, 0.7)},
    "none": {"loss": (0.7, 0.4, 0.3), "score": (0.5, 0.8, 0.9)},
}
CURVES = LearningCurves(40, "gradients of each user", (0, 5, 10), "accuracy", LINES)


def test_loss_and_score_have_a_chart_each_and_a_table() -> None:
    page = read("".join(learning_curves(CURVES)))
    charts = [given for name, given in page.elements if name == "svg" and given.get("role") == "img"]
    assert [chart["aria-label"] for chart in charts] == [
        "loss over gradients of each user", "accuracy over gradients of each user",
    ]  # fmt: skip
    assert ["10", "unknown", "0.3", "0.7", "0.9"] in page.rows
    assert "style" not in "".join(learning_curves(CURVES)).split("<svg")[1].split(">")[0]


def test_what_cannot_be_drawn_is_left_out() -> None:
    assert not learning_chart("loss", "steps", (0,), {"run": (0.7,)})
    assert not learning_chart("loss", "steps", (0, 1), {"run": (None, 1e301)})
    assert learning_chart("r2", "steps", (0, 1), {"run": (-2.0, 0.5)})
    assert learning_curves(LearningCurves(4, "steps", (0, 1), None, {})) == []
    alone = LearningCurves(4, "steps", (0, 1), None, {"run": {"loss": (None, None), "score": (None, None)}})
    assert "No curve" in read("".join(learning_curves(alone))).said
