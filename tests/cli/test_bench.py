"""Benchmarks in processes of their own, since they fork; how fast and how small is for whoever reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="private memory is counted on Linux")


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p2pdp", "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@linux
@pytest.mark.parametrize(("options", "processes"), [((), 13), (("--nodes-per-process", "5"), 4)])
def test_start_tells_time_and_memory(options: tuple[str, ...], processes: int) -> None:
    done = bench("start", "--nodes", "12", *options, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    measured = json.loads(done.stdout)
    assert (measured["nodes"], measured["processes"], measured["spawn"]) == (12, processes, False)
    assert 0 < measured["seconds_until_started"] <= measured["seconds"]
    assert measured["seconds_until_roster"] > 0
    assert 0.1 < measured["private_mib_per_node"] < 40
    assert measured["cpu_seconds"] > 0


@linux
def test_start_is_readable() -> None:
    done = bench("start", "--nodes", "11", "--nodes-per-process", "11")
    assert (done.returncode, done.stderr) == (0, "")
    named = {line.partition("  ")[0] for line in done.stdout.splitlines()}
    assert named >= {"nodes", "seconds", "private mib per node"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((), "Missing command"), (("walks",), "walks"), (("start", "--nodes", "7"), "--nodes 7"), (("start", "7"), "7")],
)
def test_what_cannot_be_measured_is_one_line(arguments: tuple[str, ...], says: str) -> None:
    done = bench(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_hops_tells_both_rates_and_their_ratio() -> None:
    done = bench("hops", "--nodes", "4", "--hops", "300", "--pairs", "1", "--tokens", "2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    measured = json.loads(done.stdout)
    assert (measured["nodes"], measured["tokens"], measured["hops"], len(measured["pairs"])) == (4, 2, 300, 1)
    assert measured["ratio"] == pytest.approx(measured["hops_per_second"] / measured["bare_hops_per_second"])


def test_hops_of_nobody_is_one_line() -> None:
    done = bench("hops", "--nodes", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("name", "more", "numbers"), [("gossip", (), 1), ("vectors", ("--numbers", "500"), 500)])
def test_gossip_tells_rounds_and_messages_a_second(name: str, more: tuple[str, ...], numbers: int) -> None:
    done = bench(name, "--nodes", "5", "--degree", "2", "--rounds", "20", "--pairs", "1", *more, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    measured = json.loads(done.stdout)
    assert (measured["nodes"], measured["degree"], measured["rounds"]) == (5, 2, 20)
    assert (measured["numbers"], len(measured["pairs"])) == (numbers, 1)
    assert measured["messages_per_second"] == pytest.approx(10 * measured["rounds_per_second"])
    assert measured["ratio"] == pytest.approx(measured["rounds_per_second"] / measured["bare_rounds_per_second"])
    assert measured["seconds_until_enrolled"] < measured["seconds_in_all"]


def test_audit_tells_seconds_and_memory() -> None:
    done = bench("audit", "--nodes", "8", "--rounds", "3", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    measured = json.loads(done.stdout)
    assert (measured["nodes"], measured["pairs"]) == (8, 56)
    assert measured["seconds"] > 0.0
    assert measured["peak_mib"] > 10.0


def test_noise_tells_nanoseconds_a_number() -> None:
    done = bench("noise", "--mechanism", "laplace", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    measured = json.loads(done.stdout)
    assert (measured["mechanism"], measured["numbers"]) == ("laplace", 10_000)
    assert measured["nanoseconds_per_number"] > 0.0
