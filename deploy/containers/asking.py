"""Join tokens for containers that are started alike, by a scale: each asks bootstrap's container for its own.

A node makes a key pair (X25519), keeps it, and sends the public half; the answer is sealed to that key. Seats are
given out until as many asked as were expected; where nothing was expected, until nobody new came for a while. Then
it is known how many tokens are needed, and once bootstrap has written them everybody gets one.

Guarantee: nobody gets the token of another. A node that asks again with its key gets the same one, also after a
restart of either side, and none but the holder of the key can read it.

Departure from handing tokens out over a channel that both trust: everybody who reaches the port counts as a user, and
what answers there is taken for bootstrap. So the port is for a network that holds this project's containers and
nobody else; across machines people hand tokens to people.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, Final

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from p2pdp.core.errors import NotReady, Refused
from p2pdp.crypto.identity import KEY_BYTES
from p2pdp.node.disk import durable_secret, write_durably

PORT: Final = 7070
TOKEN: Final = "own.token"
PASSWORD: Final = "password"
AUTHORITY: Final = "ca.pem"
SEATS_MAX: Final = 10_000
PATIENCE_S: Final = 60.0
PAUSE_S: Final = 1.0
POLL_S: Final = 0.1
_HELLO: Final = "p2pdp-token "
_LINE_CHARS_MAX: Final = 100
_ANSWER_BYTES_MAX: Final = 65_536
_FULL: Final = b"full\n"

Clock = Callable[[], float]
Say = Callable[[str], None]


class Seats:
    """Who asked, in the order of asking; `file` keeps it once it is settled."""

    def __init__(self, file: Path, expected: int | None, quiet_s: float, clock: Clock = time.monotonic) -> None:
        self._file = file
        self._quiet_s = quiet_s
        self._clock = clock
        self._lock = threading.Lock()
        self._last_s = clock()
        self._keys: list[str] = json.loads(file.read_text()) if file.is_file() else []
        self._expected = len(self._keys) if self._keys else expected
        self._settled = bool(self._keys)

    def take(self, key: str) -> int | None:
        """The seat of this key; None where all are taken."""
        with self._lock:
            if key in self._keys:
                return self._keys.index(key)
            if self._settled or len(self._keys) == min(self._expected or SEATS_MAX, SEATS_MAX):
                return None
            self._keys.append(key)
            self._last_s = self._clock()
            return len(self._keys) - 1

    def settled(self) -> int | None:
        """How many seats there are, once that is known for good."""
        with self._lock:
            here = len(self._keys)
            if not self._settled:
                quiet = self._expected is None and here > 1 and self._clock() - self._last_s >= self._quiet_s
                if not quiet and here != self._expected:
                    return None
                write_durably(self._file, json.dumps(self._keys).encode())
                self._settled = True
            return here


class Desk(ThreadingTCPServer):
    """Answers with what `files(seat)` gives, as soon as that is not None."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, place: tuple[str, int], seats: Seats, files: Callable[[int], Mapping[str, str] | None]) -> None:
        super().__init__(place, _Asked)
        self.seats = seats
        self.files = files

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A node that hangs up asks again."""


class _Asked(StreamRequestHandler):
    server: Desk
    timeout = PATIENCE_S

    def handle(self) -> None:
        key = _key(self.rfile.readline(_LINE_CHARS_MAX))
        if key is None:
            return
        seat = self.server.seats.take(key.hex())
        if seat is None:
            self.wfile.write(_FULL)
            return
        until_s = time.monotonic() + PATIENCE_S
        while (files := self.server.files(seat)) is None:
            if time.monotonic() > until_s:
                return
            time.sleep(POLL_S)
        self.wfile.write(SealedBox(PublicKey(key)).encrypt(json.dumps(dict(files)).encode()))


def _key(line: bytes) -> bytes | None:
    try:
        hello, text = line[: len(_HELLO)].decode(), line[len(_HELLO) :].decode().strip()
        key = bytes.fromhex(text)
    except ValueError:
        return None
    return key if hello == _HELLO and len(key) == KEY_BYTES else None


def ask(place: tuple[str, int], folder: Path, names: Sequence[str], say: Say) -> None:
    """Until files of these names are in the folder, the last one last; bootstrap may be started later."""
    secret = PrivateKey(durable_secret(folder / "asking.key"))
    told = False
    while (answer := _answer(place, bytes(secret.public_key))) is None:
        if not told:
            say(f"waiting for a join token from {place[0]}")
        told = True
        time.sleep(PAUSE_S)
    if answer == _FULL:
        raise Refused(
            "there is no join token for this node: the run has as many as were there when it began; set P2PDP_NODES, "
            "or begin anew (docker compose down -v)"
        )
    try:
        files = json.loads(SealedBox(secret).decrypt(answer))
        texts = {name: str(files[name]) for name in names}
    except (CryptoError, ValueError, KeyError, TypeError):
        raise NotReady(f"what answers at {place[0]}, port {place[1]}, is not this project's bootstrap") from None
    for name, text in texts.items():
        write_durably(folder / name, text.encode())


def _answer(place: tuple[str, int], public: bytes) -> bytes | None:
    """What the desk says; None where it is not there, or not so far yet."""
    said = b""
    try:
        with socket.create_connection(place, PATIENCE_S) as connection:
            connection.settimeout(2 * PATIENCE_S)
            connection.sendall(f"{_HELLO}{public.hex()}\n".encode())
            while len(said) < _ANSWER_BYTES_MAX and (part := connection.recv(_ANSWER_BYTES_MAX)):
                said += part
    except OSError:
        return None
    return said or None
