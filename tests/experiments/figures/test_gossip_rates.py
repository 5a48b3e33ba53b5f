from __future__ import annotations

import pytest

from tests.support.small_figures import Run


def test_rates_are_the_papers_but_for_three() -> None:
    run = Run("004-table1")
    assert run.line("trusted aggregator").verdict == "differs"
    assert run.line("ring: power of n, Algorithm 2").verdict == "differs"
    assert run.line("ring: power of n, Algorithm 2").ours == pytest.approx(0.0, abs=0.01)
    assert run.line("ring: power of n, Algorithm 1 by").verdict == "agrees"
    assert run.line("complete: power of n, Algorithm 2").ours == pytest.approx(-2.0, abs=0.05)
    for _, _, printed, _, exact in run.rows():
        assert exact > 0.0
        assert printed > 0.0
