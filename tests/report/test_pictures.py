from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from p2pdp.core.claims import Claim, Conditioning, Observer
from p2pdp.report.pictures import draw_bars, draw_claims, draw_estimate, draw_learning, draw_pairs, draw_sweep


def claim(observer: Observer, epsilon: float | None, *, bound: bool = True) -> Claim:
    given = Conditioning.PUBLIC
    return Claim(observer, "user", "replace", 1e-6, "exact", given, epsilon, None, None, None, None, bound, None, ())


def test_bars_are_as_long_as_their_numbers_and_infinite_ones_longer() -> None:
    axes = Figure().subplots()
    draw_bars(axes, ["a", "b", "c"], [1.0, 2.0, math.inf], "size")
    widths = [bar.get_width() for bar in axes.patches]
    assert widths[:2] == [1.0, 2.0]
    assert widths[2] > 2.0
    assert [text.get_text().strip() for text in axes.texts] == ["1", "2", "infinite"]
    draw_bars(Figure().subplots(), ["a"], [0.0], "size")


def test_claims_are_drawn_by_their_smallest_bound() -> None:
    axes = Figure().subplots()
    node, public = Observer.NODE, Observer.PUBLIC
    claims = [
        claim(node, 3.0),
        claim(node, 2.0),
        claim(public, 9.0, bound=False),
        claim(public, None),
        claim(public, 4.0),
    ]
    draw_claims(axes, claims, "title")
    assert [bar.get_width() for bar in axes.patches] == [2.0, 4.0]


def test_infinite_pairs_are_not_taken_for_absent_ones() -> None:
    axes = Figure().subplots()
    epsilon = np.array([[np.nan, 1.0], [np.inf, np.nan]])
    draw_pairs(axes, epsilon, "pairs")
    shades, red = (image.get_array() for image in axes.images)
    assert shades is not None
    assert red is not None
    assert np.ma.getmaskarray(shades).tolist() == [[True, False], [True, True]]
    assert np.ma.getmaskarray(red).tolist() == [[True, True], [False, True]]
    assert "infinite" in axes.get_title()
    draw_pairs(Figure().subplots(), np.full((2, 2), np.inf), "pairs")


@pytest.mark.parametrize(("estimate", "error"), [(3.0, 1.0), ([1.0, 2.0], [0.5, 0.25]), ([1.0, 2.0], None)])
def test_an_estimate_is_drawn_with_its_error(estimate: object, error: object) -> None:
    axes = Figure().subplots()
    draw_estimate(axes, estimate, error, "title")
    assert len(axes.containers) == 1


def test_a_sweep_has_a_line_for_each_value_of_the_second_key() -> None:
    empty = {"standard_error": None, "epsilon": None, "worst_epsilon": None, "observer": None, "code": 0}
    rows = [
        {**empty, "noise.sigma": sigma, "walk.laps": laps, "seed": seed, "error": sigma * laps}
        for sigma in (1.0, 2.0) for laps in (1, 2) for seed in (0, 1)
    ]  # fmt: skip
    axes = Figure().subplots()
    draw_sweep(axes, ["noise.sigma", "walk.laps"], rows, "title")
    drawn = {str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in axes.lines}
    assert drawn == {"1": [1.0, 2.0], "2": [2.0, 4.0]}


def test_learning_curves_over_trials_have_bands() -> None:
    over = {"trials": 4, "score": {"mean": [0.5, 0.8], "standard_error": [0.0, 0.1]}}
    lines = {"run": {"score": [0.5, 0.9], "over_trials": over}, "none": {"score": [0.5, 0.95]}}
    axes = Figure().subplots()
    draw_learning(axes, {"at": [0, 3], "rows": 40, "step": "steps", "score_name": "accuracy", "of": lines}, "title")
    assert [line.get_label() for line in axes.get_lines()] == ["this run", "no privacy"]
    assert axes.get_lines()[0].get_ydata().tolist() == [0.5, 0.8]  # type: ignore[union-attr]
    assert len(axes.collections) == 1
    assert "accuracy" in axes.get_ylabel()
