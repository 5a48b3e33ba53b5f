from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from p2pdp.assembly.outcome import (
    ENVELOPE_BYTES,
    Outcome,
    difference,
    error_of,
    estimate_of,
    numbers_frame,
    numbers_in,
    truth_of,
)
from p2pdp.core.ids import CURATOR
from p2pdp.files.data import load_data
from p2pdp.wire.padding import frame_size
from tests.support.outcomes import outcome
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


def test_contributions_are_counted_over_all_users_and_their_values() -> None:
    assert Outcome(counted={0: {0: 2, 1: 1}, 3: {0: 4}}).contributions == 7
    assert Outcome().contributions == 0


def test_differences_of_numbers_and_lists() -> None:
    assert difference(3.0, 1.0) == 2.0
    assert difference([3.0, 1.0], [1.0, 1.0]) == [2.0, 0.0]
    assert difference(None, 1.0) is None
    assert difference(1.0, None) is None


def test_a_frame_grows_with_its_numbers() -> None:
    assert numbers_frame(0) == frame_size(ENVELOPE_BYTES)
    assert numbers_frame(1000) >= 9000
    assert (numbers_in(SimpleNamespace(shape=())), numbers_in(SimpleNamespace(shape=(7,)))) == (1, 7)
