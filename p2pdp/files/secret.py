"""Files that others fill, made so that only their owner can read them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def make_secret_file(path: Path) -> None:
    """An empty file with mode 0600, if there is none. Where that fails, whoever opens the file says why."""
    with suppress(OSError, ValueError):
        path.touch(0o600)
