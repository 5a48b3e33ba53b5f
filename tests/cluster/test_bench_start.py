"""A benchmark forks, so it is measured in a process of its own (`tests/cli/test_bench.py`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from p2pdp.cluster import bench_start as module
from p2pdp.cluster.bench_start import measure_start, private_mib
from p2pdp.cluster.layout import ONE_EACH
from p2pdp.core.errors import NotReady

ROLLUP = """55d0-7ffc ---p 00000000 00:00 0  [rollup]
Rss:               67400 kB
Shared_Clean:       1844 kB
Shared_Dirty:       9999 kB
Private_Clean:      1024 kB
Private_Dirty:      2560 kB
Private_Hugetlb:     777 kB
"""


def test_private_memory_is_what_no_other_process_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "17").mkdir()
    (tmp_path / "17" / "smaps_rollup").write_text(ROLLUP)
    monkeypatch.setattr(module, "PROCESSES", tmp_path)
    assert private_mib(17) == 3.5
    with pytest.raises(NotReady, match="process 18 cannot be read"):
        private_mib(18)
    with pytest.raises(NotReady, match="on Linux only"):
        measure_start("", ONE_EACH, whole_process=False)


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this system counts no private memory")
def test_memory_that_is_written_to_counts() -> None:
    before = private_mib(os.getpid())
    block = b"\1" * (64 << 20)
    assert 60 <= private_mib(os.getpid()) - before <= 70
    del block
