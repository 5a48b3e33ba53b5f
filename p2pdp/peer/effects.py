"""The effects that a host asks of the shell around it, and the entropy and waits that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from p2pdp.core.ids import Peer
from p2pdp.core.step import Fault, Output


class Entropy(Protocol):
    """The randomness of a host itself; noise and routing choices come from a sampler."""

    def salt(self) -> bytes: ...

    def nonce(self) -> bytes: ...

    def salt_and_nonce(self) -> tuple[bytes, bytes]: ...


class Effects(NamedTuple):
    """The shell appends `writes` (file, bytes) in order first, then hands `frames` to the transport.

    Neither order may be changed: a frame whose record is not yet with the operating system could
    be followed by a restart that draws its noise again.
    """

    writes: tuple[tuple[str, bytes], ...] = ()
    frames: tuple[tuple[Peer, bytes], ...] = ()
    wake_at_s: float | None = None
    outputs: tuple[Output, ...] = ()
    faults: tuple[Fault, ...] = ()

    def __repr__(self) -> str:
        return f"Effects({len(self.writes)} writes, {len(self.frames)} frames)"


HopEffects = tuple[Sequence[tuple[str, bytes]], Sequence[tuple[Peer, bytes]], float | None]
"""The effects of the fast path: writes and frames, as above, and when to be woken, where that is sooner than before.

Where the host `gathers`, records may not be among the writes yet, also those of these frames: `Host.take_writes` has
them, and they go before any frame.
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """The host's waits; none of them is on the path of a message that arrives.

    Defaults suit local and wide-area networks. The simulator shortens none of them.
    """

    patience_s: float = 10.0  # silence after which bootstrap takes somebody for gone, if it stays silent when probed
    tick_s: float = 1.0  # an acknowledgement that no message takes along goes out within this
    resend_s: float = 2.0  # first wait before unacknowledged frames are sent again; doubles
    resend_max_s: float = 5.0
    rejoin_s: float = 5.0  # after a restart: how long to wait for peers to compare numbers
