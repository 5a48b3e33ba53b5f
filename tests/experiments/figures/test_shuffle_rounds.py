from __future__ import annotations

import numpy as np
import pytest

from tests.support.small_figures import Run


def test_the_sound_claim_sets_in_and_equation_7_is_no_bound() -> None:
    run = Run("003-fig4")
    for found in run.answers.values():
        sound, kappa = np.array(found["sound"]), np.array(found["kappa"])
        assert found["closed"]
        assert np.all(sound[kappa == 0.0] == 0.5)
        assert sound[-1] < 0.5
        assert np.all(np.diff(found["printed"]) <= 0.0)
        assert found["printed"][-1] >= found["at_rest"]
        assert any(a > b for a, b in zip(found["sum_p2_worst"], found["sum_p2_printed"], strict=False))
    assert {line.verdict for line in run.lines.values()} == {"cannot be known"}


def test_larger_degrees_mix_faster_and_both_claims_settle() -> None:
    run = Run("003-fig5")
    assert run.line("near its limit").verdict == "agrees"
    assert run.line("rises in some round").verdict == "agrees"
    limits = {found["at_rest"] for found in run.answers.values()}
    assert len(limits) == 1
    for found in run.answers.values():
        assert min(found["sound"].values()) < 0.5
        assert max(found["sound"].values()) <= 0.5
    assert run.answers["k-16"]["printed"][-1] == pytest.approx(limits.pop(), rel=1e-3)
