from __future__ import annotations

import numpy as np

from tests.support.small_figures import Run


def test_each_graph_has_its_places_and_shades() -> None:
    run = Run("004-fig2")
    for found in run.answers.values():
        assert np.shape(found["places"]) == (128, 2)
        assert len(np.unique(found["places"], axis=0)) == 128
        assert found["exact"][found["observer"]] == 1.0
        near = [leak for leak, away in zip(found["exact"], found["distance"], strict=True) if away == 1]
        np.testing.assert_allclose(near, 1.0, atol=1e-9)
    grid = np.array(run.answers["grid"]["places"])
    assert grid.max(axis=0).tolist() == [15.0, 7.0]


def test_the_formula_falls_with_the_distance_and_the_truth_hardly() -> None:
    run = Run("004-fig4")
    for found in run.answers.values():
        assert found["correlation_printed"] < -0.8
        assert found["correlation_exact"] > -0.5
        assert found["exceeded"] > 0.1
        assert found["printed_mean"][-1] < 0.2 * found["exact_mean"][-1]
