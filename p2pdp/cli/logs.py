"""What happens, as lines on the error stream: a sentence or a JSON document each, from a level on.

Sentences have no time: who keeps them (systemd, a container engine) puts its own before each. JSON lines have `time`,
`level`, `event`, `text` and the facts of the event. What others wrote cannot move the cursor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final

import typer

from p2pdp.core.errors import P2pdpError
from p2pdp.core.happenings import Happening, Level, happening

INTERRUPTED: Final = 130


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def level(self) -> Level:
        return Level[self.name]


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


LogFrom = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="Minimum level of the events that are logged.", show_default=False),
]
LogAs = Annotated[LogFormat, typer.Option("--log-format", help="Format of the log: lines of text, or of JSON.")]


class Log:
    def __init__(self, level: LogLevel, form: LogFormat) -> None:
        self._level = level.level
        self._form = form

    def __call__(self, told: Happening) -> None:
        if told.level >= self._level:
            line = told.text if self._form is LogFormat.TEXT else self._document(told)
            with suppress(OSError):  # who reads the log may go, or its disk be full: the run goes on
                sys.stderr.write(printable(line) + "\n")
                sys.stderr.flush()

    @staticmethod
    def _document(told: Happening) -> str:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        document = {"time": time, "level": told.level.name.lower(), "event": told.event, "text": told.text}
        return json.dumps(document | {**told.facts}, ensure_ascii=True)


@contextmanager
def logged(level: LogLevel, form: LogFormat) -> Iterator[Log]:
    """Where lines are documents, so is the last one, which says why a command ended early."""
    log = Log(level, form)
    try:
        yield log
    except P2pdpError as error:
        if form is LogFormat.TEXT:
            raise
        log(happening("failed", reason=str(error), code=error.exit_code))
        raise typer.Exit(error.exit_code) from None
    except SystemExit as stop:
        if form is LogFormat.TEXT or stop.code != INTERRUPTED:
            raise
        log(happening("interrupted", reason=getattr(stop, "text", "interrupted"), code=INTERRUPTED))
        raise typer.Exit(INTERRUPTED) from None


def printable(text: str) -> str:
    """One line, whatever stands in the names and texts that it quotes."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
