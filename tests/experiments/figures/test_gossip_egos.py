from __future__ import annotations

from tests.support.small_figures import Run


def test_all_other_users_are_observers() -> None:
    run = Run("004-fig1b")
    rows = run.rows()
    assert {row[0] for row in rows} == {0}
    assert all(row[4] == 1.0 for row in rows if row[2] == 1)
    assert run.line("ego 0").verdict == "cannot be known"


def test_the_other_graphs_are_shown() -> None:
    run = Run("004-fig5")
    assert {row[0] for row in run.rows()} == {107, 348}  # of the stand-ins
    assert len(run.lines) == 2
