"""`p2pdp`: one command a verb.

Exit codes are those of `core.errors`, and 130 after Ctrl-C or SIGTERM. Results go to standard output,
everything else to the error stream: whatever goes wrong is one line there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from p2pdp.cli import across, bench, live
from p2pdp.cli.account import account
from p2pdp.cli.artifact import artifact
from p2pdp.cli.attack import attack
from p2pdp.cli.cite import cite
from p2pdp.cli.guide import guide
from p2pdp.cli.index import index
from p2pdp.cli.keys import keygen
from p2pdp.cli.options import (
    AsJson,
    AuditorKey,
    BootstrapKey,
    OutFolder,
    Overrides,
    RunPlace,
    SpecFile,
    TraceWire,
    Unverified,
    naming,
    print_document,
    say_lacking,
)
from p2pdp.cli.plan import plan
from p2pdp.cli.progress import printable
from p2pdp.cli.report import report
from p2pdp.cli.reproduce import reproduce
from p2pdp.cli.samples import init, samples, schema
from p2pdp.cli.status import status
from p2pdp.cli.sweep import sweep
from p2pdp.core.errors import NotReady, P2pdpError, UsageError, VerificationFailed
from p2pdp.runs.collector import undisturbed

if TYPE_CHECKING:
    from p2pdp.runs.audit import Audited

_INTERRUPTED: Final = 130
_READER_GONE: Final = 1  # with which typer and rich end where nobody reads standard output any more
# What typer raises for a wrong command line. Some of its releases bring click along, others import it.
_WrongCommand: Final[type[Exception]] = typer.BadParameter.__bases__[0]

_PLAIN: Final = re.compile(r"Input should be a valid (integer|number)\b.*")
_KINDS: Final = {"integer": "whole number", "number": "number"}

app = typer.Typer(
    rich_markup_mode=None, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
    help="Differential privacy among peers that trust nobody with their data.",
    epilog="Documentation: p2pdp guide",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; every error a person can cause is one line and an exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        code = app(given, prog_name="p2pdp", standalone_mode=False)
        sys.stdout.flush()
    except P2pdpError as error:
        return _complain(str(error), error.exit_code)
    except _WrongCommand as error:
        return _complain(_command_problem(error), UsageError.exit_code)
    except OSError as error:
        return _after(error)
    except MemoryError:
        return _complain("there is not enough memory for this", NotReady.exit_code)
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            return _complain(getattr(stop, "text", "interrupted"), _INTERRUPTED)
        if stop.code == _READER_GONE:
            return 0
        raise
    return code if isinstance(code, int) else 0


def _after(error: OSError) -> int:
    nobody_reads, at_output = _nobody_reads(), _was_printing(error)
    if at_output:
        with contextlib.suppress(OSError):
            sys.stdout.close()  # else the interpreter would try to write once more
    if isinstance(error, BrokenPipeError) and nobody_reads:
        return 0
    where = error.filename or ("standard output" if at_output else None)
    return _complain(f"{where}: {error.strerror}" if where else str(error.strerror), NotReady.exit_code)


def _nobody_reads() -> bool:
    """Return whether the reader of standard output is gone; another broken pipe is an error."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):  # it is no file, or closed
        return True


def _was_printing(error: OSError) -> bool:
    """Return whether it was raised by printing: this room and what draws its tables print, and open no files."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    name = "" if place is None else place.tb_frame.f_globals.get("__name__", "")
    return name.startswith(("p2pdp.cli.", "rich."))


def _interrupted(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(_INTERRUPTED)


def _complain(text: str, code: int) -> int:
    """Print an error as one line, whatever the texts that it quotes contain."""
    print(f"p2pdp: {printable(text)}", file=sys.stderr)
    return code


def _command_problem(error: Any) -> str:
    command = getattr(getattr(error, "ctx", None), "command_path", "p2pdp")
    said = _PLAIN.sub(lambda match: f"must be a {_KINDS[match[1]]}", error.format_message().rstrip("."))
    return f"{said} ({command} --help lists what there is)"


def _version(asked: bool) -> None:
    if asked:
        from p2pdp import __version__

        print(f"p2pdp {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Prints the version.")
    ] = False,
) -> None:
    """Differential privacy among peers that trust nobody with their data."""
    if context.invoked_subcommand is None and not version:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(UsageError.exit_code)


for _command in (
    live.demo, live.run, live.resume, account, attack, across.bootstrap, across.node, plan, sweep, report, reproduce,
    index, artifact, status, keygen, init, samples, schema, guide, cite,
):  # fmt: skip
    app.command()(_command)
app.add_typer(bench.app, name="bench")


@app.command()
def simulate(
    spec: SpecFile,
    out: OutFolder = None,
    trials: Annotated[
        int | None, typer.Option(help="Number of runs, on seed, seed + 1, …; the first leaves ledgers.")
    ] = None,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Samples results from their exact distribution, without messages, ledgers or audit."
        ),
    ] = False,
    workers: Annotated[int | None, typer.Option(help="Number of processes for trials; by default one a core.")] = None,
    no_audit: Annotated[
        bool, typer.Option("--no-audit", help="Leaves the audit, and so claims and baselines, for later.")
    ] = False,
    trace_wire: TraceWire = False,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Simulates a run of a spec, without processes and sockets."""
    from p2pdp import api
    from p2pdp.cli.progress import progress_bar
    from p2pdp.runs.simulate import default_folder

    loaded = api.load_spec(spec, overrides or [])
    folder = default_folder(loaded, fast=fast) if out is None else out
    with naming(spec), progress_bar("simulating", loaded) as progress:
        result = api.simulate(
            loaded, folder, trials, fast=fast, progress=progress, trace_wire=trace_wire, audit=not no_audit,
            workers=(os.cpu_count() or 1) if workers is None else workers,
        )  # fmt: skip
    if as_json:
        print_document(result.to_json())
        return
    from p2pdp.cli.tables import show_result

    show_result(result, folder, fast=fast)


