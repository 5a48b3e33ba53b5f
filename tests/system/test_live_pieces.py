"""Values of more than one piece between real processes, one of which is killed in the midst of them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from p2pdp.auditor.verify import COMPLETE
from p2pdp.files.folder import WIRE_FILE
from p2pdp.node.disk import PIECES
from p2pdp.peer.pieces import PIECE_BYTES
from p2pdp.runs.audit import verify
from tests.support.launched import Launched

NUMBERS = 300_000
WHO = 1
AMID = 3  # pieces: a value has as many, and its message is behind them
SPEC = """[run]
protocol = "gossip.average"
nodes = 4
patience_s = 6
audit = false
[graph]
kind = "complete"
[gossip]
rounds = 3
[noise]
mechanism = "gaussian"
sigma = 0.5
sampler = "fast"
[data]
kind = "npy"
path = "values.npy"
clip = [-1.0, 1.0]
"""

Places = set[tuple[int, int, int]]


def came_in(trace: Path, after: int) -> Places:
    """Sender, message and place of each piece that came after so many bytes of a trace."""
    told = [json.loads(line) for line in trace.read_bytes()[after:].splitlines()]
    came = [(said["from"], said["control"]["piece"]) for said in told if "piece" in said["control"]["flags"]]
    return {(sender, number, at) for sender, (number, at, of, _) in came if at < of}


def kept_in(folder: Path) -> Places:
    """The same of those that are kept beside a ledger."""
    found = set()
    for path in folder.glob(f"*{PIECES}"):
        assert path.stat().st_mode & 0o777 == 0o600
        number = int.from_bytes(path.read_bytes()[:4], "big")
        found |= {(int(path.stem), number, at) for at in range(0, path.stat().st_size - PIECE_BYTES // 8, PIECE_BYTES)}
    return found


def test_who_is_killed_amid_the_pieces_of_values_gets_none_again_that_it_had(tmp_path: Path) -> None:
    values = np.random.default_rng(5).uniform(-1.0, 1.0, (4, NUMBERS))
    np.save(tmp_path / "values.npy", values)
    assert AMID == -(-8 * NUMBERS // PIECE_BYTES)
    with Launched(tmp_path, SPEC, (WHO,), amid=[str(tmp_path), WHO, AMID], trace_wire=True) as run:
        who = run.stands()
        folder = run.ledger(WHO).parent
        kept, trace = kept_in(folder), folder / WIRE_FILE
        before = trace.stat().st_size
        os.kill(who, signal.SIGKILL)
        result = run.completes()
    assert len(kept) == AMID
    assert kept & came_in(trace, 0) == kept
    assert kept & came_in(trace, before) == set()
    assert list(run.folder.rglob(f"*{PIECES}")) == []
    assert result["missing"] == []
    outputs = np.array([output["value"] for output in result["outputs"]])
    noised = outputs.mean(axis=0) - values.mean(axis=0)
    assert np.abs(outputs - outputs.mean(axis=0)).max() < 1e-6  # one exchange on a complete graph averages all
    assert noised.std() == pytest.approx(0.25, rel=0.02)
    found = verify(run.folder)
    assert (found.verified, found.problems) == (COMPLETE, [])
