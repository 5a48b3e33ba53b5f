"""The commands of a run across machines: `bootstrap`, `node`. Events are logged on the error stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2pdp.cli.options import AsJson, IndexUrl, Overrides, SpecFile, TraceWire, print_document, serves
from p2pdp.cli.progress import INTERRUPTED, LogAs, LogFormat, LogFrom, LogLevel, logged
from p2pdp.core.endings import RunStopped
from p2pdp.core.errors import RunFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.happenings import happening

if TYPE_CHECKING:
    from p2pdp.report.result import Result
    from p2pdp.runs.own_part import TookPart

NewFolder = Annotated[Path, typer.Option(metavar="DIR", help="Output folder; an unfinished one is continued.")]


@contextmanager
def _goes_on(out: Path, *, blocked: bool = False) -> Iterator[None]:
    """Say how to go on with what is interrupted, or `blocked` by a user who is gone."""
    try:
        yield
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            stop.text = f"interrupted; the same command with --out {out} goes on"  # type: ignore[attr-defined]
        raise
    except RunFailed as error:
        if not blocked or isinstance(error, (Expired, RunStopped)):
            raise
        raise RunFailed(f"{error}; the same command with --out {out} goes on once it can") from None


@serves(may_stay=True)
def bootstrap(
    spec: SpecFile,
    tokens: Annotated[int, typer.Option(metavar="N", help="Number of join tokens to write.")],
    out: NewFolder,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address to listen on, if without a broker; port 0: a free one."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where others reach this machine or the broker; tokens name it."),
    ] = None,
    index: IndexUrl = None,
    trace_wire: TraceWire = False,
    log_level: LogFrom = None,
    log_format: LogAs = LogFormat.TEXT,
    overrides: Overrides = None,
    as_json: AsJson = False,
    *,
    served: Any,
) -> None:
    """Runs bootstrap and curator for users on other machines."""
    from p2pdp.cli.live import check_verified, show
    from p2pdp.files.spec import load_spec
    from p2pdp.runs.across_bootstrap import bootstrap as serve
    from p2pdp.runs.watching import Watching
    from p2pdp.transports.contract import Listening

    loaded = load_spec(spec, overrides or [])

    def show_now(result: Result) -> None:
        show(result, as_json=as_json)
        sys.stdout.flush()

    with logged(log_level or LogLevel.INFO, log_format) as log, _goes_on(out, blocked=True):
        watching = Watching(served, index)
        where = Listening(listen, address)
        result = serve(loaded, where, tokens, out, log, watching, show_now, trace_wire=trace_wire)
    check_verified(result)


@serves(may_stay=True)
def node(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The node's configuration: a TOML file.")],
    out: NewFolder,
    share_skeleton: Annotated[
        bool, typer.Option("--share-skeleton", help="Hands in the ledger without values, for everybody's audit.")
    ] = False,
    keep_private: Annotated[
        bool, typer.Option("--keep-private", help="Keeps inputs and draws in private.ledger after the run.")
    ] = False,
    trace_wire: TraceWire = False,
    log_level: LogFrom = None,
    log_format: LogAs = LogFormat.TEXT,
    as_json: AsJson = False,
    *,
    served: Any,
) -> None:
    """Runs one user's node in a run across machines."""
    from p2pdp.runs.across_node import take_part

    def show(told: TookPart) -> None:
        if told.excluded:
            log(happening("put_out"))
        if as_json:
            print_document(told.to_json())
        else:
            _show(told)
        sys.stdout.flush()

    with logged(log_level or LogLevel.INFO, log_format, to_owner=sys.stderr.isatty()) as log, _goes_on(out):
        take_part(
            config,
            out,
            share_skeleton=share_skeleton,
            keep_private=keep_private,
            notify=log,
            http=served,
            trace_wire=trace_wire,
            show=show,
        )


def _show(told: TookPart) -> None:
    from rich.console import Console

    from p2pdp.cli.tables import number, plain

    console = Console(highlight=False)
    lines = [f"{told.protocol}, run {told.run_id}, user {told.user} of {told.nodes}"]
    if not (told.excluded or told.stopped):
        lines.append(f"estimate {number(told.estimate)}, standard error {number(told.standard_error)}")
    if told.own_scores is not None:
        known = [f"{name} {number(value)}" for name, value in told.own_scores.items() if value is not None]
        lines.append(f"on your own rows: {', '.join(known)}")
    lines += [
        f"of your own data: {one['clipped']} of {one['rows']} numbers in column {one['column']} were outside the run's "
        "bounds and were clipped to them"
        for one in told.clipped
    ]
    lines += [
        "What this run cost this node: an observer of all messages by its own ledger, others at most:",
        *(f"  {one.text}" for one in told.spent),
    ]
    lines.append(f"Everything this node received: p2pdp views {told.folder}")
    for line in lines:
        console.print(plain(line), soft_wrap=True)
