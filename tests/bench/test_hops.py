"""Small benchmarks, each in a process of its own, since it forks; rates are for whoever reads them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from p2pdp.bench import hops as benched
from p2pdp.bench.hops import bench_hops
from p2pdp.core.errors import UsageError
from tests.support.launched import wait_for


def stretch(seconds: float) -> dict[str, float]:
    return {"seconds": seconds, "cpu_s": 2 * seconds}


def measured(**asked: Any) -> dict[str, Any]:
    """Three pairs whose ratios are 1/2, 1/4 and 1/8, after a first one that does not count."""
    assert asked == {"tokens": 2, "hops": 50, "pairs": 3}
    growth = [{"ledger_bytes": 100.0, "private_mib": 4.0}, {"ledger_bytes": 300.0, "private_mib": None}]
    bare = [stretch(9.0), stretch(1.0), stretch(1.0), stretch(2.0)]
    real = [stretch(1.0), stretch(8.0), stretch(2.0), stretch(8.0)]
    return {"dial_s": 0.5, "real": real, "bare": bare, "growth": growth}


def test_what_counts_is_the_median_of_pairs_without_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benched, "measure_hops", lambda _run, _rows, **asked: measured(**asked))
    found = bench_hops(6, 101, 2, 3, "regular", 3)
    assert [pair["ratio"] for pair in found["pairs"]] == [0.125, 0.5, 0.25]
    assert (found["ratio"], found["hops_per_second"], found["bare_hops_per_second"]) == (0.25, 12.5, 100.0)
    assert (found["hops"], found["cpu_us_per_hop"], found["bare_cpu_us_per_hop"]) == (100, 160_000.0, 20_000.0)
    assert (found["dials"], found["dial_ms"], found["degree"]) == (9, 500 / 9, 3.0)
    assert (found["ledger_bytes_per_node"], found["private_mib_per_node"]) == (200.0, None)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"nodes": 1}, "--nodes"),
        ({"hops": 0}, "--hops"),
        ({"tokens": 0}, "--tokens"),
        ({"pairs": 0}, "--pairs"),
        ({"hops": 3, "tokens": 4}, "--hops 3"),
        ({"graph": "ring"}, "--graph ring"),
        ({"nodes": 5, "graph": "regular", "degree": 3}, "degree"),
        ({"nodes": 5, "graph": "regular", "degree": 5}, "degree"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        bench_hops(**arguments)


HEAD = """
import json, os, sys
from p2pdp.bench import hops
from p2pdp.bench.hops import planned
from p2pdp.core.errors import RunFailed
from p2pdp.files.data import load_data
run = planned(4, 40, 6)
rows = load_data(run.spec, 4).user
"""


def script(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", HEAD + text], capture_output=True, text=True, timeout=240, check=False)


def test_each_kind_is_measured_in_turn_and_once_more_for_warming_up() -> None:
    done = script("print(json.dumps(hops.measure_hops(run, rows, tokens=2, hops=40, pairs=2)))")
    assert (done.returncode, done.stderr) == (0, "")
    measured = json.loads(done.stdout)
    assert [len(measured[name]) for name in ("real", "bare", "growth")] == [3, 3, 4]
    assert all(stretch["seconds"] > 0 and stretch["cpu_s"] > 0 for stretch in measured["real"] + measured["bare"])
    assert all(user["ledger_bytes"] > 1000 for user in measured["growth"])


def test_a_user_that_fails_ends_the_benchmark_with_the_reason() -> None:
    done = script("""
def broken(user):
    raise RunFailed("this user has no rows")
try:
    hops.measure_hops(run, broken, tokens=2, hops=40, pairs=2)
except RunFailed as error:
    print(error)
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert "this user has no rows" in done.stdout


HOOKED = """
from p2pdp.core.errors import NotReady
from p2pdp.node.disk import Disk
os.setpgid(0, 0)
write, written = Disk.write, []
def watched(disk, name, data):
    written.append(1)
    if len(written) > 5 and disk._folder.name == WHO:
        how()
    write(disk, name, data)
Disk.write = watched
def how():
    HOW
try:
    hops.measure_hops(run, rows, tokens=2, hops=100000, pairs=2)
except RunFailed as error:
    print(error)
print(os.getpgid(0))
"""
LONG = HEAD.replace("40", "100000")


@pytest.mark.parametrize(
    ("who", "how", "reason"),
    [
        ("0002", "raise NotReady('the disk is full')", "the disk is full"),
        ("0002", "os.kill(os.getpid(), 9)", "no reason was given"),
        ("role1", "raise KeyError(7)", "KeyError"),
        ("role2", "raise NotReady('the disk is full')", "the disk is full"),
    ],
)
def test_a_host_that_fails_on_its_way_ends_the_benchmark(who: str, how: str, reason: str) -> None:
    """It has no answer to give, and everybody else waits for its token."""
    text = LONG + HOOKED.replace("WHO", repr(who)).replace("HOW", how)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said, group = done.stdout.rsplit("\n", 2)[:2]
    assert reason in said
    assert members(int(group)) == []


def test_nobody_is_left_when_the_one_who_asked_is_killed() -> None:
    endless = HEAD.replace("40", "100000000") + (
        "print(os.getpgid(0), flush=True)\nhops.measure_hops(run, rows, tokens=1, hops=100000000, pairs=1)"
    )
    command = [sys.executable, "-c", endless]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        group = int(process.stdout.readline())
        try:
            wait_for(lambda: len(members(group)) >= 6, "all are there")
            process.kill()
            process.wait()
            wait_for(lambda: members(group) == [], "nobody is left")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def members(group: int) -> list[int]:
    """The living processes of a group."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = place.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state != "Z":
            found.append(int(place.parent.name))
    return found
