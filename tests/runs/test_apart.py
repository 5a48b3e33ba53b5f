from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import p2pdp
from tests.support.launched import wait_for
from tests.support.small import contents
from tests.support.sources import TOP
from tests.support.standing import standing, stopped

SECTIONS: dict[str, Any] = {
    "run": {"protocol": "walk.sum", "nodes": 4},
    "graph": {"kind": "ring"},
    "walk": {"order": "ring", "laps": 2},
    "noise": {"mechanism": "gaussian", "sigma": 2.0},
    "data": {"kind": "uniform", "clip": [0, 5000]},
}
LAPS = 300
STANDING = "import sys; from tests.support.launch import module; module(*sys.argv[1:])"
ODD = [4711.25, 4712.25, 4713.25, 4714.25]


async def test_a_run_is_made_in_a_process_of_its_own(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    place = tmp_path / "run"
    result = await p2pdp.run_async(SECTIONS, place, data=ODD, on_event=told.append)
    assert result.truth == 2 * sum(ODD)
    assert (result.nodes, result.seeded, result.folder) == (4, False, str(place))
    assert {"folder", "roster", "published"} <= {event["event"] for event in told}
    assert (await p2pdp.verify_async(place)).verified == "complete"
    assert await p2pdp.resume_async(place, data=ODD) == result
    assert await p2pdp.resume_async(place) == result  # a finished run asks for nothing
    for name, content in contents(place).items():
        if b"4711.25" in content or np.float64(ODD[0]).tobytes() in content:
            assert (place / name).stat().st_mode & 0o777 == 0o600


async def test_a_graph_goes_there_too(tmp_path: Path) -> None:
    spec = {**SECTIONS, "run": {"protocol": "walk.sum"}, "walk": {"order": "random", "hops": 12}}
    result = await p2pdp.run_async(spec, tmp_path / "run", data=np.ones(12), graph=nx.star_graph(5))
    assert (result.nodes, result.truth) == (6, 12.0)


async def test_errors_there_are_errors_here(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").touch()
    with pytest.raises(p2pdp.UsageError, match="not empty"):
        await p2pdp.run_async(SECTIONS, tmp_path / "run")
    with pytest.raises(p2pdp.UsageError, match="seed"):
        await p2pdp.run_async(p2pdp.spec(SECTIONS, **{"run.seed": 3}), tmp_path / "out", data=ODD)


async def test_a_cancelled_run_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of its processes stands still until then."""
    place, program, me = tmp_path / "run", tmp_path / "python", 2
    wishes = json.dumps({"stands": [str(tmp_path), me, 50]})
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{STANDING}' '{wishes}' \"$2\"\n")
    program.chmod(0o755)
    spec = p2pdp.spec(SECTIONS, **{"walk.laps": LAPS})
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(program))
        patch.setenv("PYTHONPATH", str(TOP))
        going = asyncio.create_task(p2pdp.run_async(spec, place))
        told = standing(tmp_path, me, 0)
        await asyncio.to_thread(wait_for, lambda: going.done() or stopped(told), "one of them stands still")
    going.cancel()
    os.kill(int(told.read_text()), signal.SIGCONT)
    with pytest.raises(asyncio.CancelledError):
        await going
    assert not (place / "result.json").exists()
    assert (await p2pdp.resume_async(place)).hops == 4 * LAPS


async def test_a_thread_may_not_run(tmp_path: Path) -> None:
    with pytest.raises(p2pdp.UsageError, match="run_async"):
        await asyncio.to_thread(p2pdp.run, SECTIONS, tmp_path / "run")
    assert not (tmp_path / "run").exists()
