from __future__ import annotations

import numpy as np

from tests.support.small_figures import Run


def test_noise_on_messages_tells_less_and_costs_more() -> None:
    run = Run("ours-break-and-repair")
    for kind, found in run.answers.items():
        assert np.all(np.diff(found["far"]) < 0.0)
        assert np.all(np.diff(found["error"]) > 0.0)
        assert run.line(f"{kind}: measured").verdict == "agrees"
        assert run.line(f"{kind}: share of pairs").verdict == "differs"
