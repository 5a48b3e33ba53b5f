from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import p2pdp
from p2pdp.cluster.blocks import in_blocks, worker_count
from p2pdp.core.errors import NotReady, RunFailed, UsageError
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
