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
