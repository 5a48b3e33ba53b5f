"""A tab of a real browser that is driven over its DevTools protocol: a page is looked at while it changes."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import aiohttp

from tests.support.launched import GUARD_S


class Tab:
    """`complaints` holds what the browser's console said and what scripts threw."""

    def __init__(self, browser: str, place: Path) -> None:
        self._command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0",
            f"--user-data-dir={place / 'tab'}", "about:blank",
        ]  # fmt: skip
        self.complaints: list[str] = []
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0

    async def __aenter__(self) -> Self:
        where = await asyncio.to_thread(self._started)
        self._session = aiohttp.ClientSession()
        pages: list[dict[str, Any]] = []
        while not pages:  # it listens before its first page is there
            async with self._session.get(f"http://{where}/json/list") as answer:
                pages = [one for one in await answer.json() if one["type"] == "page"]
        (page,) = pages
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        self._reader = asyncio.create_task(self._read())
        for domain in ("Page", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reader.cancel()
        await self._socket.close()
        await self._session.close()
        self._process.kill()
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _started(self) -> str:
        """Return where the browser listens."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = re.search(rb"DevTools listening on ws://([^/]+)/", line)
            if found:
                return found[1].decode()
        raise AssertionError("the browser ended")

    async def _read(self) -> None:
        async for said in self._socket:
            told = json.loads(said.data)
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif told["method"] == "Log.entryAdded":
                self.complaints.append(told["params"]["entry"]["text"])
            elif told["method"] == "Runtime.exceptionThrown":
                self.complaints.append(str(told["params"]["exceptionDetails"]))

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        told = await asyncio.wait_for(answer, GUARD_S)
        assert "error" not in told, told
        result: dict[str, Any] = told["result"]
        return result

    async def asks(self, expression: str) -> Any:
        """Return what an expression of JavaScript is worth in the page."""
        told = await self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def until(self, expression: str, holds: Callable[[Any], bool] = bool) -> Any:
        """Wait until an expression holds, by asking again."""
        until_s = time.monotonic() + GUARD_S
        while not holds(found := await self.asks(expression)):
            assert time.monotonic() < until_s, f"{expression} is {found}"
            await asyncio.sleep(0.05)
        return found

    async def goes_to(self, url: str) -> None:
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def presses(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=9)

    async def pictures(self, file: Path) -> None:
        told = await self.send("Page.captureScreenshot", captureBeyondViewport=True)
        await asyncio.to_thread(file.write_bytes, b64decode(told["data"]))
