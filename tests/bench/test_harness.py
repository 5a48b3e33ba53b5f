from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from p2pdp.bench import harness
from p2pdp.bench.harness import local_run, private_mib, require, require_degree, require_one_of, spec_text
from p2pdp.bench.start import measure_start
from p2pdp.cluster.layout import ONE_EACH
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.files.spec import parse_spec

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
    monkeypatch.setattr(harness, "PROCESSES", tmp_path)
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


def test_the_spec_is_one_that_runs() -> None:
    graph = {"kind": "regular", "degree": 4}
    text = spec_text("walk", run={"nodes": 9, "audit": True}, graph=graph, walk={"hops": 30})
    spec = parse_spec(text, None)
    assert (spec.run.protocol, spec.run.nodes, spec.run.seed, spec.run.audit) == ("walk.sum", 9, 1, True)
    assert (spec.graph.kind, spec.graph.degree, spec.options.hops) == ("regular", 4, 30)


def test_an_option_is_refused_with_its_value() -> None:
    for call, names in (
        (lambda: require(0, "--nodes 0", "at least 1"), "--nodes 0"),
        (lambda: require_one_of("--graph", "tree", ("ring", "complete")), "--graph tree"),
        (lambda: require_degree(5, 3, 1), "--degree 3"),
        (lambda: require_degree(6, 6, 1), "--degree 6"),
        (lambda: require_degree(6, 1, 2), "--degree 1"),
    ):
        with pytest.raises(UsageError, match=f"^{re.escape(names)}: "):
            call()
    require_degree(6, 5, 1)


def test_the_folder_of_a_local_run_goes_with_it() -> None:
    text = spec_text("walk", run={"nodes": 5}, graph={"kind": "complete"}, walk={"hops": 9})
    with local_run(text) as (folder, job):
        assert (folder.path / "spec.toml").is_file()
        assert job.slots == 5
    assert not folder.path.parent.exists()
