"""`wire.jsonl` of a peer: what each frame said that it received, one JSON object a line (see `peer/tap.py`).

The file has mode 0600, for it names routes, and is appended to after a restart. Each line is with the operating system
before anything is done with its frame: what a crash undid was received all the same. A line that a crash tore is cut
off when the file is opened again.
"""

from __future__ import annotations

import os
from pathlib import Path

from p2pdp.core.errors import NotReady
from p2pdp.core.ids import Peer
from p2pdp.files.folder import WIRE_FILE
from p2pdp.peer.tap import wire_line


class WireLog:
    """A tap for a host; to be closed by whoever made it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / WIRE_FILE
        try:
            self._descriptor: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            os.ftruncate(self._descriptor, self._path.read_bytes().rfind(b"\n") + 1)
        except OSError as error:
            raise NotReady(f"{self._path}: {error.strerror}") from None

    def __call__(self, sender: Peer, content: bytes) -> None:
        line, descriptor = wire_line(sender, content), self._descriptor
        assert descriptor is not None
        try:
            written = os.write(descriptor, line)
            while written < len(line):
                written += os.write(descriptor, memoryview(line)[written:])
        except OSError as error:
            raise NotReady(f"{self._path}: {error.strerror}") from None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
