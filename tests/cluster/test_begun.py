from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from p2pdp.cluster.begun import Begun, Stream, telling
from p2pdp.core.arrays import Floats, one_by_one
from p2pdp.core.errors import Refused, RunFailed


def odd(number: int) -> Floats:
    """Rows of different lengths, the last ones larger than a pipe."""
    return np.append(np.linspace(0.1, 0.3, 1 + number**3), (np.nan, -0.0, np.inf, 5e-324))


def who(_number: int) -> Floats:
    return np.array([float(os.getpid())])


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def held(release: int) -> Callable[[int], Floats]:
    """Rows that another process than this one computes only once something is written to the pipe."""
    here = os.getpid()

    def row(number: int) -> Floats:
        if os.getpid() != here:
            os.read(release, 1)
        return np.append(who(number), number)

    return row


@pytest.mark.parametrize("processes", [1, 2, 7])
@pytest.mark.parametrize("begin", [0, 4, 29])
def test_rows_are_the_same_bits_however_they_are_shared(begin: int, processes: int) -> None:
    told: list[tuple[int, int]] = []
    rows = Begun(begin, 30, odd, processes, lambda done, total: told.append((done, total))).take()
    assert [row.tobytes() for row in rows] == [row.tobytes() for row in one_by_one(30, odd)[begin:]]
    assert all(done <= total == 30 for done, total in told)


def test_whoever_takes_rows_computes_all_but_the_one_that_another_is_at() -> None:
    reading, writing = os.pipe()
    computed = held(reading)

    def row(number: int) -> Floats:
        if number == 1:  # the last one that is left
            os.write(writing, b"1")
        return computed(number)

    rows = Begun(0, 9, row, 1).take()
    assert [int(number) for _, number in rows] == list(range(9))
    assert [int(number) for process, number in rows if process != os.getpid()] == [0]
    os.close(reading)
    os.close(writing)


def test_others_compute_all_if_there_is_time(tmp_path: Path) -> None:
    done = tmp_path / "done"

    def row(number: int) -> Floats:
        if number == 19:
            done.touch()
        return np.append(np.zeros(10_000), who(number))  # together more than a pipe holds

    begun = Begun(0, 20, row, 1)
    while not done.exists():
        os.sched_yield()
    rows = begun.take()
    assert sum(int(found[-1]) == os.getpid() for found in rows) <= 1


def test_what_nobody_takes_leaves_no_process_behind() -> None:
    before = children()
    reading, writing = os.pipe()
    with Begun(0, 9, held(reading), 2) as begun:
        assert len(children() - before) == 2
    begun.close()  # once more does no harm
    assert children() <= before
    assert begun.processes == 0
    os.close(reading)
    os.close(writing)


def test_a_killed_process_is_told_and_leaves_none_behind() -> None:
    here, before = os.getpid(), children()

    def row(number: int) -> Floats:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return who(number)

    with pytest.raises(RunFailed, match=r"^a process that shared the work was ended by signal 9$"):
        Begun(0, 5, row, 2).take()
    assert children() <= before


def test_an_error_of_another_process_is_raised_by_its_kind() -> None:
    here = os.getpid()

    def row(number: int) -> Floats:
        if os.getpid() != here:
            raise Refused("no")
        return who(number)

    with pytest.raises(Refused, match=r"^no$"):
        Begun(0, 5, row, 2).take()


def test_who_tells_rows_could_not_read_them_so_that_it_ends_where_its_parent_is_gone() -> None:
    streams = [Stream(), Stream()]

    def work() -> dict[str, bool]:
        return {str(stream.reading): Path(f"/proc/self/fd/{stream.reading}").exists() for stream in streams}

    assert list(telling(streams, work).values()) == [False, False]
