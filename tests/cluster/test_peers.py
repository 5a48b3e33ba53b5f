from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cluster.layout import Layout
from p2pdp.cluster.peers import (
    COLLECT_TOGETHER,
    NOWHERE,
    REFUSED,
    SEATED,
    _once,
    _Places,
    _seats,
    _together,
    _user_group,
    node_folder,
    places,
    process_main,
)
from p2pdp.core.addresses import Address
from p2pdp.core.errors import Refused, RunFailed
from p2pdp.crypto.roster import Roster
from p2pdp.runs.audit import verify
from p2pdp.runs.live import resume
from p2pdp.transports.contract import ROLES
from tests.support.finished_runs import write_public
from tests.support.local import SPEC, job_in
from tests.support.toys import roster


def test_users_are_where_their_numbers_say_unless_some_stayed_away(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run", SPEC.replace("nodes = 3", "nodes = 5"))
    signed = roster(3)
    for slot, user in ((1, 0), (4, 1)):
        node_folder(job, slot).mkdir(parents=True)
        (node_folder(job, slot) / "identity.pub").write_text(signed.entries[user].identity.hex() + "\n")
    assert places(job, signed) == [1, 4, NOWHERE]


@pytest.mark.parametrize(("n", "where"), [(5, [10, 11, 12, 13, 14]), (3, [11, 14, None])])
def test_addresses_follow_the_slots(tmp_path: Path, n: int, where: list[int | None]) -> None:
    job = job_in(tmp_path / "run", SPEC.replace("nodes = 3", "nodes = 5"))
    signed = roster(n)
    if n == 3:
        for slot, user in ((1, 0), (4, 1)):
            node_folder(job, slot).mkdir(parents=True)
            (node_folder(job, slot) / "identity.pub").write_text(signed.entries[user].identity.hex() + "\n")
    users = _Places(job, lambda slot: Address("127.0.0.1", 10 + slot))
    found = [users.where(signed, user) for user in range(n)]
    assert [address.port if isinstance(address, Address) else None for address in found] == where


Tell = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def pipe() -> Iterator[tuple[int, Tell]]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield writing, lambda: [json.loads(line) for line in os.read(reading, 1 << 16).splitlines()]
    for end in (reading, writing):
        os.close(end)


async def test_all_that_runs_without_sockets_is_in_one_process(tmp_path: Path, pipe: tuple[int, Tell]) -> None:
    writing, told = pipe
    job = job_in(tmp_path / "run", SPEC.replace("seed = 1", 'seed = 1\ntransport = "memory"'))
    async with asyncio.timeout(60):
        await process_main(job, Layout(3, in_one_process=True), ROLES, (), {}, writing)()
    events = told()
    assert {event["slot"] for event in events if event["event"] == SEATED} == {0, 1, 2}
    assert events[-1]["event"] == "published"
    found = verify(job.folder)
    assert (found.verified, found.problems) == ("complete", [])
    facts = {"run_id": job.run_id.hex(), "started": "2024-01-01T00:00:00+00:00"}
    (job.folder / "run.json").write_text(json.dumps(facts))
    write_public(job)
    result = resume(job.folder, lambda _event: None)
    assert (result.transport, result.hops, result.missing) == ("memory", 6, [])


def ends(log: list[str], name: str, error: Exception | None = None) -> Callable[[], Awaitable[None]]:
    async def body() -> None:
        await asyncio.sleep(0)
        log.append(name)
        if error is not None:
            raise error

    return body


def waits(log: list[str]) -> Callable[[], Awaitable[None]]:
    async def body() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            log.append("ended in good order")

    return body


@pytest.mark.parametrize(("count", "times"), [(1, 1), (3, 3), (150, COLLECT_TOGETHER)])
async def test_the_collector_comes_as_often_for_each_as_for_one_alone(
    count: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen, done = gc.get_threshold(), list[tuple[int, int, int]](), list[str]()
    for name in ("freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, partial(done.append, name))

    async def user() -> None:
        seen.append(gc.get_threshold())

    pipe = os.open(os.devnull, os.O_WRONLY)
    await _user_group(dict.fromkeys(range(count), user), pipe)()
    assert seen == [(times * before[0], *before[1:])] * count
    assert gc.get_threshold() == before
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)
    await _user_group({0: user}, pipe)()
    assert done.pop() == "unfreeze"
    done.clear()
    _seats(range(1), pipe)(0)
    seated = _seats(range(2), pipe)
    seated(0)
    assert done == []
    seated(1)
    assert done == ["freeze"]
    os.close(pipe)


async def test_the_first_that_fails_ends_the_others() -> None:
    log: list[str] = []
    with pytest.raises(RunFailed, match="the disk"):
        await _together(waits(log), ends(log, "one"), ends(log, "two", RunFailed("the disk was rolled back")))
    assert log == ["one", "two", "ended in good order"]


async def test_whoever_is_told_to_end_ends_all() -> None:
    log: list[str] = []
    task = asyncio.ensure_future(_together(waits(log), waits(log)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["ended in good order"] * 2


async def test_one_that_is_refused_is_told_of_and_waits_for_the_others(pipe: tuple[int, Tell]) -> None:
    writing, told = pipe
    log: list[str] = []
    late = Refused("the run has started without this node")

    async def longer() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        log.append("done")

    with pytest.raises(Refused, match="without this node"):
        await _user_group({7: ends(log, "late", late), 8: longer}, writing)()
    assert log == ["late", "done"]
    assert told() == [{"event": REFUSED, "slot": 7, "text": str(late)}]


def test_rosters_that_are_the_same_are_kept_once() -> None:
    once, signed = _once(), roster(3)
    again = Roster.from_bytes(signed.to_bytes())
    assert once(signed) is signed
    assert once(again) is signed
    other = roster(4)
    assert once(other) is other
    parts = [Roster.from_bytes(signed.part(users)) for users in ([0, 1], [1, 2])]
    assert [once(part) for part in parts] == parts
