"""What the simulated world may do to a run.

The network may: lose a frame, deliver it twice, delay it, let it overtake others on its way (`reordering`);
cut the world in two for a while (`Partition`). It may not read, change or make up frames that a receiver
accepts: that is what the channel is for, and tests do it byte by byte elsewhere.

A machine may: stop at any moment, in particular between two records of one write, losing what it had not
yet written and all frames of that call; come back with its disk, or never; come back with an earlier state
of its disk (`rolled_back_to`). It may not lie: parties are honest but curious.

Everything follows from the seed of the world: the same seed is the same run, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2pdp.core.ids import Peer


@dataclass(frozen=True, slots=True)
class Crash:
    """Peer stops when it has written that many records, or at a time; `down_s` None: for good.

    Records are counted from 1, over both ledgers and all lives of the peer; the line that opens a file counts
    as one. `torn_bytes`: only so many bytes of the last one arrive. `rolled_back_to` cuts both ledgers back to
    the first so many records of the view.
    """

    peer: Peer
    at_record: int | None = None
    at_s: float | None = None
    down_s: float | None = 1.0
    torn_bytes: int | None = None
    rolled_back_to: int | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """Between `start_s` and `end_s` nothing passes between `side` and everybody else."""

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
