from __future__ import annotations

from tests.support.small_figures import Run


def test_single_amplifies_more_as_printed() -> None:
    run = Run("003-fig7")
    for found in run.answers.values():
        assert found["single"][-1] < found["all"][-1]
        assert found["sound"][-1] < found["single"][-1]
    assert len(run.rows()) == 20
