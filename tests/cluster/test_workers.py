from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from p2pdp.cluster import workers
from p2pdp.cluster.workers import Workers, answers, dask, processes
from p2pdp.core.errors import NotReady
from p2pdp.wire import padding
from tests.support.sources import TOP


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _gone(process: int, within_s: float = 60.0) -> bool:
    until = time.monotonic() + within_s
    while _alive(process):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_calls_are_answered_in_other_processes_with_one_thread_each() -> None:
    with processes(2) as executor:
        futures = [executor.submit(_self, {"n": n}) for n in range(6)]
        found = [future.result(240) for future in futures]
    assert [one["n"] for one in found] == list(range(6))
    used = {one["process"] for one in found}
    assert os.getpid() not in used
    assert len(used) <= 2
    assert {one["threads"] for one in found} == {"1"}
    assert all(_gone(process) for process in used)


def _self(argument: dict[str, Any]) -> dict[str, Any]:
    print("what libraries print is no answer")
    return {**argument, "process": os.getpid(), "threads": os.environ["OPENBLAS_NUM_THREADS"]}


def _die(argument: dict[str, Any]) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return argument


def _sleep(argument: dict[str, Any]) -> dict[str, Any]:
    time.sleep(600)
    return argument


def test_a_worker_that_is_killed_costs_one_call() -> None:
    with processes(1) as executor:
        killed, after = executor.submit(_die, {}), executor.submit(_self, {"n": 1})
        with pytest.raises(NotReady, match="signal 9"):
            killed.result(240)
        assert after.result(240)["n"] == 1


def test_an_interpreter_is_replaced_after_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "CALLS_MAX", 2)
    with processes(1) as executor:
        futures = [executor.submit(_self, {}) for _ in range(4)]
        used = [future.result(240)["process"] for future in futures]
    assert used[0] == used[1] != used[2] == used[3]


def test_what_is_under_way_ends_with_the_pool() -> None:
    with processes(1) as executor:
        process = executor.submit(_self, {}).result(240)["process"]
        under_way, waiting = executor.submit(_sleep, {}), executor.submit(_self, {})
        while not under_way.running():
            time.sleep(0.01)
        begun = time.monotonic()
    assert time.monotonic() - begun < 60  # and not until the call is over
    assert waiting.cancelled()
    assert isinstance(under_way.exception(1), NotReady)
    assert _gone(process)
    with pytest.raises(RuntimeError):
        executor.submit(_self, {})


def test_a_pool_may_be_shut_down_as_others_are() -> None:
    with Workers(1) as executor:
        future = executor.submit(_self, {"n": 3})
    assert future.result(0)["n"] == 3


def test_workers_end_with_a_parent_that_is_killed() -> None:
    script = (
        "from p2pdp.cluster.workers import Workers\nfrom tests.cluster.test_workers import _self, _sleep\n"
        "w = Workers(1)\nprint(w.submit(_self, {}).result(240)['process'], flush=True)\n"
        "w.submit(_sleep, {}).result(240)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=TOP, stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    assert _gone(worker)


class _Broken(Executor):
    def __init__(self, good: int) -> None:
        self.good = good

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if not self.good:
            raise RuntimeError("it is broken")
        self.good -= 1
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future


def test_every_call_has_an_answer_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "AHEAD", 3)
    told: list[int] = []

    def call(argument: dict[str, Any]) -> dict[str, Any]:
        told.append(argument["n"])
        if argument["n"] == 4:
            raise ValueError("of the executor")
        return {"n": argument["n"]}

    asked = [(str(n), {"n": n}) for n in range(8)]
    with ThreadPoolExecutor(2) as executor:
        found = {name: (answer, reason) for name, answer, reason in answers(executor, call, asked)}
    assert found.pop("4") == (None, "ValueError: of the executor")
    assert found == {str(n): ({"n": n}, "") for n in range(8) if n != 4}
    broken = {name: reason for name, answer, reason in answers(_Broken(2), call, asked) if answer is None}
    assert sorted(broken) == [str(n) for n in range(2, 8)]
    assert set(broken.values()) == {"RuntimeError: it is broken"}


def test_calls_are_submitted_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "AHEAD", 3)
    taken = []

    def asked() -> Any:
        for n in range(50):
            taken.append(n)
            yield str(n), {"n": n}

    with ThreadPoolExecutor(1) as executor:
        found = answers(executor, dict, asked())
        next(found)
        assert len(taken) <= 3
        assert len(list(found)) == 49


def test_no_dask_and_no_scheduler_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NotReady, match=r"\[dask\]"), dask("127.0.0.1:1"):
        pass


def test_a_call_is_a_line_of_json() -> None:
    command = [sys.executable, "-m", "p2pdp.cluster.workers"]
    child = subprocess.Popen(command, cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps([padding.__name__, "frame_size", 10]).encode() + b"\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline()) == padding.frame_size(10)
        child.stdin.close()
        assert child.wait(60) == 0
