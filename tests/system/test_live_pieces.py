"""Values of more than one piece between real processes, one of which is killed in the midst of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from p2pdp.auditor.verify import COMPLETE
from p2pdp.peer.pieces import PIECE_BYTES
from p2pdp.runs.audit import verify
from tests.support.launched import Launched

NUMBERS = 150_000
AMID = 7  # frames: a value has three
SPEC = """[run]
protocol = "gossip.average"
nodes = 4
patience_s = 6
audit = false
[graph]
kind = "complete"
[gossip]
rounds = 5
[noise]
mechanism = "gaussian"
sigma = 0.5
sampler = "fast"
[data]
kind = "npy"
path = "values.npy"
clip = [-1.0, 1.0]
"""


def test_a_process_is_killed_amid_the_pieces_of_values(tmp_path: Path) -> None:
    values = np.random.default_rng(5).uniform(-1.0, 1.0, (4, NUMBERS))
    np.save(tmp_path / "values.npy", values)
    assert 8 * NUMBERS > PIECE_BYTES
    with Launched(tmp_path, SPEC, (1, AMID)) as run:
        os.kill(run.stands(), signal.SIGKILL)
        result = run.completes()
    assert result["missing"] == []
    outputs = np.array([output["value"] for output in result["outputs"]])
    noised = outputs.mean(axis=0) - values.mean(axis=0)
    assert np.abs(outputs - outputs.mean(axis=0)).max() < 1e-6  # one exchange on a complete graph averages all
    assert noised.std() == pytest.approx(0.25, rel=0.02)
    found = verify(run.folder)
    assert (found.verified, found.problems) == (COMPLETE, [])
