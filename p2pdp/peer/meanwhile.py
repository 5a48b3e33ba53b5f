"""The part of a host that goes on while its machine works, in the midst of a call (`node/aside.py`).

Links answer questions, learn what was acknowledged, and send again what was not. A message waits until the work is
over, and so does whatever comes behind it: it is neither recorded nor acknowledged before. What waits is bounded; the
rest is dropped, and comes again.

Guarantee: nothing here calls the machine, draws, or records more than what was to be recorded at that point of the
call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from p2pdp.peer.effects import Effects
from p2pdp.peer.link import Link
from p2pdp.peer.payloads import DATA, PIECE
from p2pdp.peer.peers import Peers

_LATER: Final = DATA | PIECE
FRAMES_MAX: Final = 1024
BYTES_MAX: Final = 32 * 1024 * 1024


class Meanwhile:
    """`take` and `effects` are the host's: to take what was opened, once the work is over, and to say what to do."""

    def __init__(self, peers: Peers, take: Callable[[Link, float], None], effects: Callable[[float], Effects]) -> None:
        self._peers = peers
        self._take = take
        self._effects = effects
        self._kept: deque[tuple[Link, bytes]] = deque()
        self._bytes = 0
        self.works = False

    @property
    def kept(self) -> bool:
        return bool(self._kept)

    def begin(self, now_s: float) -> Effects:
        self.works = True
        return self._effects(now_s)

    def frame(self, data: bytes, now_s: float) -> Effects:
        if (link := self._peers.open(data)) is not None:
            content = self._peers.content
            if not content or not content[0] & _LATER:
                self._peers.read(link, now_s)
            elif len(self._kept) < FRAMES_MAX and self._bytes + len(content) <= BYTES_MAX:
                self._kept.append((link, content))
                self._bytes += len(content)
        return self._effects(now_s)

    def end(self, now_s: float) -> None:
        """Take note that the call goes on; what it sends is sent now, and not when it began."""
        self.works = False
        self._peers.acknowledgements.now_s = now_s

    def next_kept(self, now_s: float) -> Effects:
        """Take the frame that was kept first."""
        link, content = self._kept.popleft()
        self._bytes -= len(content)
        self._peers.content = content
        self._take(link, now_s)
        return self._effects(now_s)
