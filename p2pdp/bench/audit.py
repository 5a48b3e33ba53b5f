"""`bench audit`: the time and memory that the exact leaks of all pairs of a gossip run take.

A fresh interpreter simulates a run, which is not counted; another one runs the whole command `p2pdp audit` and is
measured, with its start and imports. The peak is the resident memory that the system counts for a process from its
fork on, so a caller that is itself large shows in it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final

from p2pdp.bench.harness import require, require_one_of, spec_text
from p2pdp.core.errors import NotReady, RunFailed

GRAPHS: Final = ("hypercube", "ring", "complete", "erdos_renyi")
_MAXRSS_BYTES: Final = 1 if sys.platform == "darwin" else 1024


def bench_audit(nodes: int = 256, rounds: int = 16, graph: str = "hypercube") -> dict[str, Any]:
    require(nodes >= 2, f"--nodes {nodes}", "at least 2")
    require(rounds >= 1, f"--rounds {rounds}", "at least 1")
    require_one_of("--graph", graph, GRAPHS)
    require(graph != "hypercube" or nodes & (nodes - 1) == 0, f"--nodes {nodes}", "a power of two in a hypercube")
    text = spec_text("gossip", run={"nodes": nodes}, graph={"kind": graph}, gossip={"rounds": rounds})
    measured = measure_audit(text)
    return {"nodes": nodes, "pairs": nodes * (nodes - 1), **measured, "graph": graph, "rounds": rounds}


def measure_audit(text: str) -> dict[str, Any]:
    with TemporaryDirectory(prefix="p2pdp-bench-") as name:
        folder = Path(name)
        (folder / "spec.toml").write_text(text, encoding="utf-8")
        _command(folder, "simulate", str(folder / "spec.toml"), "--out", str(folder / "run"), "--json")
        seconds, peak_mib = _command(folder, "audit", str(folder / "run"), "--json")
    return {"seconds": seconds, "peak_mib": peak_mib}


def _command(folder: Path, *arguments: str) -> tuple[float, float]:
    """Run a p2pdp command and return its seconds and MiB; what it prints is shown only if it fails."""
    errors = folder / "stderr"
    outputs = [
        (os.POSIX_SPAWN_OPEN, number, str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number, path in ((1, folder / "stdout"), (2, errors))
    ]
    home = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    began_s = monotonic()
    try:
        child = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "p2pdp", *arguments],
            {**os.environ, "PYTHONPATH": paths},
            file_actions=outputs,
        )
    except OSError as error:
        raise NotReady(f"no further process can be started: {error.strerror}") from None
    try:
        _, status, used = os.wait4(child, 0)
    except BaseException:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    seconds = monotonic() - began_s
    if os.waitstatus_to_exitcode(status) != 0:
        raise RunFailed(f"the benchmark failed: {errors.read_text(errors='replace').strip() or 'no reason was given'}")
    return seconds, used.ru_maxrss * _MAXRSS_BYTES / (1 << 20)
