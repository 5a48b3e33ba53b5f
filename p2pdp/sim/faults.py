"""The powers of the simulated world over a run, and the network that has a part of them.

The network decides when, how often and whether a frame arrives. It may lose a frame, deliver it twice, delay it, let it
overtake others on its way (`reordering`), and cut the world in two for a while (`Partition`). It may not read, change
or make up frames that a receiver accepts: the channel prevents that, and tests do it byte by byte elsewhere.

A machine may stop at any moment, in particular between two records of one write, losing what it had not yet written and
all frames of that call; come back with its disk, or never; come back with an earlier state of its disk
(`rolled_back_to`), or with one that its medium has changed (`DiskFault`). It may not lie: parties are honest but
curious.

Everything follows from the seed of the world: the same seed is the same run, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import SeededEntropy


class Harm(Enum):
    """The ways of a disk: zeros or garbage behind the end, a flipped bit, a write lost or gone to another place."""

    ZEROS = auto()
    GARBAGE = auto()
    FLIPPED = auto()
    LOST = auto()
    MISDIRECTED = auto()


@dataclass(frozen=True, slots=True)
class DiskFault:
    """A harm to a ledger while its peer is down, at a share of its length and to so many bytes."""

    ledger: str
    harm: Harm
    place: float = 0.5
    size: int = 64

    def strike(self, data: bytearray) -> None:
        """Change a file; one that is empty stays so."""
        at = min(int(self.place * len(data)), len(data) - 1)
        until = min(at + self.size, len(data))
        if not data:
            return
        if self.harm is Harm.ZEROS:
            data += bytes(self.size)
        elif self.harm is Harm.GARBAGE:
            data += bytes((37 * place + 11) % 251 for place in range(self.size))
        elif self.harm is Harm.FLIPPED:
            data[at] ^= 1 << self.size % 8
        elif self.harm is Harm.LOST:
            data[at:until] = bytes(until - at)
        else:
            other = len(data) - until
            data[at:until] = data[other : other + until - at]


@dataclass(frozen=True, slots=True)
class Crash:
    """A stop of a peer when it has written this many records, or at a time; for good where `down_s` is None.

    Records are counted from 1, over both ledgers and all lives of the peer; the line that opens a file counts
    as one, and so does a piece of a value on its way.
    `torn_bytes`: only so many bytes of the last one arrive. `rolled_back_to` cuts both ledgers back to
    the first so many records of the view, and `disk` changes one of them.
    """

    peer: Peer
    at_record: int | None = None
    at_s: float | None = None
    down_s: float | None = 1.0
    torn_bytes: int | None = None
    rolled_back_to: int | None = None
    disk: DiskFault | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A cut: between `start_s` and `end_s` nothing passes between `side` and everybody else."""

    start_s: float
    end_s: float
    side: frozenset[Peer]


@dataclass(frozen=True, slots=True)
class Faults:
    loss: float = 0.0
    duplication: float = 0.0
    reordering: bool = False  # otherwise frames from one peer to another arrive in order, as on a connection
    delay_s: float = 0.001  # the shortest way
    jitter_s: float = 0.0005  # mean of the exponential part
    crashes: tuple[Crash, ...] = ()
    partitions: tuple[Partition, ...] = ()


NO_FAULTS = Faults()

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
        """Return the times at which copies of a frame arrive; none if it is lost."""
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
        """Return an exponential delay by its first terms: cheap, positive, and the same on every platform."""
        uniform = self._uniform()
        return self._faults.jitter_s * (uniform + uniform**2 / 2 + uniform**4)
