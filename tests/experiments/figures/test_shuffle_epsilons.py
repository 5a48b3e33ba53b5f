from __future__ import annotations

import pytest

from tests.support.small_figures import Run


def test_google_is_drawn_from_what_table_4_prints() -> None:
    run = Run("003-fig6")
    google = run.answers["google"]
    assert google["n"] == 855_802
    assert google["sum_p2"] * google["n"] == pytest.approx(20.642)
    for found in run.answers.values():
        assert all(sound <= 0.1 * (at + 1) for at, sound in enumerate(found["sound"]))
        assert all(sound < printed for sound, printed in zip(found["sound"], found["printed"], strict=True))


def test_single_amplifies_more_as_printed() -> None:
    run = Run("003-fig7")
    for found in run.answers.values():
        assert found["single"][-1] < found["all"][-1]
        assert found["sound"][-1] < found["single"][-1]
    assert len(run.rows()) == 20


def test_users_matter_most_and_what_is_proved_is_less() -> None:
    run = Run("003-fig8")
    assert {line.verdict for line in run.lines.values()} == {"agrees"}
    few, many = run.answers["n-10000"], run.answers["n-1000000"]
    assert few["single-10"][0] / few["single-1"][0] == pytest.approx(10**0.5, rel=0.01)
    assert few["all-1"][0] / many["all-1"][0] == pytest.approx(10.0, rel=0.03)
