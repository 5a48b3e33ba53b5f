"""The simulated network: decides when, how often and whether a frame arrives."""

from __future__ import annotations

from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.sim.faults import Faults

_UNIT = 2.0**-64


class Network:
    def __init__(self, faults: Faults, seed: int) -> None:
        self._faults = faults
        self._entropy = SeededEntropy(seed, "network")
        self._latest: dict[tuple[Peer, Peer], float] = {}
        self.bytes = 0
        self.frames = 0

    def _uniform(self) -> float:
        return (int.from_bytes(self._entropy.salt()[:8], "big") + 0.5) * _UNIT

    def arrivals(self, sender: Peer, receiver: Peer, size: int, now_s: float) -> list[float]:
        """The times at which copies of a frame arrive; none if it is lost."""
        faults = self._faults
        self.bytes += size
        self.frames += 1
        for cut in faults.partitions:
            if cut.start_s <= now_s < cut.end_s and (sender in cut.side) != (receiver in cut.side):
                return []
        if faults.loss and self._uniform() < faults.loss:
            return []
        copies = 2 if faults.duplication and self._uniform() < faults.duplication else 1
        times = [now_s + faults.delay_s + self._delay() for _ in range(copies)]
        if not faults.reordering:
            way = (sender, receiver)
            times = [max(at_s, self._latest.get(way, 0.0)) for at_s in times]
            self._latest[way] = times[-1] = max(times)
        return times

    def _delay(self) -> float:
        """An exponential delay by its first terms: cheap, positive, and the same on every platform."""
        uniform = self._uniform()
        return self._faults.jitter_s * (uniform + uniform**2 / 2 + uniform**4)
