from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.cluster import blocks
from p2pdp.cluster.blocks import Cores, in_blocks, worker_count
from p2pdp.core.arrays import Floats, one_by_one
from p2pdp.core.errors import NotReady, Refused, RunFailed, UsageError
from p2pdp.files.samples import samples


def block(start: int, count: int) -> Iterator[list[float]]:
    return ([0.1 * number, os.getpid()] for number in range(start, start + count))


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_answers_come_in_the_order_of_numbers(size: int) -> None:
    done: list[int] = []
    made = in_blocks(3, 7, block, 2, size, done.append)
    assert [number for number, _ in made] == [0.1 * number for number in range(3, 10)]
    assert os.getpid() not in {process for _, process in made}
    assert done == sorted(done)
    assert done[-1] == 7


@pytest.mark.parametrize(
    ("raised", "expected"), [(UsageError("no"), UsageError), (NotReady("no"), NotReady), (ValueError("no"), RunFailed)]
)
def test_the_first_error_is_raised_by_its_kind(raised: Exception, expected: type[Exception]) -> None:
    def failing(start: int, count: int) -> Iterator[float]:
        raise raised

    with pytest.raises(expected, match=r"number \d: .*no"):
        in_blocks(1, 4, failing, 2, 1, lambda _done: None)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True])
def test_workers_are_a_whole_number(wrong: object) -> None:
    with pytest.raises(UsageError, match="--workers"):
        worker_count(wrong)  # type: ignore[arg-type]


OF_THE_PACKAGE = {
    one.name: one.path for one in samples() if one.path.parent.name == "samples"
}  # data are in the package


@pytest.mark.parametrize(
    ("name", "fast"), [*((name, True) for name in OF_THE_PACKAGE), ("ring_sum", False), ("shuffle_single", False)]
)
def test_the_number_of_processes_changes_no_trial(name: str, *, fast: bool) -> None:
    spec = p2pdp.load_spec(OF_THE_PACKAGE[name])
    one, two = (p2pdp.simulate(spec, trials=4, fast=fast, workers=workers) for workers in (1, 2))
    assert one.trials == two.trials
    assert {**one.to_json(), "seconds": 0.0, "startup_seconds": 0.0} == {
        **two.to_json(), "seconds": 0.0, "startup_seconds": 0.0,
    }  # fmt: skip


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let work be dealt out however little it is."""
    monkeypatch.setattr(blocks, "ALONE_S", 0.0)


def odd(number: int) -> Floats:
    """Rows of different lengths, with what no decimal number says."""
    return np.append(np.exp(np.linspace(-700.0, 700.0, number)), (np.nan, -0.0, np.inf, 5e-324, 0.1 * number))


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 11])
@pytest.mark.usefixtures("at_once")
def test_rows_are_the_same_bits_on_any_number_of_cores(workers: int, count: int) -> None:
    told: list[tuple[int, int]] = []
    rows = Cores(workers, lambda done, total: told.append((done, total)))(count, odd)
    assert [row.tobytes() for row in rows] == [row.tobytes() for row in one_by_one(count, odd)]
    assert told == sorted(told)
    assert told[-1:] == [(count, count)][:count]


def children() -> set[str]:
    """The processes that this one has started, zombies too; other tests may have left some."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def process(_number: int) -> Floats:
    return np.array([float(os.getpid())])


def test_little_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "ALONE_S", 1e9)  # however long this process stands still in the midst of it
    assert {int(pid) for (pid,) in Cores(2)(20, process)} == {os.getpid()}


@pytest.mark.usefixtures("at_once")
def test_much_work_is_dealt_out() -> None:
    assert os.getpid() not in {int(pid) for (pid,) in Cores(2)(20, process)}


@pytest.mark.usefixtures("at_once")
def test_a_process_of_many_starts_no_more() -> None:
    def row(_number: int) -> Floats:
        return np.array([float(worker_count(None))])

    assert {count for (count,) in Cores(2)(4, row)} == {1.0}


@pytest.mark.usefixtures("at_once")
def test_a_killed_process_ends_all() -> None:
    def row(number: int) -> Floats:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return process(number)

    before = children()
    with pytest.raises(RunFailed, match=r"^a process that shared the work was ended by signal 9$"):
        Cores(2)(5, row)
    assert children() <= before


@pytest.mark.parametrize(
    ("raised", "expected"), [(Refused("no"), Refused), (MemoryError(), NotReady), (ValueError("no"), RunFailed)]
)
@pytest.mark.usefixtures("at_once")
def test_an_error_of_a_row_is_raised_by_its_kind(raised: BaseException, expected: type[Exception]) -> None:
    def row(_number: int) -> Floats:
        raise raised

    with pytest.raises(expected, match=r"^no$|memory|process that shared the work no"):
        Cores(2)(5, row)


@pytest.mark.usefixtures("at_once")
def test_an_interrupted_caller_leaves_no_process_behind() -> None:
    def interrupted(_done: int, _total: int) -> None:
        raise SystemExit(130)

    before = children()
    with pytest.raises(SystemExit):
        Cores(2, interrupted)(8, process)
    assert children() <= before


@pytest.mark.usefixtures("at_once")
def test_rows_that_no_pipe_holds_come_whole() -> None:
    def large(number: int) -> Floats:
        return np.arange(100_000.0) + number

    told: list[tuple[int, int]] = []
    rows = Cores(2, lambda done, total: told.append((done, total)))(7, large)
    assert [row.tobytes() for row in rows] == [large(number).tobytes() for number in range(7)]
    assert told == sorted(told)
    assert len(told) > 2  # as rows come, and not when a process ends


@pytest.mark.usefixtures("at_once")
def test_a_process_keeps_what_it_computed_for_its_next_row() -> None:
    known: list[int] = []

    def row(number: int) -> Floats:
        known.append(number)
        return np.array(known, dtype=np.float64)

    assert [found.tolist() for found in Cores(2)(5, row)] == [[0], [1], [0, 2], [1, 3], [0, 2, 4]]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.usefixtures("at_once")
def test_what_is_next_is_done_while_one_fewer_compute(workers: int) -> None:
    done: list[int] = []
    rows = Cores(workers, ahead=True)(9_000, process, lambda: done.append(os.getpid()))  # more than a pipe holds
    assert len(rows) == 9_000
    assert done == [os.getpid()] * (workers > 1)
    assert len({int(pid) for (pid,) in rows} - {os.getpid()}) == workers - 1


@pytest.mark.usefixtures("at_once")
def test_without_leave_nothing_is_done_ahead() -> None:
    done: list[int] = []
    Cores(2)(9, process, lambda: done.append(1))
    assert not done


@pytest.mark.usefixtures("at_once")
def test_an_error_of_what_is_next_leaves_no_process_behind() -> None:
    def failing() -> None:
        raise MemoryError

    before = children()
    with pytest.raises(MemoryError):
        Cores(2, ahead=True)(8, process, failing)
    assert children() <= before
