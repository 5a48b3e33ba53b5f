"""The commands that start processes: `demo`, `run`, `resume`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2pdp.cli.options import AsJson, OutFolder, Overrides, RunFolder, SpecFile, print_document

if TYPE_CHECKING:
    from p2pdp.report.result import Result

OnEvent = Callable[[dict[str, Any]], None]


def demo(out: OutFolder = None, as_json: AsJson = False) -> None:
    """A first run: sixteen processes learn a private sum."""
    from p2pdp import api
    from p2pdp.files.spec import demo_spec

    with _told() as on_event:
        result = api.run(demo_spec(), out, on_event=on_event)
    _show(result, as_json=as_json)


def run(spec: SpecFile, out: OutFolder = None, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Runs a spec with real processes on this machine."""
    from p2pdp import api

    loaded = api.load_spec(spec, overrides or [])
    with _told() as on_event:
        result = api.run(loaded, out, on_event=on_event)
    _show(result, as_json=as_json)


def resume(folder: RunFolder, as_json: AsJson = False) -> None:
    """Goes on with an interrupted run."""
    from p2pdp import api

    with _told() as on_event:
        result = api.resume(folder, on_event=on_event)
    _show(result, as_json=as_json)


def _show(result: Result, *, as_json: bool) -> None:
    if as_json:
        print_document(result.to_json())
        return
    from p2pdp.cli.tables import show_result
    from p2pdp.runs.audit import saved_claims

    folder = Path(result.folder or ".")
    show_result(result, folder, claims=saved_claims(folder))


@contextmanager
def _told() -> Iterator[OnEvent | None]:
    """Says on the error stream how far a run is; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting the nodes") as status:

        def told(event: dict[str, Any]) -> None:
            texts = {
                "roster": "all nodes are enrolled; the run goes on",
                "published": "the result is published; the nodes close their ledgers",
                "excluded": f"user {event.get('user')} is out; the others go on",
                "restarted": "a process crashed and was started again",
            }
            status.update(texts.get(event["event"], "running"))

        yield told
