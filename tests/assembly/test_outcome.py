from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from p2pdp.assembly.outcome import error_of, estimate_of, outcome, truth_of
from p2pdp.core.ids import CURATOR
from p2pdp.files.data import load_data
from tests.support.runs import quiet, ring
from tests.support.sources import TOP

SAMPLES = sorted((TOP / "deploy" / "samples").glob("*.toml"))


def test_without_the_curator_nothing_was_published() -> None:
    run = quiet(ring(3, 1))
    seen = outcome(run.plan, {peer: data for peer, data in run.evidence.views.items() if peer != CURATOR}, [])
    assert seen.published is None
    assert not seen.over


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample.stem))
def test_every_protocol_tells_what_came_of_it(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Protocols are found by their samples: one that has no way of its own to be told would end here."""
    monkeypatch.chdir(sample.parent)
    run = quiet(sample.read_text())
    seen = outcome(run.plan, run.evidence.views, run.world.out)
    assert seen.over
    assert seen.contributions > 0
    rows = load_data(run.evidence.spec, run.plan.n).user
    estimate, truth = estimate_of(run.plan, seen), truth_of(run.plan, seen, rows)
    error = error_of(run.plan, seen, estimate.value, truth)
    assert truth is not None
    assert error is not None
    assert np.all(np.isfinite(np.asarray(error)))
    if estimate.value is not None:
        assert np.shape(error) == np.shape(estimate.value) == np.shape(truth)
