"""The options by which a run, or a node, is watched: over HTTP, and through an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2pdp.core.errors import UsageError

if TYPE_CHECKING:
    from p2pdp.runs.watching import HttpOptions

HttpPlace = Annotated[
    str | None,
    typer.Option("--http", metavar="HOST:PORT", help="Serves status, metrics and the report; port 0: a free one."),
]
HttpTokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The read token; a file that is not there is made, with a fresh one."),
]
HttpAuditorTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--http-auditor-token-file",
        metavar="FILE",
        help="The token for what only the auditor (of a node: its owner) may read; made like the read token.",
    ),
]
HttpOpen = Annotated[
    bool, typer.Option("--http-open", help="Without a token, though others than this machine can reach --http.")
]
HttpCertificate = Annotated[Path | None, typer.Option("--http-cert", metavar="FILE", help="For TLS: the certificate.")]
HttpKey = Annotated[Path | None, typer.Option("--http-key", metavar="FILE", help="For TLS: its key.")]
HttpNames = Annotated[
    list[str] | None,
    typer.Option("--http-name", metavar="NAME", help="A name by which --http may be called; repeatable."),
]
HttpStay = Annotated[bool, typer.Option("--http-stay", help="Serves on after the run is over, until it is ended.")]
IndexUrl = Annotated[
    str | None,
    typer.Option("--index", metavar="URL", help="sqlite (in DIR), sqlite:///FILE or postgresql://USER@HOST/DATABASE."),
]


def http_options(
    place: str | None,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    names: list[str] | None,
    *,
    is_open: bool,
    stays: bool = False,
    auditor_token_file: Path | None = None,
) -> HttpOptions | None:
    """None without `--http`, where none of the others means anything."""
    from p2pdp import __version__
    from p2pdp.runs.watching import HttpOptions

    if place is None:
        if token_file or auditor_token_file or certificate or key or names or is_open or stays:
            raise UsageError("--http HOST:PORT: missing; the other --http options say more of it")
        return None
    return HttpOptions(
        place, __version__, token_file, is_open, certificate, key, tuple(names or ()), stays, auditor_token_file
    )
