"""A sweep on a Dask cluster whose scheduler and workers are processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.support.missing import missing
from tests.support.small import COMPLETE, contents, spec_file
from tests.support.sources import TOP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
WAIT_S = 240.0
RUNS = 20


def _until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def _started(folder: Path, module: str, *arguments: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{module}.log").open("ab") as log:
        command = [sys.executable, "-m", module, *arguments]
        child = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=ENVIRONMENT | more)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@dataclass
class Scheduler:
    process: subprocess.Popen[bytes]
    folder: Path
    address: str

    @property
    def stays(self) -> Path:
        """It is there once a worker stays in a run."""
        return self.folder / "stays"

    def worker(self, runs: int | None = None) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """A worker without a nanny, which would start it again; it may stay in a run for ever, after so many."""
        how = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        more = {}
        if runs is not None:
            how += ["--preload", "tests.support.standing"]
            more = {"STAYS": f"{runs} {self.stays}"}
        return _started(self.folder, "distributed.cli.dask_worker", f"tcp://{self.address}", *how, **more)


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    if find_spec("distributed") is None:
        missing("install dask[distributed], for sweeps on a Dask cluster")
    told = tmp_path / "scheduler.json"
    where = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told))
    with _started(tmp_path, "distributed.cli.dask_scheduler", *where) as process:
        _until(lambda: told.is_file() and told.read_text().endswith("}"))
        yield Scheduler(process, tmp_path, json.loads(told.read_text())["address"].removeprefix("tcp://"))


def _described(folder: Path, executor: str) -> Path:
    spec_file(folder, COMPLETE.replace("hops = 20", "hops = 150"))
    place = folder / "grid.toml"
    place.write_text(
        f'base = "spec.toml"\nseeds = {RUNS // 2}\nexecutor = "{executor}"\n[grid]\nnoise.sigma = [1.0, 3.0]\n'
    )
    return place


def _sweep(place: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "p2pdp", "sweep", str(place), "--out", str(out), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)


def test_a_killed_worker_changes_nothing(tmp_path: Path, scheduler: Scheduler) -> None:
    rows = tmp_path / "dask" / "rows"
    place = _described(tmp_path, f"dask://{scheduler.address}")
    with scheduler.worker(1) as first, scheduler.worker(), _sweep(place, tmp_path / "dask") as child:
        _until(lambda: scheduler.stays.exists() and rows.is_dir() and len(list(rows.iterdir())) >= 3)
        there = len(list(rows.iterdir()))
        first.kill()
        out, told = child.communicate(timeout=2 * WAIT_S)
    assert (child.returncode, told, there < RUNS) == (0, b"", True)
    assert json.loads(out)["computed"] == RUNS
    with _sweep(_described(tmp_path, "processes"), tmp_path / "here") as child:
        child.communicate(timeout=2 * WAIT_S)
    assert contents(tmp_path / "dask") == contents(tmp_path / "here")


def test_a_scheduler_that_dies_ends_the_sweep_and_leaves_what_was_done(tmp_path: Path, scheduler: Scheduler) -> None:
    rows = tmp_path / "out" / "rows"
    place = _described(tmp_path, f"dask://{scheduler.address}")
    with scheduler.worker(3), _sweep(place, tmp_path / "out") as child:
        _until(lambda: rows.is_dir() and len(list(rows.iterdir())) >= 3)
        scheduler.process.kill()
        out, told = child.communicate(timeout=WAIT_S)
    document = json.loads(out)
    kept = len(list(rows.iterdir()))
    assert (child.returncode, document["failed"]) == (3, RUNS - kept)
    assert {row["code"] for row in document["rows"]} == {0, 6}
    assert told.startswith(b"p2pdp: ")
    assert told.count(b"\n") == 1
    place.write_text(place.read_text().replace(f"dask://{scheduler.address}", "processes"))
    with _sweep(place, tmp_path / "out") as child:
        out, _ = child.communicate(timeout=2 * WAIT_S)
    assert (child.returncode, json.loads(out)["computed"]) == (0, RUNS - kept)


def test_without_a_scheduler_nothing_runs(tmp_path: Path) -> None:
    if find_spec("distributed") is None:
        missing("install dask[distributed], for sweeps on a Dask cluster")
    with _sweep(_described(tmp_path, "dask://127.0.0.1:1"), tmp_path / "out") as child:
        out, told = child.communicate(timeout=WAIT_S)
    assert (child.returncode, out) == (6, b"")
    assert told.startswith(b"p2pdp: dask://127.0.0.1:1: ")
    assert told.count(b"\n") == 1
