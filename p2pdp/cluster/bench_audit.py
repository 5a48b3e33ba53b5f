"""The processes of `bench audit`: a fresh interpreter simulates a run, and another one audits it and is measured.

Seconds are those of the whole command, its start and its imports included, and the peak is that of its resident
memory, as the system counts it for a process and all that it has been: a caller that is itself large shows in it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final

from p2pdp.core.errors import NotReady, RunFailed

_MAXRSS_BYTES: Final = 1 if sys.platform == "darwin" else 1024


def measure_audit(spec_text: str) -> dict[str, Any]:
    with TemporaryDirectory(prefix="p2pdp-bench-") as name:
        place = Path(name)
        (place / "spec.toml").write_text(spec_text, encoding="utf-8")
        _command(place, "simulate", str(place / "spec.toml"), "--out", str(place / "run"), "--json")
        seconds, peak_mib = _command(place, "audit", str(place / "run"), "--json")
    return {"seconds": seconds, "peak_mib": peak_mib}


def _command(place: Path, *arguments: str) -> tuple[float, float]:
    """Seconds and MiB of a command of ours, whose output nobody reads unless it fails."""
    complaints = place / "complaints"
    outputs = [
        (os.POSIX_SPAWN_OPEN, number, str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number, path in ((1, place / "document"), (2, complaints))
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
        raise RunFailed(f"the benchmark failed: {complaints.read_text(errors='replace').strip() or 'nobody said why'}")
    return seconds, used.ru_maxrss * _MAXRSS_BYTES / (1 << 20)
