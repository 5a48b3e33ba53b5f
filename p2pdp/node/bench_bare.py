"""What a hop costs without us: a boxed token that is opened, boxed again and sent on, and nothing else.

This is the baseline of `bench hops`, kept as lean as it can be: in the same processes and over the same
connections as real hops, one frame size, one key a pair, a random nonce a frame, and the next user drawn as a
walk draws it. No context, no link, no ledger, no protocol; nothing but the benchmark uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

from nacl.bindings import crypto_box_beforenm, crypto_box_easy_afternm, crypto_box_open_easy_afternm

from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import NONCE_BYTES, SystemEntropy
from p2pdp.mechanisms.sampler import ExactSampler
from p2pdp.transports.contract import Origin
from p2pdp.wire.frames import FORMAT_VERSION
from p2pdp.wire.padding import FRAME_SIZES

BARE: Final = 255  # a kind of frame that no host knows
_HEADER: Final = Struct(">BBi")
_BOX_AT: Final = _HEADER.size + NONCE_BYTES
_MAC_BYTES: Final = 16
_LEFT: Final = Struct(">q")  # hops that a token has still to make
_PADDING: Final = bytes(FRAME_SIZES[0] - _BOX_AT - _MAC_BYTES - _LEFT.size)

Send = Callable[[Peer, bytes], None]


class BareNode:
    """One user. `done` is called by whoever makes a token's last hop."""

    def __init__(self, me: Peer, options: Sequence[Peer], send: Send, done: Callable[[], None]) -> None:
        self._me = me
        self._options = options
        self._send = send
        self._done = done
        self._header = _HEADER.pack(FORMAT_VERSION, BARE, me)
        self._entropy = SystemEntropy()
        self._choice = ExactSampler().choice
        self._keys: dict[Peer, bytes] = {}

    def agree(self, secret: bytes, publics: dict[Peer, bytes]) -> None:
        self._keys = {peer: crypto_box_beforenm(public, secret) for peer, public in publics.items()}

    def begin(self, hops: int) -> None:
        """A token that makes so many hops, the first of them here."""
        self._pass_on(hops)

    def hop(self, _origin: Origin, frame: bytes) -> None:
        peer = _HEADER.unpack_from(frame)[2]
        content = crypto_box_open_easy_afternm(frame[_BOX_AT:], frame[_HEADER.size : _BOX_AT], self._keys[peer])
        self._pass_on(_LEFT.unpack_from(content)[0])

    def _pass_on(self, left: int) -> None:
        to = self._me
        while to == self._me:
            left -= 1
            if left <= 0:
                self._done()
                return
            to = self._options[self._choice(len(self._options))]
        nonce = self._entropy.nonce()
        box = crypto_box_easy_afternm(_LEFT.pack(left) + _PADDING, nonce, self._keys[to])
        self._send(to, self._header + nonce + box)
