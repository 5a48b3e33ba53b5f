"""Progress bars on the error stream, and none where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from p2pdp.core.spec import Spec

_COUNTED: Final = {
    "started": "starting processes",
    "enrolling": "nodes enrol",
    "seated": "nodes take their seats",
}
_PHASES: Final = {
    "roster": "nodes take their seats",
    "enrolled": "all nodes are enrolled; the protocol runs",
    "published": "the result is published; nodes close their ledgers",
    "collecting": "auditing what was recorded",
}
_TALLIED: Final = {"excluded": "out", "restarted": "restarted", "stayed_away": "stayed away"}


@contextmanager
def progress_bar(what: str, spec: Spec) -> Iterator[Callable[[int, int], None] | None]:
    """Gives what is to be told of hops done and hops in all."""
    with count_progress(f"{what} {spec.run.protocol}, {spec.run.nodes} nodes") as told:
        yield None if told is None else partial(told, "")


@contextmanager
def count_progress(what: str) -> Iterator[Callable[[str, int, int], None] | None]:
    """Gives what is to be told of the part that is under way, how many parts are done, and how many there are."""
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
    """Gives what is to be told of the life cycle of a run.

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
