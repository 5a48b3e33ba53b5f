"""Small benchmarks, each in a process of its own, since it forks; rates are for whoever reads them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAD = """
import json, os, sys
from p2pdp.cluster import bench_hops
from p2pdp.core.errors import RunFailed
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import plan_run
from p2pdp.runs.bench_hops import _SPEC
spec = parse_spec(_SPEC.format(nodes=4, graph="complete", degree="", transport="tcp", hops=40, tokens=6), None)
run, rows = plan_run(spec, 4, 1), load_data(spec, 4).user
"""


def script(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", HEAD + text], capture_output=True, text=True, timeout=60, check=False)


def test_each_kind_is_measured_in_turn_and_once_more_for_warming_up() -> None:
    done = script("print(json.dumps(bench_hops.measure_hops(run, rows, tokens=2, hops=40, pairs=2)))")
    assert (done.returncode, done.stderr) == (0, "")
    measured = json.loads(done.stdout)
    assert [len(measured[name]) for name in ("real", "bare", "rest", "growth")] == [3, 3, 6, 4]
    assert all(stretch["seconds"] > 0 and stretch["cpu_s"] > 0 for stretch in measured["real"] + measured["bare"])
    assert all(user["ledger_bytes"] > 1000 for user in measured["growth"])


def test_what_many_hops_need_of_noise_is_laid_in_before() -> None:
    text = "print(json.dumps(bench_hops.measure_hops(run, rows, tokens=1, hops=2000, pairs=1)))"
    many = HEAD.replace("hops=40, tokens=6", "hops=2000, tokens=2") + text
    done = subprocess.run([sys.executable, "-c", many], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    draws = [rest["draws"] for rest in json.loads(done.stdout)["rest"]]
    assert draws == [4 * 7 * 128, 0, 0, 0], "whole pools of the thousand draws that each of four users will make"


def test_a_user_that_fails_ends_the_benchmark_with_the_reason() -> None:
    done = script("""
def broken(user):
    raise RunFailed("this user has no rows")
try:
    bench_hops.measure_hops(run, broken, tokens=2, hops=40, pairs=2)
except RunFailed as error:
    print(error)
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert "this user has no rows" in done.stdout


HOOKED = """
from p2pdp.core.errors import NotReady
from p2pdp.node import bench_boss, bench_user, shell
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
    bench_hops.measure_hops(run, rows, tokens=2, hops=100000, pairs=2)
except RunFailed as error:
    print(error)
print(os.getpgid(0))
"""
LONG = HEAD.replace("hops=40", "hops=100000")


@pytest.mark.parametrize(
    ("who", "how", "reason"),
    [
        ("0002", "raise NotReady('the disk is full')", "the disk is full"),
        ("0002", "os.kill(os.getpid(), 9)", "nobody said why"),
        ("role1", "raise KeyError(7)", "KeyError"),
        ("role2", "raise NotReady('the disk is full')", "the disk is full"),
    ],
)
def test_a_host_that_fails_on_its_way_ends_the_benchmark(who: str, how: str, reason: str) -> None:
    """It has no answer to give, and everybody else waits for its token."""
    text = LONG + HOOKED.replace("WHO", repr(who)).replace("HOW", how)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said, group = done.stdout.rsplit("\n", 2)[:2]
    assert reason in said
    assert members(int(group)) == []


def test_nobody_is_left_when_the_one_who_asked_is_killed() -> None:
    endless = HEAD.replace("hops=40", "hops=100000000") + (
        "print(os.getpgid(0), flush=True)\nbench_hops.measure_hops(run, rows, tokens=1, hops=100000000, pairs=1)"
    )
    until_s = time.monotonic() + 30
    command = [sys.executable, "-c", endless]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        group = int(process.stdout.readline())
        while len(members(group)) < 6 and time.monotonic() < until_s:
            time.sleep(0.05)
        process.kill()
    while members(group) and time.monotonic() < until_s:
        time.sleep(0.05)
    left = members(group)
    if left:
        os.killpg(group, signal.SIGKILL)
    assert left == []


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
