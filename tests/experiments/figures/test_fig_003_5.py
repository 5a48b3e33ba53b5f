from __future__ import annotations

import pytest

from tests.support.small_figures import Run


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
