"""`p2pdp sweep`: a spec over a grid of settings and seeds."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from p2pdp.cli.options import AsJson, print_document
from p2pdp.core.errors import NotReady, RunFailed

if TYPE_CHECKING:
    from p2pdp.runs.sweep import Sweep

_INTERRUPTED: Final = 130
_POINTS_MAX: Final = 40


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The sweep: a TOML file with base, [grid] and seeds.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Output folder; by default ./p2pdp-sweep-NAME, and continued.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Runs a spec over a grid of settings and seeds.

    The same command continues what was interrupted, and computes only what is missing.
    """
    from p2pdp import api
    from p2pdp.cli.progress import count_progress

    folder = Path(f"p2pdp-sweep-{file.stem}") if out is None else out
    try:
        with count_progress(f"sweeping {file.name}") as told:
            found = api.sweep(file, out=folder, progress=None if told is None else partial(told, ""))
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            stop.text = f"interrupted; rows are kept in {folder}, and the same command goes on"  # type: ignore[attr-defined]
        raise
    if as_json:
        print_document(found.to_json())
    else:
        _show(found)
    if found.failed:
        first = found.failed[0]
        lost = any(row["code"] == NotReady.exit_code for row in found.failed)
        again = f"; the same command tries again those with code {NotReady.exit_code}" if lost else ""
        raise RunFailed(
            f"{file}: {len(found.failed)} of {len(found.rows)} runs failed, the first with code {first['code']}: "
            f"{first['problem']}{again}"
        )


def _show(found: Sweep) -> None:
    from rich.console import Console

    from p2pdp.cli.tables import columns, number, plain
    from p2pdp.report.sweep import shown, summary

    console = Console(highlight=False)
    fixed = ("runs", "error", "standard error", "epsilon", "worst")
    short = Counter([*fixed, *(key.partition(".")[2] for key in found.grid)])
    keys = [name if short[name := key.partition(".")[2]] == 1 else key for key in found.grid]
    points = summary(found.grid, found.rows)
    rows = [
        [*map(shown, one.values), f"{one.runs - one.failed}/{one.runs}"]
        + ["" if v is None else number(v) for v in (one.error, one.standard_error, one.epsilon, one.worst_epsilon)]
        for one in points[:_POINTS_MAX]
    ]
    columns(rows, (*keys, *fixed), console)
    if len(points) > _POINTS_MAX:
        console.print(plain(f"… and {len(points) - _POINTS_MAX} more points of the grid"))
    made = f"{len(found.rows)} runs, {found.computed} of them computed now"
    kind = "Parquet" if str(found.table).endswith(".parquet") else "CSV, because pyarrow is not installed"
    console.print(plain(f"{made}; table ({kind}): {found.table}"), soft_wrap=True)
    console.print(plain(f"The same for a browser: {found.page}"), soft_wrap=True)
