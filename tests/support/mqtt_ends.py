"""One end of an MQTT connection, by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from p2pdp.transports.mqtt.access import Broker, Login
from p2pdp.transports.mqtt.client import Client

TOPIC = "p2pdp/test/"


class End:
    """A client, and what it heard."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self.heard: list[bytes] = []
        self.settled: list[tuple[int, int]] = []
        self._news = asyncio.Event()
        self.client = Client(broker, Login(name), self._hear, self._settle)

    def _hear(self, payload: bytes) -> None:
        self.heard.append(payload)
        self._news.set()

    def _settle(self, number: int, code: int) -> None:
        self.settled.append((number, code))
        self._news.set()

    async def enter(self) -> bool:
        return await self.client.enter(TOPIC + self.name)

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(240):
            while not happened():
                self._news.clear()
                await self._news.wait()
