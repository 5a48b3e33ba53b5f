"""`sweep`: runs of a spec over a grid of settings and seeds, each of them one row of a table.

Guarantee: a row follows from its effective spec, the content of the files that it names, what is asked for, and the
version of p2pdp; a digest of these names it. Rows in the folder are taken as they are, so a second call computes only
what is missing, and neither the executor nor the order in which runs end changes the table. A run that fails is a row
with the exit code and the text of its error. Rows that an error outside of p2pdp kept from being made are tried again.

Workers get the text of a spec and import p2pdp themselves. Nothing but the row is kept of a run.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from p2pdp.cluster.processes import trace_of
from p2pdp.cluster.workers import AnyExecutor, answers, dask, processes
from p2pdp.core.errors import NotReady, P2pdpError, UsageError
from p2pdp.core.spec import Spec
from p2pdp.core.version import VERSION
from p2pdp.files.spec import parse_spec, spec_digest, spec_to_toml
from p2pdp.files.sweep import DASK, SweepFolder, SweepSpec, content_digests, kind_of, points, read_sweep
from p2pdp.report.display import Pictured
from p2pdp.report.documents import plain
from p2pdp.report.page.markup import Markup
from p2pdp.report.sweep import points_table, sweep_page
from p2pdp.runs.plan import plan_spec
from p2pdp.runs.prepared import on_seed, with_task
from p2pdp.runs.simulate import simulate_once

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Progress = Callable[[int, int], None]
Row = dict[str, Any]

_MEASURED: Final[Mapping[str, type]] = {
    "seed": int,
    "estimate": float,
    "truth": float,
    "error": float,
    "standard_error": float,
    "epsilon": float,
    "delta": float,
    "observer": str,
    "method": str,
    "worst_epsilon": float,
    "messages": int,
    "seconds": float,
    "excluded": int,
    "code": int,
    "problem": str,
    "version": str,
    "digest": str,
}
_LOST: Final = 1  # the exit code of an error that nobody foresaw
_TRIED_AGAIN: Final = (_LOST, NotReady.exit_code)


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of a sweep: its place in the grid, and what a worker gets."""

    point: Mapping[str, Any]
    seed: int
    digest: str
    task: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, repr=False)
class Sweep(Pictured):
    """The rows of a sweep in the order of its grid, with columns named as in its table.

    `computed` of them were made by this call, and the others taken from the folder. `folder`, `table` and `page` are
    None where nothing was written.
    """

    what: str
    grid: list[str]
    rows: list[Row] = field(repr=False)
    computed: int
    folder: str | None = None
    table: str | None = None
    page: str | None = None

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row["code"]]

    def _said(self) -> list[str]:
        failed = f", {len(self.failed)} of them failed" if self.failed else ""
        return [f"{self.what}, {len(self.rows)} runs over {' and '.join(self.grid) or 'seeds'}{failed}"]

    def _markup(self) -> list[Markup]:
        return [points_table(self.grid, self.rows)]

    def _rows(self) -> tuple[list[Row], list[str]]:
        return self.rows, [*self.grid, *_MEASURED]

    def _draw(self, axes: Axes) -> None:
        from p2pdp.report.pictures import draw_sweep

        draw_sweep(axes, self.grid, self.rows, f"{len(self.rows)} runs ({self.what})")

    def to_json(self) -> dict[str, Any]:
        """Return the document of `sweep --json`."""
        document: dict[str, Any] = plain(
            {
                "folder": self.folder,
                "table": self.table,
                "page": self.page,
                "what": self.what,
                "grid": self.grid,
                "runs": len(self.rows),
                "computed": self.computed,
                "failed": len(self.failed),
                "rows": self.rows,
            }
        )
        return document


