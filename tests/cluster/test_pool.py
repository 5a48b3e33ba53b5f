from __future__ import annotations

import os
import signal
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest

from p2pdp.cluster.pool import Done, Pool
from p2pdp.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def _all(pool: Pool, works: dict[str, Any]) -> dict[str, Done]:
    left, found = list(works.items()), {}
    while left or pool.running:
        while left and pool.free:
            pool.begin(*left.pop(0))
        done = pool.next_done()
        found[done.name] = done
    return found


def test_every_work_answers_from_a_process_of_its_own() -> None:
    with Pool(2) as pool:
        found = _all(pool, {str(n): lambda n=n: {"n": n, "process": os.getpid()} for n in range(5)})
    answers = [found[str(n)].answer for n in range(5)]
    assert [answer["n"] for answer in answers if answer] == list(range(5))
    assert len({answer["process"] for answer in answers if answer} | {os.getpid()}) == 6


def test_a_large_answer_comes_whole() -> None:
    with Pool(1) as pool:
        pool.begin("a", lambda: {"text": "x" * 3_000_000})
        assert pool.next_done() == Done("a", {"text": "x" * 3_000_000}, None)


def test_what_goes_wrong_is_told_and_touches_no_other() -> None:
    def refuses() -> dict[str, Any]:
        raise UsageError("a sentence.")

    def breaks() -> dict[str, Any]:
        raise ValueError("what")

    def dies() -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    def leaves() -> dict[str, Any]:
        raise SystemExit(3)

    works = {"r": refuses, "b": breaks, "d": dies, "l": leaves, "n": lambda: {"x": float("nan")}, "good": dict}
    with Pool(3) as pool:
        found = _all(pool, works)
    assert found["r"] == Done("r", None, "a sentence.", exit_code=2)
    assert all(found[name].exit_code is None for name in "bdln")
    assert (found["b"].problem or "").startswith("what\n")
    assert (found["b"].problem or "").endswith("ValueError")
    assert found["d"].problem == "was ended by signal 9"
    assert found["l"].problem == "ended with code 130 and no answer"
    assert "ValueError" in (found["n"].problem or "")
    assert found["good"] == Done("good", {}, None)


def test_what_a_work_made_for_itself_goes_with_it(tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def keeps_a_scratch_folder() -> dict[str, Any]:
        with tempfile.TemporaryDirectory(dir=tmp_path):
            os.write(writing, b"x")
            time.sleep(600)
        return {}

    with Pool(1) as pool:
        pool.begin("a", keeps_a_scratch_folder)
        assert os.read(reading, 1) == b"x"
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_no_child_is_left_when_the_pool_is_left(tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def waits() -> dict[str, Any]:
        os.write(writing, b"%d\n" % os.getpid())
        time.sleep(600)
        return {}

    def interrupted() -> None:
        with Pool(2) as pool:
            pool.begin("a", waits)
            pool.begin("b", waits)
            told = b""
            while told.count(b"\n") < 2:
                told += os.read(reading, 100)
            processes.extend(map(int, told.split()))
            raise KeyboardInterrupt

    processes: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
