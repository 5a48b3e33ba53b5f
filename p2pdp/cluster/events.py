"""What processes tell their launcher, one JSON document a line through a pipe that all of them share.

Only the run's life cycle passes here: who is in the roster, what is published, who is out, why a process
failed. A line is written at once and is shorter than what the system writes in one piece, so lines of
several processes do not mix.
"""

from __future__ import annotations

import json
import os
from typing import Any

READ_BYTES_MAX = 1 << 16


def send_event(pipe: int, name: str, **more: Any) -> None:
    os.write(pipe, json.dumps({"event": name, **more}, ensure_ascii=False).encode() + b"\n")


class Events:
    """The launcher's end of the pipe."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self._rest = b""

    def read(self) -> list[dict[str, Any]]:
        """All that was told since the last time."""
        data = self._rest
        while True:
            try:
                piece = os.read(self.reading, READ_BYTES_MAX)
            except BlockingIOError:
                break
            data += piece
            if not piece:
                break
        *lines, self._rest = data.split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)
