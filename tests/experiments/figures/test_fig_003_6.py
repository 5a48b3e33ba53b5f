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
