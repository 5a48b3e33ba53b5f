from __future__ import annotations

from typing import Any

from p2pdp.experiments import descent_figures
from p2pdp.experiments.contract import Picture
from p2pdp.experiments.descent_figures import ALL
from p2pdp.experiments.sheet import rendered


def _answer(height: float) -> dict[str, Any]:
    curve = {
        "accuracy": [0.5, height], "accuracy_deviation": [0.0, 0.01], "loss": [0.69, 1.0 - height],
        "loss_deviation": [0.0, 0.02],
    }  # fmt: skip
    noise = {"local": 5.0, "central": 1.0, "ours": 0.5}
    return {"steps": [0, 100], "trials": 5, "noise": noise, **dict.fromkeys(ALL, curve)}


ANSWERS = {"a": _answer(0.8), "b": _answer(0.9)}


def _looks(picture: Picture) -> bool:
    return rendered(picture)["png"].startswith(b"\x89PNG")


def test_curves_and_noise_as_tables() -> None:
    found = descent_figures.curves_table(ANSWERS, "case", {"a": "first", "b": "second"})
    assert len(found.rows) == 2 * len(ALL) * 2
    assert found.rows[1] == ("first", "central", 100, 0.8, 0.01, 1.0 - 0.8, 0.02)
    noise = descent_figures.noise_table(ANSWERS, "case", {"a": "first"})
    assert noise.rows == [("first", "local", 5.0), ("first", "central", 1.0), ("first", "ours", 0.5)]


def test_final_points_leave_out_what_has_no_noise_level() -> None:
    found = descent_figures.final_table(ANSWERS, "n", {"a": 1, "b": 2})
    assert [row[:3] for row in found.rows if row[1] == "local"] == [(1, "local", 0.8), (2, "local", 0.9)]
    assert "network" not in {row[1] for row in found.rows}
    assert descent_figures.final(ANSWERS, "b", "ours") == 0.9
    assert descent_figures.listed(ANSWERS, ["a", "b"], "ours") == "0.800, 0.900"


def test_pictures_of_one_and_of_several() -> None:
    for keys in ({"a": "first"}, {"a": "first", "b": "second"}):
        assert _looks(descent_figures.curves_picture(ANSWERS, keys, "title"))


def test_a_quotation_names_its_section() -> None:
    line = descent_figures.says("a", "b", "words", "6.2", true=True, why="c")
    assert (line.paper, line.verdict) == ('"words" (section 6.2)', "agrees")


def test_differences_are_known_beyond_two_standard_errors() -> None:
    """Deviations of 0.01 in five trials: two standard errors of a difference are 0.0141."""
    quoted = ("words", "6")

    def points(height: float) -> tuple[dict[str, Any], tuple[tuple[str, str, int], tuple[str, str, int]]]:
        return {"a": _answer(height), "b": _answer(0.8)}, (("a", "local", -1), ("b", "local", -1))

    verdicts = {height: descent_figures.above(*_about(points(height), quoted)).verdict for height in (0.82, 0.81, 0.78)}
    assert verdicts == {0.82: "agrees", 0.81: "cannot be known", 0.78: "differs"}
    assert descent_figures.above(*_about(points(0.82), quoted), 0.05).verdict == "differs"
    verdicts = {
        height: descent_figures.near(*_about(points(height), quoted), 0.02).verdict for height in (0.803, 0.81, 0.85)
    }
    assert verdicts == {0.803: "agrees", 0.81: "cannot be known", 0.85: "differs"}
    line = descent_figures.above(*_about(points(0.82), quoted))
    assert (line.ours, line.paper) == ("accuracy 0.820 and 0.800", '"words" (section 6)')
    assert "apart by 0.020" in line.why


def _about(made: tuple[dict[str, Any], Any], quoted: tuple[str, str]) -> tuple[Any, str, tuple[str, str], Any]:
    answers, points = made
    return answers, "what", quoted, points
