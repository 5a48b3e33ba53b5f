"""Looks at a node from time to time while it runs: for what is counted there and not told one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

PULSE_S: Final = 1.0

Outcome = TypeVar("Outcome")


async def with_pulse(body: Awaitable[Outcome], beat: Callable[[], None], every_s: float = PULSE_S) -> Outcome:
    """Runs the body; `beat` is called every so often meanwhile, and once more at its end, however it ends."""

    async def beats() -> None:
        while True:
            await asyncio.sleep(every_s)
            beat()

    heart = asyncio.create_task(beats(), name="pulse")
    try:
        return await body
    finally:
        heart.cancel()
        with suppress(asyncio.CancelledError):
            await heart
        beat()
