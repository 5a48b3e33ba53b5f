"""Real processes, killed and interrupted: each launcher runs in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cluster.launcher import RESTARTS_MAX, SETTLED_S, WAIT_MAX_S, Cluster, Restarts, _signals
from p2pdp.cluster.peers import SEATED
from p2pdp.cluster.processes import CRASHED, INTERRUPTED, Events, send_event
from tests.support.launched import GUARD_S, wait_for
from tests.support.local import job_in
from tests.support.sources import TOP
from tests.support.standing import standing, stopped

HOPS = 3000
SPEC = f"""[run]
protocol = "walk.sum"
nodes = 5
seed = 1
patience_s = 6
[graph]
kind = "complete"
[walk]
order = "random"
hops = {HOPS}
[noise]
mechanism = "gaussian"
sigma = 1.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


START = "import sys; from tests.support.launch import command; sys.exit(command(sys.argv.pop(1)))"
STANDS = 2, 50  # at so many frames the process of this user stands still


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return _started(folder, "-m", "p2pdp", *arguments)


def start_standing(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], int]:
    """Start a run, of which one process stops itself; give that too once it has."""
    wishes = json.dumps({"stands": [str(folder), *STANDS]})
    launcher = _started(folder, "-c", START, wishes, *arguments)
    told = standing(folder, STANDS[0], 0)
    wait_for(lambda: launcher.poll() is not None or stopped(told), "the process stands still")
    assert launcher.poll() is None, launcher.communicate()
    return launcher, int(told.read_text())


def _started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(TOP)},
    )  # fmt: skip


def children_of(parent: int) -> list[int]:
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def check(run: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "p2pdp", "verify", str(run), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    result: dict[str, Any] = json.loads((run / "result.json").read_text())
    assert (json.loads(done.stdout)["verified"], result["missing"]) == ("complete", [])
    assert abs(result["error"]) < 8 * result["standard_error"]
    return result


def test_processes_that_are_killed_come_back_and_the_run_completes(tmp_path: Path) -> None:
    """Users, and the process of bootstrap and curator: the first child of the launcher."""
    (tmp_path / "spec.toml").write_text(SPEC)
    launcher, stander = start_standing(tmp_path, "run", "spec.toml", "--out", "run")
    children = children_of(launcher.pid)
    assert children.index(stander) == 1 + STANDS[0]
    for number in (1, 0, 4):
        os.kill(children[number], signal.SIGKILL)
    os.kill(stander, signal.SIGCONT)
    out, err = launcher.communicate(timeout=GUARD_S)
    assert launcher.returncode == 0, (out, err)
    check(tmp_path / "run")


def test_an_interrupted_run_leaves_no_process_and_can_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    launcher, stander = start_standing(tmp_path, "run", "spec.toml", "--out", "run")
    children = children_of(launcher.pid)
    launcher.send_signal(signal.SIGTERM)
    os.kill(stander, signal.SIGCONT)
    _, err = launcher.communicate(timeout=GUARD_S)
    assert (launcher.returncode, err) == (130, "p2pdp: interrupted; p2pdp resume run goes on with the run\n")
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    again = start(tmp_path, "resume", "run")
    out, err = again.communicate(timeout=GUARD_S)
    assert again.returncode == 0, (out, err)
    assert check(tmp_path / "run")["hops"] == HOPS


def test_signals_wake_and_are_put_back() -> None:
    taken: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    with _signals(lambda number, _frame: taken.append(number)) as awake:
        os.kill(os.getpid(), signal.SIGTERM)
        assert os.read(awake, 16) == bytes([signal.SIGTERM])
        assert taken == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_cluster_needs_no_more_than_a_job_and_somebody_to_tell(tmp_path: Path) -> None:
    """What the launcher keeps for itself cannot be given to it."""
    with pytest.raises(TypeError):
        Cluster(job_in(tmp_path / "run"), print, _interrupted=True)  # type: ignore[call-arg]


def test_the_first_restart_is_at_once_and_waits_double_to_a_limit() -> None:
    restarts = Restarts()
    waits = [restarts.wait_s(3, CRASHED, 0.1) for _ in range(9)]
    assert waits == [0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, WAIT_MAX_S, WAIT_MAX_S]
    assert restarts.wait_s(4, CRASHED, 0.1) == 0.0


def test_who_lived_for_long_is_started_at_once_again() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.wait_s(3, CRASHED, 0.1)
    assert restarts.wait_s(3, CRASHED, SETTLED_S) == 0.0
    assert restarts.wait_s(3, CRASHED, 0.1) == 0.05


def test_who_fails_by_itself_again_and_again_is_given_up() -> None:
    restarts = Restarts()
    assert None not in [restarts.wait_s(3, CRASHED, SETTLED_S) for _ in range(RESTARTS_MAX)]
    assert restarts.wait_s(3, CRASHED, SETTLED_S) is None
    assert restarts.wait_s(2, CRASHED, SETTLED_S) == 0.0


def test_who_is_killed_is_not_given_up() -> None:
    restarts = Restarts()
    for code in (-signal.SIGKILL, -signal.SIGTERM, INTERRUPTED):
        assert None not in [restarts.wait_s(3, code, 0.0) for _ in range(2 * RESTARTS_MAX)]
    assert None in [restarts.wait_s(3, -signal.SIGSEGV, 0.0) for _ in range(2 * RESTARTS_MAX)]


def test_seats_are_counted_of_all_even_where_they_are_told_before_the_roster(tmp_path: Path) -> None:
    """Users and the bootstrap write to the pipe from processes of their own: what was first there is not known."""
    for roster_at in range(4):
        told: list[dict[str, Any]] = []
        cluster = Cluster(job_in(tmp_path / f"run{roster_at}"), told.append)
        with closing(Events()) as events:
            cluster._events = events
            for slot in range(3):
                if slot == roster_at:
                    send_event(events.writing, "roster", n=3)
                send_event(events.writing, SEATED, slot=slot)
            if roster_at == 3:
                send_event(events.writing, "roster", n=3)
            cluster._read_events()
        assert {"event": SEATED, "count": 3, "of": 3} in told
        assert told[-1] == {"event": "enrolled", "n": 3}
        assert [event["of"] for event in told if event["event"] == SEATED] == [3] * (3, 3, 2, 1)[roster_at]
