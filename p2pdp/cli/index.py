"""`index`: makes the rows of runs from their folders, and lists the runs there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from p2pdp.cli.options import AsJson, IndexUrl, print_document


def index(
    folders: Annotated[list[Path] | None, typer.Argument(metavar="[DIR]...", help="Folders of runs.")] = None,
    url: IndexUrl = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Empties the tables first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Indexes runs in a database for queries, and lists them.

    Without --index it is the file in the first folder. The database follows from the folders: it can be deleted.
    """
    from p2pdp.runs.indexing import index_folders

    found = index_folders(folders or [], url, rebuild=rebuild)
    if as_json:
        print_document(found)
        return
    from rich.console import Console

    from p2pdp.cli.tables import plain

    console = Console(highlight=False)
    for run in found["runs"]:
        line = f"{run['run_id']}  {run['state']}  {run['protocol']}, {run['n'] or run['nodes']} nodes"
        console.print(plain(f"{line}{_bounds(run)}  {run['folder']}"), soft_wrap=True)
    console.print(f"{found['total']} runs", soft_wrap=True)


def _bounds(run: dict[str, Any]) -> str:
    from p2pdp.cli.tables import number

    headline, worst = run["headline"], run["worst"]
    if headline is None or worst is None:
        return ""
    first = f", epsilon {number(headline['epsilon'])} ({headline['reading']})"
    return f"{first}, worst observer {worst['observer']} {number(worst['epsilon'])} ({worst['reading']})"
