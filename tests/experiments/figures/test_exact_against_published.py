from __future__ import annotations

import pytest

from tests.support.small_figures import Run


def test_known_breaks_of_equation_6_and_shuffling_enclosed() -> None:
    run = Run("ours-exact-against-published")
    path, ring = run.line("path a-b-c"), run.line("ring of 16")
    assert (path.ours, path.paper) == pytest.approx((1.0, 1.0 / 3.0))
    assert (ring.ours, ring.paper) == pytest.approx((1.0, 3.2e-6), rel=0.03)
    assert path.verdict == ring.verdict == "differs"
    for _, lower, upper, clones, printed, corrected, single in run.rows("shuffle"):
        assert lower <= upper <= clones < single < printed < corrected
