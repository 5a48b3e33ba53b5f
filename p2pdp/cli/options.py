"""Arguments and options that several commands share, those of the HTTP server included, and plain output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from p2pdp.core.errors import RunFailed, UsageError

if TYPE_CHECKING:
    from p2pdp.runs.watching import HttpOptions

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec: a TOML file.")]
RunPlace = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder, or a file made by export.")]
RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")]
OutFolder = Annotated[Path | None, typer.Option(help="Output folder; by default ./p2pdp-RUN_ID.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Overrides an entry of the spec; repeatable."),
]
TraceWire = Annotated[
    bool, typer.Option("--trace-wire", help="Writes what each received frame contained, without values, to wire.jsonl.")
]
AuditorKey = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The auditor's key, if skeletons are sealed to it."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Prints one JSON document and nothing else on standard output.")]


@contextmanager
def naming(spec: Path) -> Iterator[None]:
    """Name the spec where its graph turns out to be impossible, which is known when it is made."""
    try:
        yield
    except (UsageError, RunFailed) as error:
        if not str(error).startswith("[graph]"):
            raise
        raise type(error)(f"{spec}: {error}") from None


def print_document(document: Any) -> None:
    from p2pdp.files.json_text import json_pieces

    for piece in json_pieces(document):
        print(piece, end="")
    print()


def print_columns(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and texts in two columns, without loading what draws tables."""
    shown = list(rows)
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        print(f"{name:<{width}}  {text}")


Unverified = Annotated[
    bool, typer.Option("--unverified", help="Takes ledgers that verify finds wrong too, to show what is wrong.")
]
BootstrapKey = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        metavar="KEY",
        help="Public key of the bootstrap whose run it must be: hexadecimal, a join token, or a file with either.",
    ),
]
HttpPlace = Annotated[
    str | None,
    typer.Option("--http", metavar="HOST:PORT", help="Serves status, metrics, report, guide; port 0: a free one."),
]
HttpTokenFile = Annotated[
    Path | None,
    typer.Option("--http-token-file", metavar="FILE", help="Read token; a missing file is created with a fresh one."),
]
HttpAuditorTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--http-auditor-token-file",
        metavar="FILE",
        help="Token of the auditor (of a node: its owner); a missing file is created.",
    ),
]
HttpOpen = Annotated[
    bool, typer.Option("--http-open", help="Serves without a token although other machines can reach it.")
]
HttpCertificate = Annotated[Path | None, typer.Option("--http-cert", metavar="FILE", help="Certificate for TLS.")]
HttpKey = Annotated[Path | None, typer.Option("--http-key", metavar="FILE", help="Private key of that certificate.")]
HttpNames = Annotated[
    list[str] | None,
    typer.Option("--http-name", metavar="NAME", help="Host name under which the server may be addressed; repeatable."),
]
HttpStay = Annotated[bool, typer.Option("--http-stay", help="Keeps serving after the run, until it is stopped.")]
IndexUrl = Annotated[
    str | None,
    typer.Option("--index", metavar="URL", help="sqlite (in DIR), sqlite:///FILE or postgresql://USER@HOST/DATABASE."),
]


def http_options(
    http: HttpPlace = None,
    http_token_file: HttpTokenFile = None,
    http_auditor_token_file: HttpAuditorTokenFile = None,
    http_open: HttpOpen = False,
    http_cert: HttpCertificate = None,
    http_key: HttpKey = None,
    http_name: HttpNames = None,
    http_stay: HttpStay = False,
) -> HttpOptions | None:
    """Return what the HTTP options say; None without `--http`, where the others are refused."""
    from p2pdp import __version__
    from p2pdp.runs.watching import HttpOptions

    if http is None:
        if any((http_token_file, http_auditor_token_file, http_open, http_cert, http_key, http_name, http_stay)):
            raise UsageError("--http HOST:PORT: missing; the other --http options say more of it")
        return None
    names = tuple(http_name or ())
    return HttpOptions(
        http, __version__, http_token_file, http_open, http_cert, http_key, names, http_stay, http_auditor_token_file
    )


def serves(*, may_stay: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `http_options`; it gets their value as its argument `served`."""
    read = get_type_hints(http_options, include_extras=True, localns={"HttpOptions": object})
    options = {
        name: option.replace(annotation=read[name], kind=Parameter.KEYWORD_ONLY)
        for name, option in signature(http_options).parameters.items()
        if may_stay or name != "http_stay"
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**given: Any) -> None:
            told = {name: given.pop(name) for name in options}
            command(**given, served=http_options(**told))

        own = [one for name, one in signature(command, eval_str=True).parameters.items() if name != "served"]
        parameters = [*own, *options.values()]
        with_options.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate


def say_lacking(problem: str) -> None:
    """Say on the error stream that a run is not over, or that some of its ledgers are not there."""
    what = "not all ledgers are here and closed, so this is about what is recorded so far"
    print(f"note: {what}: {problem}", file=sys.stderr)
