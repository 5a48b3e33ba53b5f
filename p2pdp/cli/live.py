"""The commands that start processes: `demo`, `run`, `resume`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from p2pdp.cli.options import AsJson, OutFolder, Overrides, RunFolder, SpecFile, TraceWire, naming, print_document
from p2pdp.cli.progress import Log, LogAs, LogFormat, LogFrom, LogLevel, logged, run_progress
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.happenings import KINDS, happening
from p2pdp.core.ids import BOOTSTRAP, peer_name

if TYPE_CHECKING:
    from p2pdp.report.result import Result

OnEvent = Callable[[dict[str, Any]], None]
INTERRUPTED: Final = 130

NodesPerProcess = Annotated[
    int | None,
    typer.Option(help="Users who share a process; raise it when a process for each user does not fit."),
]
Spawn = Annotated[
    bool | None,
    typer.Option(
        "--spawn/--fork",
        help="Fresh interpreters that share no memory, tens of MiB each, or (the default) forks of one that is warm: "
        "they start in milliseconds and hold a few MiB each.",
        show_default=False,
    ),
]


class Interrupted(SystemExit):
    """Ctrl-C or SIGTERM, once there is a folder that can be continued."""

    def __init__(self, folder: str) -> None:
        super().__init__(INTERRUPTED)
        self.text = f"interrupted; p2pdp resume {folder} goes on with the run"


def demo(out: OutFolder = None, as_json: AsJson = False) -> None:
    """A first run: sixteen processes learn a private sum."""
    from p2pdp import api
    from p2pdp.files.spec import demo_spec

    with _watched(None, LogFormat.TEXT) as watched:
        result = api.run(demo_spec(), out, on_event=watched.on_event)
        watched.faults(result)
    show(result, as_json=as_json)
    check_verified(result)


def run(
    spec: SpecFile,
    out: OutFolder = None,
    overrides: Overrides = None,
    nodes_per_process: NodesPerProcess = None,
    spawn: Spawn = None,
    trace_wire: TraceWire = False,
    log_level: LogFrom = None,
    log_format: LogAs = LogFormat.TEXT,
    as_json: AsJson = False,
) -> None:
    """Runs a spec with real processes on this machine."""
    from p2pdp import api
    from p2pdp.cluster.processes import keep_one_heap

    keep_one_heap()
    loaded = api.load_spec(spec, overrides or [])
    count = 1 if nodes_per_process is None else nodes_per_process
    with _watched(log_level, log_format) as watched, naming(spec):
        result = api.run(
            loaded,
            out,
            nodes_per_process=count,
            spawn=bool(spawn),
            on_event=watched.on_event,
            trace_wire=trace_wire,
        )
        watched.faults(result)
    show(result, as_json=as_json)
    check_verified(result)


def resume(
    folder: RunFolder,
    nodes_per_process: NodesPerProcess = None,
    spawn: Spawn = None,
    log_level: LogFrom = None,
    log_format: LogAs = LogFormat.TEXT,
    as_json: AsJson = False,
) -> None:
    """Continues an interrupted run.

    Uses the process layout of the original run unless overridden.
    """
    from p2pdp import api
    from p2pdp.cluster.folder import is_bootstrap_folder
    from p2pdp.cluster.processes import keep_one_heap

    keep_one_heap()
    default = LogLevel.INFO if is_bootstrap_folder(folder) else LogLevel.WARNING  # it may wait for days
    with _watched(log_level, log_format, default) as watched:
        result = api.resume(folder, nodes_per_process=nodes_per_process, spawn=spawn, on_event=watched.on_event)
        watched.faults(result)
    show(result, as_json=as_json)
    check_verified(result)


def check_verified(result: Result) -> None:
    """End the command as failed where the ledgers of the run did not pass verification."""
    if result.audit_problem is not None:
        raise VerificationFailed(f"{result.folder}: verification failed, and the result may be false")


def show(result: Result, *, as_json: bool) -> None:
    if as_json:
        print_document(result.as_written())
        return
    from p2pdp.cli.tables import show_result

    show_result(result, Path(result.folder or "."))


@contextmanager
def _watched(level: LogLevel | None, form: LogFormat, default: LogLevel = LogLevel.WARNING) -> Iterator[_Watched]:
    """Show the progress of a run, and say how to continue one that is interrupted.

    Whoever asks for lines gets lines, and no bar between them.
    """
    folders: list[str] = []
    plain = level is None and form is LogFormat.TEXT
    with logged(level or default, form) as log:
        try:
            with run_progress() if plain else nullcontext() as shown:

                def on_event(event: dict[str, Any]) -> None:
                    if event["event"] == "folder":
                        folders.append(event["folder"])
                    if shown is not None and event["event"] != "clipped":
                        shown(event)
                    else:
                        _log(log, event)

                yield _Watched(on_event, log)
        except SystemExit as stop:
            if stop.code == INTERRUPTED and folders:
                raise Interrupted(folders[0]) from None
            raise


@dataclass(frozen=True)
class _Watched:
    on_event: OnEvent
    log: Log

    def faults(self, result: Result) -> None:
        """Log the faults of all nodes, which are known when all of them have ended."""
        for kind, count in result.faults.items():
            self.log(happening("fault", kind=kind, count=count))


def _log(log: Log, event: dict[str, Any]) -> None:
    """Log an event; of what is counted only the end, else a slow machine would log more."""
    if event["event"] not in KINDS or event.get("count") != event.get("of"):
        return
    if event.get("user") == BOOTSTRAP:
        event = {**event, "user": peer_name(BOOTSTRAP)}
    log(happening(**event))
