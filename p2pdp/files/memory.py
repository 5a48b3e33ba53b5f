"""The memory that is free on this machine, as Linux tells it; elsewhere it is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_CGROUP: Final = Path("/sys/fs/cgroup")
_KIB: Final = 1024


def free_bytes(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int | None:
    """Return how much memory processes can still have; None if unknown.

    Where they are in a container with a limit, as version 2 of control groups tells it, that counts too.
    """
    known = [one for one in (_available(proc / "meminfo"), _left_in(cgroup)) if one is not None]
    return min(known, default=None)


def _available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * _KIB for line in lines if line.startswith("MemAvailable:")), None)


def _left_in(cgroup: Path) -> int | None:
    """Return what a container's limit leaves; pages of files count as used, and can be had back."""
    try:
        most, used = (cgroup / "memory.max").read_text("ascii"), int((cgroup / "memory.current").read_text("ascii"))
        files = (line.split() for line in (cgroup / "memory.stat").read_text("ascii").splitlines())
        cached = sum(int(size) for name, size in files if name == "inactive_file")
        return max(0, int(most) - used + cached)
    except (OSError, ValueError):  # no such files, or "max"
        return None
