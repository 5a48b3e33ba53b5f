"""Tells a person for whom or what a node waits: once that lasts, and then each time that it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

NOTE_S: Final = 3.0


class Waiting:
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since_s: float | None = None
        self._told: str | None = None

    def note(self, reason: str | None, now_s: float) -> None:
        """What it waits for at the moment, None for nothing; to be called from time to time."""
        if reason is None:
            if self._told is not None:
                self._say("bootstrap is there; it goes on")
            self._since_s = self._told = None
            return
        if self._since_s is None:
            self._since_s = now_s
        if reason != self._told and now_s - self._since_s >= NOTE_S:
            self._told = reason
            self._say(reason)