@app.command()
@undisturbed()  # imports and tables too: what a command leaves for the collector is gone when it ends
def verify(place: RunPlace, key: AuditorKey = None, bootstrap: BootstrapKey = None, as_json: AsJson = False) -> None:
    """Checks that ledgers are whole, unaltered, and by the rules."""
    from p2pdp import api

    found = api.verify(place, key=key, bootstrap=bootstrap)
    if as_json:
        print_document(found.to_json())
    else:
        from p2pdp.cli.tables import show_verified

        show_verified(found)
    if found.verified is None:
        raise VerificationFailed(f"{place}: not verified, problems: {len(found.problems)}")


@app.command()
@undisturbed()
def audit(
    place: RunPlace,
    colluders: Annotated[str | None, typer.Option(metavar="3,7", help="Users who pool what they saw.")] = None,
    delta: Annotated[float | None, typer.Option(help="Replaces the spec's delta.")] = None,
    pairs: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Writes arrays of all pairs [user, observer].")
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Reports what can be proven although ledgers are missing.")
    ] = False,
    key: AuditorKey = None,
    bootstrap: BootstrapKey = None,
    workers: Annotated[int | None, typer.Option(help="Most processes to use; by default one a core.")] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Writes audit.json and report.html, also with --colluders or --delta.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Shows how much every other party could have learned.

    Without --colluders and --delta, audit.json and report.html in the folder are written anew where that is possible.
    """
    from p2pdp.cli.progress import count_progress
    from p2pdp.runs.audit import audit as judge
    from p2pdp.runs.audit import check_pairs_file

    if pairs is not None:
        check_pairs_file(pairs)
    with count_progress("auditing") as told:
        progress = None if told is None else partial(told, "")
        found = judge(
            place,
            _users(colluders),
            delta,
            allow_missing=allow_missing,
            key=key,
            progress=progress,
            bootstrap=bootstrap,
            workers=(os.cpu_count() or 1) if workers is None else workers,
            notice=lambda text: print(f"p2pdp: {text}", file=sys.stderr),
            pairs=pairs is not None,
        )
    if pairs is not None:
        found.save_pairs(pairs)
    unwritten = _saved(found, place) if save or (colluders is None and delta is None) else None
    if as_json:
        print_document(found.to_json())
    else:
        from p2pdp.cli.tables import show_audit

        show_audit(found)
    if unwritten is not None and save:
        raise unwritten
    if unwritten is not None:
        print(f"p2pdp: this audit was not saved: {unwritten}", file=sys.stderr)


def _saved(found: Audited, place: Path) -> P2pdpError | None:
    """Save the audit in the folder; return what prevented that, such as a read-only disk."""
    try:
        found.save(place)
    except (NotReady, UsageError) as error:
        return error
    return None


def _users(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--colluders {text}: must be user numbers with commas between them") from None


@app.command()
def views(place: RunPlace, unverified: Unverified = False) -> None:
    """Prints every record of every view, one JSON object a line."""
    from p2pdp.runs.audit import views as lines

    for line in lines(place, unverified=unverified, on_lack=say_lacking):
        print(json.dumps(line))


@app.command()
def export(
    place: RunPlace,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    key: AuditorKey = None,
    unverified: Unverified = False,
    as_json: AsJson = False,
) -> None:
    """Writes one file without values that is enough for an audit."""
    from p2pdp.runs.audit import export as write

    lacking: list[str] = []
    count = write(place, out, key, unverified=unverified, on_lack=lacking.append)
    if as_json:
        print_document({"file": str(out), "skeletons": count})
    else:
        held = f"{count} skeletons" if count > 1 else "one skeleton"
        enough = "" if lacking else ", enough for verify and audit" if count > 1 else ", enough for verify"
        print(f"{out}: {held}{enough}; no values")
    for what in lacking:
        say_lacking(what)
