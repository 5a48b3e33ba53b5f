"""The description of a sweep, and the folder that its rows are kept in.

    base = "ring_sum.toml"          # relative to this file
    seeds = 10                      # so many from the base's own on, or a list
    what = "simulate"               # or "fast", "plan"

    [grid]
    noise.sigma = [0.5, 1.0, 2.0]   # section.key = values; the last key changes fastest

`points` checks every combination before anything runs; each refusal names the file and the key.

    rows/DIGEST.json  sweep.parquet or sweep.csv  sweep.html  sweep.toml  base.toml

Guarantee: each file is replaced as a whole, so an interruption leaves old or new ones and never halves. A row that is
damaged counts as missing. All files are for their owner only (mode 0600): rows hold results without noise.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.core.readers import Distinct, Reader, Unfit, Whole, one_of, suggestion, text
from p2pdp.core.spec import Spec
from p2pdp.files.folder import disk_error, to_json, write_bytes, write_text
from p2pdp.files.making import make_spec
from p2pdp.files.reading import read_plain, read_text
from p2pdp.files.reproduction import open_folder
from p2pdp.files.spec import parse_spec, rewritten, spec_to_toml, toml_value

PROCESSES: Final = "processes"
DASK: Final = "dask://"
RUNS_MAX: Final = 1_000_000
_SEED: Final = Whole(0, 2**128 - 1)
TABLES: Final = ("sweep.parquet", "sweep.csv")
PAGE_FILE: Final = "sweep.html"
DESCRIPTION_FILE: Final = "sweep.toml"
BASE_FILE: Final = "base.toml"


def _executor(value: Any) -> str:
    if text(value) != PROCESSES and re.fullmatch(re.escape(DASK) + r"[^\s/]+:[0-9]{1,5}", value) is None:
        raise Unfit(f'must be "{PROCESSES}" or "{DASK}HOST:PORT".')
    return str(value)


def _seeds(value: Any) -> int | tuple[int, ...]:
    if not isinstance(value, list):
        return Whole(1, RUNS_MAX)(value)
    seeds = Distinct(_SEED)(value)
    if not seeds:
        raise Unfit("must name at least one seed.")
    return seeds


_READERS: Final[Mapping[str, Reader]] = {
    "seeds": _seeds,
    "what": one_of("simulate", "fast", "plan"),
    "executor": _executor,
    "workers": Whole(1, 1024),
}
_KNOWN: Final = ("base", "grid", *_READERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec:
    """A sweep as described; `seeds` is their number where it is one, and `where` the file's name for messages."""

    where: str
    base: str
    folder: Path | None
    grid: Mapping[str, Sequence[Any]]
    seeds: int | tuple[int, ...] = 1
    what: str = "simulate"
    executor: str = PROCESSES
    workers: int | None = None

    def seeds_of(self, spec: Spec) -> Sequence[int]:
        if not isinstance(self.seeds, int):
            return self.seeds
        first = spec.run.seed or 0
        if first + self.seeds > _SEED.most + 1:
            raise UsageError(f"{self.where}: seeds: the last one must be below 2**128.")
        return range(first, first + self.seeds)


def description(sweep: SweepSpec, folder: str | None = None) -> dict[str, str]:
    """Return two texts that describe the same rows wherever they lie, by their names; who computes is left out.

    With `folder` the files that the base names have plain names there.
    """
    lines = {"base": BASE_FILE, "seeds": sweep.seeds, "what": sweep.what}
    grid = [f"{key} = {toml_value(values)}" for key, values in sweep.grid.items()]
    text = [*(f"{key} = {toml_value(value)}" for key, value in lines.items()), "", "[grid]", *grid, ""]
    return {DESCRIPTION_FILE: "\n".join(text), BASE_FILE: rewritten(sweep.base, sweep.folder, folder)}


def read_sweep(source: str | Path | Mapping[str, Any]) -> SweepSpec:
    """Read a description from a TOML file, or from a mapping like it, whose base may be a path or a spec."""
    if isinstance(source, Mapping):
        return _described(dict(source), "sweep", Path())
    place = Path(source)
    try:
        document = tomllib.loads(read_text(place))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: is not TOML: {error}.") from None
    return _described(document, str(place), place.parent)


def _described(document: dict[str, Any], where: str, folder: Path) -> SweepSpec:
    for key in document:
        if key not in _KNOWN:
            raise UsageError(f"{where}: {key}: unknown key{suggestion(key, _KNOWN)}")
    values = {}
    for key, reader in _READERS.items():
        if key in document:
            try:
                values[key] = reader(document[key])
            except Unfit as unfit:
                raise UsageError(f"{where}: {key}: {unfit}") from None
    if "workers" in values and values.get("executor", PROCESSES) != PROCESSES:
        raise UsageError(f"{where}: workers: a Dask cluster has its own number of workers; leave it out.")
    base, place = _base(document.get("base"), where, folder)
    sweep = SweepSpec(where=where, base=base, folder=place, grid=_grid(document.get("grid", {}), where), **values)
    seeds = sweep.seeds if isinstance(sweep.seeds, int) else len(sweep.seeds)
    if math.prod(map(len, sweep.grid.values())) * seeds > RUNS_MAX:
        raise UsageError(f"{where}: [grid]: comes to more than {RUNS_MAX:,} runs.")
    return sweep