def sweep_runs(
    source: str | Path | Mapping[str, Any],
    out: Path | None,
    executor: AnyExecutor | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Make the rows that a description asks for and the folder does not hold; write table and page."""
    described = read_sweep(source)
    runs = runs_of(described)
    folder = None if out is None else SweepFolder(out)
    made: dict[str, Row] = {}
    missing: dict[str, dict[str, Any]] = {}
    for run in runs:
        if run.digest not in made and run.digest not in missing:
            kept = None if folder is None else folder.read(run.digest)
            if kept is not None and kept.keys() == _nothing().keys():
                made[run.digest] = kept
            else:
                missing[run.digest] = run.task
    if missing:
        with _opened(described, executor, len(missing)) as opened:
            for digest, answer, reason in answers(opened, row_of, missing.items()):
                lost = _failed(NotReady.exit_code, f"the worker was lost: {reason}")
                made[digest] = lost if answer is None else answer
                if folder is not None and made[digest]["code"] not in _TRIED_AGAIN:
                    folder.write(digest, made[digest])
                if progress is not None:
                    progress(len(made), len(made.keys() | missing.keys()))
    rows = [_row(run, made[run.digest]) for run in runs]
    found = Sweep(described.what, [*described.grid], rows, len(missing))
    return found if folder is None else _written(found, described, folder)


def _opened(described: SweepSpec, executor: AnyExecutor | None, calls: int) -> AbstractContextManager[AnyExecutor]:
    if executor is not None:
        return nullcontext(executor)
    if described.executor.startswith(DASK):
        return dask(described.executor.removeprefix(DASK))
    return processes(min(calls, described.workers or os.cpu_count() or 1))


def runs_of(described: SweepSpec) -> list[SweepRun]:
    """Return all runs, checked as far as that goes before they start."""
    found = []
    contents: dict[tuple[str | None, str | None], list[str]] = {}
    for point, spec in points(described):
        try:
            with_task(spec, None)
            files = (spec.data.path, spec.graph.path)
            if files not in contents:
                contents[files] = content_digests(spec)
            found += [_run(described, point, on_seed(spec, seed), contents[files]) for seed in described.seeds_of(spec)]
        except UsageError as error:
            raise UsageError(f"{described.where}: {str(error).removeprefix(f'{described.where}: ')}") from None
    return found


def _run(described: SweepSpec, point: Mapping[str, Any], spec: Spec, contents: Sequence[str]) -> SweepRun:
    seed = spec.run.seed or 0
    facts = [VERSION, described.what, spec_digest(spec).hex(), seed, *contents]
    digest = blake2b(json.dumps(facts).encode(), digest_size=16, person=b"p2pdp sweep").hexdigest()
    return SweepRun(point, seed, digest, {"spec": spec_to_toml(spec), "what": described.what, "version": VERSION})


def row_of(task: dict[str, Any]) -> Row:
    """Make one run and return what was measured; the error of a run that fails is part of that."""
    if task["version"] != VERSION:
        return _failed(NotReady.exit_code, f"the worker has p2pdp {VERSION} instead of {task['version']}")
    try:
        spec = parse_spec(task["spec"], None)
        measured = _planned(spec) if task["what"] == "plan" else _simulated(spec, fast=task["what"] == "fast")
    except P2pdpError as error:
        return _failed(error.exit_code, str(error))
    except MemoryError:
        return _failed(NotReady.exit_code, "there is not enough memory for this")
    except Exception as error:  # noqa: BLE001  (a sweep goes on; a place is told, and no text, which may hold a value)
        return _failed(_LOST, trace_of(error))
    row: Row = plain({**_nothing(), **measured})
    return row


def _nothing() -> Row:
    """Return a row without what follows from the description: place in the grid, seed, version and digest."""
    own = ("seed", "version", "digest")
    return {name: None for name in _MEASURED if name not in own} | {"code": 0}


def _failed(code: int, problem: str) -> Row:
    return {**_nothing(), "code": code, "problem": problem}


def _simulated(spec: Spec, *, fast: bool) -> Row:
    result = simulate_once(spec, fast=fast)
    return {
        "estimate": result.estimate,
        "truth": result.truth,
        "error": _size(result.error),
        "standard_error": _size(result.standard_error),
        "messages": result.messages,
        "seconds": result.seconds,
        "excluded": len(result.missing),
        **_bounds(result.headline, result.worst),
    }


def _planned(spec: Spec) -> Row:
    found = plan_spec(spec, None)
    numbers = {"messages": found.messages, "seconds": found.seconds}
    return {"standard_error": _size(found.standard_error), **numbers, **_bounds(found.headline, found.worst)}


def _bounds(headline: Mapping[str, Any] | None, worst: Mapping[str, Any] | None) -> Row:
    if headline is None or worst is None:
        return {}
    names = ("epsilon", "delta", "observer", "method")
    return {name: headline[name] for name in names} | {"worst_epsilon": worst["epsilon"]}


def _size(value: Any) -> float | None:
    """Return the absolute value of a number, and the root mean square of a vector."""
    if value is None:
        return None
    if isinstance(value, list):
        return math.sqrt(math.fsum(part * part for part in value) / len(value)) if value else 0.0
    return abs(float(value))


def _row(run: SweepRun, made: Row) -> Row:
    own = {"seed": run.seed, "version": VERSION, "digest": run.digest}
    found = {name: own[name] if name in own else made[name] for name in _MEASURED}
    return {**run.point, **{name: math.inf if value == "inf" else value for name, value in found.items()}}


def _written(found: Sweep, described: SweepSpec, folder: SweepFolder) -> Sweep:
    kinds = {key: kind_of([row[key] for row in found.rows]) or str for key in found.grid}
    table = folder.write_table({**kinds, **_MEASURED}, found.rows)
    folder.write_description(described)
    page = folder.write_page(sweep_page(Path(described.where).name, found.what, found.grid, found.rows, table.name))
    return replace(found, folder=str(folder.place), table=str(table), page=str(page))
