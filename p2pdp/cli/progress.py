"""Progress of a run on the error stream: bars in a terminal, or log lines.

A log line is a sentence or a JSON document, from a minimum level on. Sentences carry no time: systemd and container
engines put their own before each. JSON lines have `time`, `level`, `event`, `text` and the facts of the event. Texts
from elsewhere cannot move the cursor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final

import typer

from p2pdp.core.errors import P2pdpError
from p2pdp.core.happenings import OWNERS, Happening, Level, happening
from p2pdp.core.spec import Spec

_COUNTED: Final = {
    "started": "starting processes",
    "enrolling": "nodes enrol",
    "seated": "nodes receive the roster",
}
_PHASES: Final = {
    "roster": "nodes receive the roster",
    "enrolled": "all nodes are enrolled; the protocol runs",
    "published": "the result is published; nodes close their ledgers",
    "collecting": "auditing what was recorded",
}
_TALLIED: Final = {"excluded": "out", "restarted": "restarted", "stayed_away": "stayed away"}


@contextmanager
def progress_bar(what: str, spec: Spec) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar; yield a callback that takes hops done and hops in all."""
    with count_progress(f"{what} {spec.run.protocol}, {spec.run.nodes} nodes") as told:
        yield None if told is None else partial(told, "")


@contextmanager
def count_progress(what: str) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar; yield a callback that takes the current part, and the numbers of parts done and in all."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def told(part: str, done: int, total: int) -> None:
            bar.update(task, description=f"{what} {part}".rstrip(), completed=min(done, total), total=total)

        yield told


@contextmanager
def run_progress() -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """Show a bar; yield a callback that takes the events of a run's life cycle.

    Nodes are counted until they are enrolled. How far the protocol is, nobody knows then: whoever collected a line a
    message would have the route. So there are the phases, the time, and whoever was restarted or put out.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None, count="")
        tally: dict[str, int] = {}
        phase = "starting"

        def told(event: dict[str, Any]) -> None:
            nonlocal phase
            name, done, total = event["event"], event.get("count"), event.get("of")
            if name in _TALLIED:
                tally[name] = tally.get(name, 0) + 1
            phase = event.get("text") or _COUNTED.get(name) or _PHASES.get(name) or phase
            if name in _COUNTED:
                bar.update(task, completed=done, total=total, count=f"{done}/{total or '?'}")
            elif name in _PHASES:
                bar.update(task, completed=0, total=None, count="")
            notes = [f"{count} {_TALLIED[kind]}" for kind, count in tally.items()]
            bar.update(task, description="; ".join([phase, *notes]))

        yield told


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
    """The lines on the error stream. What is for the owner of data is in no JSON and, unless `to_owner`, in no line."""

    def __init__(self, level: LogLevel, form: LogFormat, *, to_owner: bool = True) -> None:
        self._level = level.level
        self._form = form
        self._left_out = () if to_owner and form is LogFormat.TEXT else OWNERS

    def __call__(self, told: Happening) -> None:
        if told.event in self._left_out:
            return
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
def logged(level: LogLevel, form: LogFormat, *, to_owner: bool = True) -> Iterator[Log]:
    """Yield a log; where lines are JSON, so is the last one, which says why a command ended early."""
    log = Log(level, form, to_owner=to_owner)
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
    """Return a text as one line without control characters."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
