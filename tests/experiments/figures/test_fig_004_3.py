from __future__ import annotations

import math

import pytest

from tests.support.small_figures import Run


def test_hypercubes_of_all_sizes_leak_alike() -> None:
    run = Run("004-fig3")
    for m, _, distance, _, exact in run.rows():
        assert exact == pytest.approx(1.0 if distance == m else m / math.comb(m, distance), abs=1e-9)
    assert run.line("opposite").ours == pytest.approx(1.0)
