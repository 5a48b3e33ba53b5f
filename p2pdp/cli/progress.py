"""A progress bar on the error stream, and none where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from p2pdp.core.spec import Spec


@contextmanager
def progress_bar(what: str, spec: Spec) -> Iterator[Callable[[int, int], None] | None]:
    """Gives what is to be told of hops done and hops in all."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{what} {spec.run.protocol}, {spec.run.nodes} nodes", total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=min(done, total), total=total)

        yield told