def _base(base: Any, where: str, folder: Path) -> tuple[str, Path | None]:
    """Return the text of the base spec and the folder that its paths are relative to."""
    if isinstance(base, Spec | Mapping):
        spec = make_spec(base)
        if any(part.own is not None for part in (spec.data, spec.graph, spec.task)):
            raise UsageError(f"{where}: base: what came from Python does not reach workers; name files in the spec.")
        return spec_to_toml(spec), None
    if not isinstance(base, str | Path) or not str(base):
        raise UsageError(f'{where}: base: must name a spec file, such as base = "ring_sum.toml".')
    place = folder / base
    try:
        return read_text(place), place.parent
    except UsageError as error:
        raise UsageError(f"{where}: base: {error}") from None


def _grid(table: Any, where: str) -> dict[str, Sequence[Any]]:
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: [grid]: must be a section of section.key = [values].")
    found: dict[str, Sequence[Any]] = {}
    nested = [(name, value.items() if isinstance(value, Mapping) else [("", value)]) for name, value in table.items()]
    for name, key, values in ((name, key, values) for name, entries in nested for key, values in entries):
        full = f"{name}.{key}" if key else str(name)
        if re.fullmatch(r"[A-Za-z_]+\.[A-Za-z_]+", full) is None:
            raise UsageError(f"{where}: [grid] {full}: must read section.key = [values].")
        if full == "run.seed":
            raise UsageError(f"{where}: [grid] run.seed: seeds are not part of the grid; list them as seeds = [...].")
        if full in found:
            raise UsageError(f"{where}: [grid] {full}: is there twice.")
        if not isinstance(values, list | tuple) or not values:
            raise UsageError(f"{where}: [grid] {full}: must be a list of at least one value.")
        if len({repr(value) for value in values}) < len(values):
            raise UsageError(f"{where}: [grid] {full}: names a value twice.")
        found[full] = list(values)
    return found


def points(sweep: SweepSpec) -> Iterator[tuple[dict[str, Any], Spec]]:
    """Yield each combination of the grid's values with its spec, checked."""
    for values in itertools.product(*sweep.grid.values()):
        point = dict(zip(sweep.grid, values, strict=True))
        changes = [(*key.split(".", 1), value) for key, value in point.items()]
        try:
            yield point, parse_spec(sweep.base, sweep.folder, changes=changes)
        except UsageError as error:
            named = ", ".join(f"{key} = {cell(value)}" for key, value in point.items())
            place = "base" if str(error) == _problem_of_base(sweep) else f"[grid] {named}"
            raise UsageError(f"{sweep.where}: {place}: {error}") from None


def _problem_of_base(sweep: SweepSpec) -> str | None:
    """Return why the base is no spec; it may lack what the grid gives."""
    try:
        parse_spec(sweep.base, sweep.folder)
    except UsageError as error:
        return str(error)
    return None


def content_digests(spec: Spec) -> list[str]:
    """Return digests of what the files of a spec hold, which its own digest leaves out."""
    files = [spec.data.path, spec.graph.path if spec.graph.kind == "file" else None]
    return ["" if path is None else blake2b(read_plain(Path(path)), digest_size=16).hexdigest() for path in files]


class SweepFolder:
    def __init__(self, place: Path) -> None:
        self.place = place
        open_folder(place)
        open_folder(place / "rows")

    def read(self, digest: str) -> dict[str, Any] | None:
        """Return the row of this digest, if it is there and whole."""
        try:
            document = json.loads(self._row(digest).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        row = document.get("row") if isinstance(document, dict) and document.get("digest") == digest else None
        return row if isinstance(row, dict) else None

    def write(self, digest: str, row: Mapping[str, Any]) -> None:
        write_text(self._row(digest), to_json({"digest": digest, "row": row}) + "\n", secret=True)

    def _row(self, digest: str) -> Path:
        return self.place / "rows" / f"{digest}.json"

    def write_table(self, kinds: Mapping[str, type], rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write the table: Parquet where pyarrow is installed, else CSV. One of another kind is removed."""
        name, other = TABLES if find_spec("pyarrow") else TABLES[::-1]
        data = _parquet(kinds, rows) if name == TABLES[0] else _csv(list(kinds), rows)
        write_bytes(self.place / name, data, secret=True)
        try:
            (self.place / other).unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(self.place / other, error) from None
        return self.place / name

    def write_description(self, sweep: SweepSpec) -> None:
        for name, content in description(sweep).items():
            write_text(self.place / name, content, secret=True)

    def write_page(self, text: str) -> Path:
        write_text(self.place / PAGE_FILE, text, secret=True)
        return self.place / PAGE_FILE


def cell(value: Any) -> str:
    """Write a value for a table: numbers so that they read back as they were, and lists as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return repr(value) if value == math.inf else json.dumps(value)


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(row[name]) for name in columns] for row in rows)
    return text.getvalue().encode()


def _parquet(kinds: Mapping[str, type], rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    types = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    arrays = {}
    for name, kind in kinds.items():
        values = [row[name] for row in rows]
        fitting = kind_of(values) or kind
        if fitting is str:
            values = [None if value is None else cell(value) for value in values]
        arrays[name] = pa.array(values, types[fitting])
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(arrays), sink)
    return bytes(sink.getvalue())


def kind_of(values: Sequence[Any]) -> type | None:
    """Return the type of column that holds these values: text where they have none in common; None for no value."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return None
    if kinds == {int}:
        return int if all(value is None or abs(value) < 2**63 for value in values) else str
    if kinds <= {int, float}:
        return float
    return bool if kinds == {bool} else str
