"""`p2pdp status`: how far a run is, from its folder or from its HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2pdp.cli.options import AsJson, print_columns, print_document
from p2pdp.cli.progress import printable

if TYPE_CHECKING:
    from p2pdp.runs.status import RunStatus


def status(
    place: Annotated[str, typer.Argument(metavar="DIR|URL", help="A folder of a run or node, or a server's address.")],
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The server's read token; the file that --http-token-file made.")
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificates that may sign the server's, if not public ones.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Shows how far a run is."""
    from p2pdp.runs.status import status_of

    found = status_of(place, token_file, ca)
    if as_json:
        print_document(found.to_json())
    else:
        print_columns((name, printable(text)) for name, text in _rows(found))


def _rows(found: RunStatus) -> Iterator[tuple[str, str]]:
    work = {True: ", a process is at work", False: ", no process is at work", None: ""}
    yield "state", found.state + (work[found.at_work] if found.kind not in ("http", "simulated") else "")
    yield from (("wrong", problem) for problem in found.problems)
    yield "what", _what(found)
    facts = {"run": found.run_id, "user": found.user, "enrolled": found.enrolled, "ready": found.ready}
    facts |= {"excluded": ", ".join(map(str, found.excluded)) or None, "started": found.started}
    if isinstance(found.seconds, int | float) and abs(found.seconds) < 1e15:  # it may come from an altered file
        facts["seconds"] = f"{found.seconds:.4g}"
    yield from ((name, str(value)) for name, value in facts.items() if value is not None)
    if found.headline is not None and found.worst is not None:
        from p2pdp.report.page.words import in_words

        yield "privacy", " ".join(in_words(found.headline, found.worst))
    if found.next is not None:
        yield "next", found.next


def _what(found: RunStatus) -> str:
    kinds = {
        "local": "run on this machine",
        "bootstrap": "bootstrap of users elsewhere",
        "node": "one user's node",
        "simulated": "simulated run",
        "http": "a server's run",
    }
    users = f"{found.nodes} users" if found.n in (None, found.nodes) else f"{found.n} of {found.nodes} users"
    return ", ".join([kinds[found.kind], *([found.protocol, users] if found.protocol is not None else [])])
