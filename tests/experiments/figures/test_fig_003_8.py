from __future__ import annotations

import pytest

from tests.support.small_figures import Run


def test_users_matter_most_and_what_is_proved_is_less() -> None:
    run = Run("003-fig8")
    assert {line.verdict for line in run.lines.values()} == {"agrees"}
    few, many = run.answers["n-10000"], run.answers["n-1000000"]
    assert few["single-10"][0] / few["single-1"][0] == pytest.approx(10**0.5, rel=0.01)
    assert few["all-1"][0] / many["all-1"][0] == pytest.approx(10.0, rel=0.03)
