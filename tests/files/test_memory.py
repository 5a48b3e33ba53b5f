from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.files.memory import free_bytes

MEMINFO = "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    2000000 kB\n"


def machine(place: Path, meminfo: str | None, limit: str | None = None, used: int = 0, cached: int = 0) -> int | None:
    proc, cgroup = place / "proc", place / "cgroup"
    for folder in (proc, cgroup):
        folder.mkdir()
    if meminfo is not None:
        (proc / "meminfo").write_text(meminfo)
    if limit is not None:
        (cgroup / "memory.max").write_text(f"{limit}\n")
        (cgroup / "memory.current").write_text(f"{used}\n")
        (cgroup / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\nactive_file 7\n")
    return free_bytes(proc, cgroup)


def test_what_is_available_is_told(tmp_path: Path) -> None:
    assert machine(tmp_path, MEMINFO) == 2_000_000 * 1024


@pytest.mark.parametrize(
    ("limit", "expected"), [("1000000", 1_000_000 - 400_000 + 50_000), ("max", 2_000_000 * 1024), ("100000", 0)]
)
def test_a_container_may_leave_less(limit: str, expected: int, tmp_path: Path) -> None:
    assert machine(tmp_path, MEMINFO, limit, used=400_000, cached=50_000) == expected


def test_elsewhere_it_is_not_known(tmp_path: Path) -> None:
    assert machine(tmp_path, None) is None


def test_this_machine_has_some() -> None:
    free = free_bytes()
    assert free is None or free > 1024**2
