"""A sampler that draws ahead in a thread: vectors of noise take milliseconds, in which the event loop goes on.

Guarantee: `batch` gives independent draws, each of them once; what was drawn ahead and is not asked for is forgotten.
An error in the thread is raised by the `batch` that asks for the draw.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from p2pdp.core.draws import Mechanism, Sampler, Shape


class AheadSampler:
    """Make it after a fork, like the sampler inside, which must be one that two threads can ask."""

    def __init__(self, sampler: Sampler) -> None:
        self.name = sampler.name
        self._sampler = sampler
        self._executor: ThreadPoolExecutor | None = None
        self._coming: dict[tuple[Mechanism, Shape, int], Future[list[Any]]] = {}

    def __repr__(self) -> str:
        return f"AheadSampler({len(self._coming)} coming)"

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
        coming = self._coming.pop((mechanism, shape, count), None)
        return self._sampler.batch(mechanism, shape, count) if coming is None else coming.result()

    def choice(self, options: int) -> int:
        return self._sampler.choice(options)

    def ahead(self, mechanism: Mechanism, shape: Shape, count: int) -> None:
        """Begin to draw what the next `batch` with these terms is to return, if that is not under way."""
        terms = (mechanism, shape, count)
        if terms in self._coming:
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="noise")
        self._coming[terms] = self._executor.submit(self._sampler.batch, mechanism, shape, count)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
        self._coming.clear()
