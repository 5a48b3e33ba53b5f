from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from p2pdp.node import aside as module
from p2pdp.node.aside import Aside


@pytest.fixture(autouse=True)
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "LONG_S", 0.0)
    yield
    assert not module._ONE_AT_A_TIME.locked()


class Gate:
    """Work that lasts until a test opens it; `calls` says on which threads it was done."""

    def __init__(self, found: Callable[[int], int] = lambda number: 10 * number) -> None:
        self.found = found
        self.opened = threading.Event()
        self.begun = threading.Event()
        self.threads: list[str] = []

    def __call__(self, number: int) -> int:
        self.threads.append(threading.current_thread().name)
        self.begun.set()
        assert self.opened.wait(30.0)
        return self.found(number)


class Ready:
    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
        self.event.set()

    async def comes(self) -> None:
        async with asyncio.timeout(30.0):
            await self.event.wait()
        self.event.clear()


def adding(work: Callable[[int], int], steps: list[str], count: int) -> Callable[[], list[int]]:
    """A call that does something before, between and after its works."""

    def act() -> list[int]:
        found = []
        for number in range(1, count + 1):
            steps.append(f"before {number}")
            found.append(work(number))
        steps.append("after")
        return found

    return act


async def test_a_call_stands_still_only_where_it_works() -> None:
    ready, gate, steps = Ready(), Gate(), list[str]()
    aside: Aside[list[int]] = Aside(ready)
    assert aside.call(adding(aside.does(gate), steps, 2)) is None
    assert aside.working
    assert not aside.does_at_once
    assert steps == ["before 1"]
    assert gate.begun.wait(30.0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (steps, ready.times) == (["before 1"], 0), "the loop goes on, and the call does not"
    gate.opened.set()
    await ready.comes()
    assert steps == ["before 1"], "nor does it when its work is done, before it is told to"
    assert aside.go_on() is None
    assert steps == ["before 1", "before 2"]
    await ready.comes()
    assert aside.go_on() == [10, 20]
    assert not aside.working
    assert steps == ["before 1", "before 2", "after"]
    assert gate.threads == ["aside", "aside"]


async def test_a_call_without_work_returns_at_once() -> None:
    aside: Aside[int] = Aside(Ready())
    assert aside.call(lambda: 7) == 7
    assert not aside.working


async def test_errors_come_out_of_the_call() -> None:
    def wrong(_number: int) -> int:
        raise ArithmeticError("the work")

    ready, gate = Ready(), Gate(wrong)
    aside: Aside[list[int]] = Aside(ready)
    gate.opened.set()
    assert aside.call(adding(aside.does(gate), [], 1)) is None
    await ready.comes()
    with pytest.raises(ArithmeticError, match="the work"):
        aside.go_on()
    assert not aside.working
    with pytest.raises(ZeroDivisionError):
        aside.call(lambda: [1 // 0])
    assert aside.call(lambda: [3]) == [3]


async def test_work_that_was_short_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONG_S", 60.0)
    ready, gate = Ready(), Gate()
    aside: Aside[list[int]] = Aside(ready)
    gate.opened.set()
    aside._took_s = 60.0
    assert not aside.does_at_once
    assert aside.call(adding(aside.does(gate), [], 1)) is None, "nothing is known of the first"
    await ready.comes()
    assert aside.go_on() == [10]
    assert aside.does_at_once
    with module._ONE_AT_A_TIME:
        assert not aside.does_at_once, "another user of this process works"
    assert aside.call(adding(aside.does(gate), [], 2)) == [10, 20]
    assert gate.threads == ["aside", "MainThread", "MainThread"]


async def test_of_all_users_in_a_process_one_works_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, readies = Gate(), Gate(), (Ready(), Ready())
    one: Aside[list[int]] = Aside(readies[0])
    other: Aside[list[int]] = Aside(readies[1])
    assert one.call(adding(one.does(first), [], 1)) is None
    assert first.begun.wait(30.0)
    monkeypatch.setattr(module, "LONG_S", 60.0)  # it would not be long, but would have to wait
    assert other.call(adding(other.does(second), [], 1)) is None
    second.opened.set()
    assert second.threads == []
    first.opened.set()
    for ready, aside in zip(readies, (one, other), strict=True):
        await ready.comes()
        assert aside.go_on() == [10]


async def test_a_call_that_nobody_waits_for_ends_where_it_works() -> None:
    ready, gate, steps = Ready(), Gate(), list[str]()
    aside: Aside[list[int]] = Aside(ready)
    assert aside.call(adding(aside.does(gate), steps, 1)) is None
    thread = aside._thread
    assert thread is not None
    aside.leave()
    gate.opened.set()
    await asyncio.to_thread(thread.join, 30.0)
    assert not thread.is_alive()
    assert steps == ["before 1"]


def test_it_may_end_after_its_loop() -> None:
    gate, kept = Gate(), list[Any]()

    async def begin() -> None:
        aside: Aside[list[int]] = Aside(Ready())
        assert aside.call(adding(aside.does(gate), [], 1)) is None
        kept.append(aside._thread)
        aside.leave()

    asyncio.run(begin())
    gate.opened.set()
    kept[0].join(30.0)
    assert not kept[0].is_alive()
