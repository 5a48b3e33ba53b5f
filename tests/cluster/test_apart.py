from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cluster.apart import ask
from p2pdp.core.errors import NotReady, RunFailed

SCRIPT = """
import os, signal, sys, time
from p2pdp.core.errors import NotReady
from p2pdp.cluster.apart import serve
def work(order, tell):
    tell({"event": "begun", "order": order, "pid": os.getpid()})
    if order["do"] == "fail":
        raise NotReady("no room")
    if order["do"] == "die":
        os._exit(7)
    if order["do"] == "wait":
        signal.pause()
    return order["do"]
serve(work)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "serves_orders.py").write_text(SCRIPT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "serves_orders"


async def test_an_order_is_done_and_told_of(module: str) -> None:
    told: list[dict[str, Any]] = []
    order = {"do": "this", "much": "x" * 300_000}
    assert await ask(module, order, told.append) == "this"
    assert [(one["event"], one["order"]) for one in told] == [("begun", order)]


async def test_an_error_there_is_raised_here(module: str) -> None:
    with pytest.raises(NotReady, match="no room"):
        await ask(module, {"do": "fail"}, lambda _told: None)
    with pytest.raises(RunFailed, match="exit code 7"):
        await ask(module, {"do": "die"}, lambda _told: None)


async def test_who_is_cancelled_ends_it(module: str) -> None:
    begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    going = asyncio.create_task(ask(module, {"do": "wait"}, lambda told: begun.set_result(told["pid"])))
    child = await asyncio.wait_for(begun, 60)
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
