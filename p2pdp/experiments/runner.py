"""Runs experiments: pieces over all cores, answers kept as soon as they come, then tables, pictures and captions.

Guarantee: whatever interrupts it, the next call with the same folder takes up every answer that was kept and still
fits: a piece's facts, the data files' content, quick or full, and the version of p2pdp all stand in its digest. What
comes out depends on nothing else, neither on the number of processes nor on the order in which pieces ended. Whoever
changes the code between two versions deletes the folder `pieces`.
An experiment that fails does not hold up the others; all that failed are named at the end.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from p2pdp.cluster.pool import Done, Pool
from p2pdp.core.errors import NotReady, P2pdpError, RunFailed, UsageError
from p2pdp.core.version import VERSION
from p2pdp.experiments.captions import alt_text, caption_page
from p2pdp.experiments.contract import QUICK_NOTE, STAND_IN, Answers, Experiment, Line, Piece, Setting, Width
from p2pdp.experiments.inputs import check_data, digests
from p2pdp.files import reproduction
from p2pdp.files.folder import write_bytes, write_json, write_text

_MAKE: Final = " make"  # no piece's key holds a space
_LIBRARIES: Final = ("numpy", "scipy", "networkx", "matplotlib")

Told = Callable[[str, int, int], None]
"""What is to be told of progress: the experiment, pieces done of all experiments, and pieces in all."""


@dataclass(slots=True)
class _Under:
    """An experiment under way."""

    experiment: Experiment
    pieces: dict[str, Piece]
    data: dict[str, str]
    digests: dict[str, str]
    answers: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    exit_code: int | None = None  # of the problem


def reproduce(
    experiments: Sequence[Experiment],
    setting: Setting,
    out: Path,
    jobs: int,
    told: Told | None = None,
    width: Width = "double",
) -> list[dict[str, Any]]:
    """Run all experiments and return their documents, in the same order.

    `RunFailed` names those that failed; where data alone, or the machine, was at fault, `UsageError` or `NotReady`.
    """
    _check_libraries()
    check_data(experiments, setting)
    reproduction.open_folder(out)
    under = {one.name: _begin(one, setting, out) for one in experiments}
    left = [(one.experiment.name, key) for one in under.values() for key in one.pieces if key not in one.answers]
    left += [(one.experiment.name, _MAKE) for one in under.values() if len(one.answers) == len(one.pieces)]
    total = sum(len(one.pieces) + 1 for one in under.values())
    documents: dict[str, dict[str, Any]] = {}
    with Pool(max(1, jobs)) as pool:
        while left or pool.running:
            while left and pool.free:
                name, key = left.pop(0)
                if under[name].problem is None:
                    pool.begin(f"{name} {key}", _work(under[name], key, setting, (out, width)))
            if not pool.running:
                continue
            done = pool.next_done()
            name, key = done.name.split(" ", 1)
            _take(under[name], key, done, setting, out, documents)
            if key != _MAKE and under[name].problem is None and len(under[name].answers) == len(under[name].pieces):
                left.insert(0, (name, _MAKE))
            if told is not None:
                told(name, sum(len(one.answers) for one in under.values()) + len(documents), total)
    failed = {name: one for name, one in under.items() if one.problem is not None}
    if failed:
        problems = "; ".join(f"{name}: {one.problem}".rstrip(".") for name, one in failed.items())
        raise _failure({one.exit_code for one in failed.values()})(
            f"{problems}; what was done is kept in {out}, and the same command goes on"
        )
    return [documents[one.name] for one in experiments]


def _check_libraries() -> None:
    lacking = [name for name in _LIBRARIES if find_spec(name) is None]
    if lacking:
        raise NotReady(f"reproduce needs {' and '.join(lacking)}, which this installation (a container?) leaves out")


def _failure(codes: set[int | None]) -> type[P2pdpError]:
    """Return the error to raise: of the kind that all pieces have in common, if they do."""
    return next((kind for kind in (UsageError, NotReady) if codes == {kind.exit_code}), RunFailed)


def _begin(experiment: Experiment, setting: Setting, out: Path) -> _Under:
    pieces = experiment.pieces(setting)
    under = _Under(experiment, {piece.key: piece for piece in pieces}, digests(experiment, setting), {})
    assert len(under.pieces) == len(pieces), f"{experiment.name}: two pieces of one key"
    for piece in pieces:
        facts = [VERSION, experiment.name, setting.quick, piece.key, dict(piece.facts), under.data]
        text = json.dumps(facts, sort_keys=True, allow_nan=False)
        under.digests[piece.key] = hashlib.sha256(text.encode()).hexdigest()
        kept = reproduction.read_piece(out, _group(experiment, setting), piece.key, under.digests[piece.key])
        if kept is not None:
            under.answers[piece.key] = kept
    return under


def _group(experiment: Experiment, setting: Setting) -> str:
    return f"{experiment.name}-quick" if setting.quick else experiment.name


def _work(under: _Under, key: str, setting: Setting, how: tuple[Path, Width]) -> Callable[[], dict[str, Any]]:
    if key == _MAKE:
        in_order = {name: under.answers[name] for name in under.pieces}
        return partial(_make, under.experiment, setting, in_order, under.data, how)
    return under.pieces[key].work


def _take(
    under: _Under, key: str, done: Done, setting: Setting, out: Path, documents: dict[str, dict[str, Any]]
) -> None:
    name = under.experiment.name
    if done.answer is None:
        if under.problem is None:
            under.problem, under.exit_code = f"{key.strip()}: {done.problem}", done.exit_code
    elif key == _MAKE:
        documents[name] = done.answer
    else:
        under.answers[key] = done.answer
        reproduction.write_piece(out, _group(under.experiment, setting), key, under.digests[key], done.answer)


def _make(
    experiment: Experiment, setting: Setting, answers: Answers, data: dict[str, str], how: tuple[Path, Width]
) -> dict[str, Any]:
    """Write all files of an experiment, and return the document that lists them."""
    from p2pdp.experiments.sheet import rendered

    out, width = how
    made = experiment.make(setting, answers)
    stand_in = "stand-in" in data.values()
    files: list[str] = []
    for table in made.tables:
        files.append(f"{_file_name(experiment, table.name)}.csv")
        reproduction.write_table(out / files[-1], table.columns, table.rows)
    note = "; ".join(said for said, true in ((QUICK_NOTE, setting.quick), (STAND_IN, stand_in)) if true)
    alt = alt_text(experiment, note)
    for picture in made.pictures:
        for kind, content in rendered(picture, note=note, title=experiment.title, alt=alt, width=width).items():
            files.append(f"{_file_name(experiment, picture.name)}.{kind}")
            write_bytes(out / files[-1], content)
    document = {
        "name": experiment.name,
        "paper": experiment.paper,
        "title": experiment.title,
        "quick": setting.quick,
        "stand_in": stand_in,
        "seeds": list(experiment.seeds),
        "settings": {key: dict(piece.facts) for key, piece in _pieces(experiment, setting).items()},
        "data": data,
        "versions": _versions(),
        "caption": {**asdict(experiment.caption), "alt": alt},
        "width": width,
        "lines": [asdict(_of_stand_in(line) if stand_in else line) for line in made.lines],
        "files": files,
    }
    for name, text in ((f"{experiment.name}.md", caption_page(document)), (f"{experiment.name}.alt.txt", f"{alt}\n")):
        files.append(name)
        write_text(out / name, text)
    write_json(out / f"{experiment.name}.json", document)
    return document


def _of_stand_in(line: Line) -> Line:
    """Judge nothing where numbers come from generated data."""
    return replace(line, verdict="cannot be known", why=f"{STAND_IN}; with it: {line.why}")


def _pieces(experiment: Experiment, setting: Setting) -> dict[str, Piece]:
    return {piece.key: piece for piece in experiment.pieces(setting)}


def _file_name(experiment: Experiment, part: str) -> str:
    return f"{experiment.name}-{part}" if part else experiment.name


def _versions() -> dict[str, str]:
    return {
        "p2pdp": VERSION,
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
    }
