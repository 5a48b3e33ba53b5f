from __future__ import annotations

from tests.support.small_figures import Run


def test_the_other_graphs_are_shown() -> None:
    run = Run("004-fig5")
    assert {row[0] for row in run.rows()} == {107, 348}  # of the stand-ins
    assert len(run.lines) == 2
