"""`p2pdp reproduce`: figures and tables of the papers, from our own runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Final, cast, get_args

import typer

from p2pdp.cli.options import AsJson, print_document
from p2pdp.core.errors import UsageError
from p2pdp.experiments.contract import Width

_FOLDER: Final = Path("p2pdp-figures")


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Names of figures and tables, or all.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of graphs and tables.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output folder; an unfinished one is continued.")] = _FOLDER,
    quick: Annotated[bool, typer.Option("--quick", help="Makes small versions, in seconds each.")] = False,
    width: Annotated[
        str, typer.Option(metavar="WIDTH", help="Width of pictures: single (one column of a paper) or double.")
    ] = "double",
    jobs: Annotated[int | None, typer.Option(help="Number of processes; by default one per core.", min=1)] = None,
    listed: Annotated[bool, typer.Option("--list", help="Lists what there is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Reproduces figures and tables of the papers."""
    if listed:
        _list(as_json=as_json)
        return
    if width not in get_args(Width):
        raise UsageError(f"--width {width}: takes single or double")
    if not names:
        raise UsageError("reproduce: say what, or all; p2pdp reproduce --list names the figures and tables")
    from p2pdp.cli.progress import count_progress
    from p2pdp.experiments.contract import Setting
    from p2pdp.experiments.figures import named
    from p2pdp.experiments.runner import reproduce as run

    with count_progress("reproducing") as told:
        documents = run(
            named(names), Setting(quick, data), out, jobs or os.cpu_count() or 1, told, cast("Width", width)
        )
    if as_json:
        print_document({"folder": str(out), "made": documents})
    else:
        _show(documents, out)


def _list(*, as_json: bool) -> None:
    from p2pdp.experiments.figures import experiments

    known = experiments().values()
    if as_json:
        entries = [{"name": one.name, "paper": one.paper, "title": one.title, "needs": one.needs} for one in known]
        print_document({"figures": entries})
        return
    from p2pdp.cli.tables import columns

    columns([(one.name, one.title) for one in known])


def _show(documents: list[dict[str, Any]], out: Path) -> None:
    from rich.console import Console

    from p2pdp.cli.tables import columns, plain

    console = Console(highlight=False)
    for made in documents:
        note = " (stand-ins instead of data)" if made["stand_in"] else " (quick)" if made["quick"] else ""
        console.print(plain(f"{made['name']}: {made['title']}{note}"))
        against = "the paper" if made["paper"] != "ours" else "against"
        rows = [(line["verdict"], f"{line['what']}: {_compared(line, against)}") for line in made["lines"]]
        columns(rows, console=console)
        console.print()
    verdicts = [line["verdict"] for made in documents for line in made["lines"]]
    counts = ", ".join(f"{kind} {verdicts.count(kind)}" for kind in ("agrees", "differs", "cannot be known"))
    console.print(
        plain(f"{counts}; {out}: pictures, and beside each in the .md what it shows, and why"), soft_wrap=True
    )


def _compared(line: dict[str, Any], against: str) -> str:
    ours, paper = (one if isinstance(one, str | None) else f"{one:.4g}" for one in (line["ours"], line["paper"]))
    return f"{ours}" if paper is None else f"{ours}; {against}: {paper}"
