from __future__ import annotations

from tests.support.small_figures import Run


def test_the_formula_falls_with_the_distance_and_the_truth_hardly() -> None:
    run = Run("004-fig4")
    for found in run.answers.values():
        assert found["correlation_printed"] < -0.8
        assert found["correlation_exact"] > -0.5
        assert found["exceeded"] > 0.1
        assert found["printed_mean"][-1] < 0.2 * found["exact_mean"][-1]
