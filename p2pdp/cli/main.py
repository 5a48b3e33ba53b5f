"""`p2pdp`: one command a verb.

Exit codes are those of `core.errors`. Results go to standard output, everything else to the error stream.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from p2pdp.core.errors import P2pdpError, UsageError, VerificationFailed

app = typer.Typer(
    add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="Differential privacy among peers that trust nobody with their data.",
)  # fmt: skip

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec: a TOML file.")]
RunPlace = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder, or a file made by export.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Overrides an entry of the spec; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output and nothing else.")]


def main() -> int:
    """Runs the command line; every error a person can cause is one line and an exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    try:
        app()
    except P2pdpError as error:
        _complain(str(error))
        return error.exit_code
    return 0


def _interrupted(_number: int, _frame: object) -> NoReturn:
    _complain("interrupted")
    raise SystemExit(130)


def _complain(text: str) -> None:
    print(f"p2pdp: {text}", file=sys.stderr)


def _document(document: Any) -> None:
    from p2pdp.files.folder import to_json

    print(to_json(document))


def _version(asked: bool) -> None:
    if asked:
        from p2pdp import __version__

        print(f"p2pdp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Says the version.")
    ] = False,
) -> None:
    """Differential privacy among peers that trust nobody with their data."""


@app.command()
def simulate(
    spec: SpecFile,
    out: Annotated[Path | None, typer.Option(help="The folder to fill; by default ./p2pdp-RUN_ID.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Repetitions, on seed, seed + 1, …; the first leaves ledgers.")
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Runs a spec without processes and sockets; the folder is that of a live run."""
    from p2pdp import api
    from p2pdp.cli.progress import progress_bar
    from p2pdp.runs.simulate import default_folder

    loaded = api.load_spec(spec, overrides or [])
    folder = default_folder(loaded) if out is None else out
    with progress_bar("simulating", loaded) as progress:
        result = api.simulate(loaded, folder, trials, progress=progress)
    if as_json:
        _document(result.to_json())
        return
    from p2pdp.cli.tables import show_result

    show_result(result, folder)


@app.command()
def verify(place: RunPlace, as_json: AsJson = False) -> None:
    """Whether ledgers or skeletons are complete, unaltered and consistent with each other."""
    from p2pdp import api

    found = api.verify(place)
    if as_json:
        _document(found.to_json())
    elif found.verified is not None:
        print(f"{found.verified}: {found.records} records of run {found.run_id}")
    else:
        for problem in found.problems:
            where = "" if problem["index"] is None else f", record {problem['index']}"
            print(f"node {problem['node']}{where}: {problem['what']}")
    if found.verified is None:
        raise VerificationFailed(f"{len(found.problems)} problems in {found.records} records")


@app.command()
def audit(
    place: RunPlace,
    colluders: Annotated[str | None, typer.Option(metavar="3,7", help="Users who pool what they saw.")] = None,
    delta: Annotated[float | None, typer.Option(help="Instead of the spec's.")] = None,
    pairs: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Writes all pairs [user, observer].")] = None,
    allow_missing: Annotated[bool, typer.Option(help="Claim what is possible where ledgers are missing.")] = False,
    as_json: AsJson = False,
) -> None:
    """How much every other party could have learned, from skeletons alone."""
    from p2pdp import api
    from p2pdp.files.folder import AUDIT_FILE, write_json

    found = api.audit(place, _users(colluders), delta, allow_missing=allow_missing)
    if pairs is not None:
        found.save_pairs(pairs)
    if place.is_dir():
        write_json(place / AUDIT_FILE, found.to_json())
    if as_json:
        _document(found.to_json())
        return
    from p2pdp.cli.tables import show_audit

    show_audit(found)


def _users(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--colluders {text}: must be user numbers with commas between them") from None


@app.command()
def views(place: RunPlace) -> None:
    """Every record of every view at hand, one JSON object a line."""
    from p2pdp import api

    _lines(api.views(place))


def _lines(lines: Iterable[dict[str, Any]]) -> None:
    for line in lines:
        print(json.dumps(line, ensure_ascii=False))


@app.command()
def export(
    place: RunPlace,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    as_json: AsJson = False,
) -> None:
    """Spec, roster, heads and skeletons in one file: enough for an audit, no values."""
    from p2pdp import api

    count = api.export(place, out)
    if as_json:
        _document({"file": str(out), "skeletons": count})
    else:
        print(f"{out}: {count} skeletons")


@app.command()
def keygen(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for identity.key and identity.pub.")],
    as_json: AsJson = False,
) -> None:
    """Makes an identity: a signing key that only its owner can read, and its public half."""
    from p2pdp import api

    public = api.keygen(out)
    if as_json:
        _document({"identity": public, "folder": str(out)})
    else:
        print(f"{out}: identity {public}")
