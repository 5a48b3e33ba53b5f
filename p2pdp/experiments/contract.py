"""The contract of an experiment: pieces of work that can be done in any order and again, and what they make up.

A module of `figures/` defines one `Experiment` or several and needs no registration. The runner forks a process for
each piece, keeps its answer in a file, and calls `make` in a process of its own once all are there. So a piece is a
pure function of its `facts`, which hold all that its answer depends on beside the code and the data files that the
experiment names, and its answer is plain JSON and small. `make` computes verdicts from numbers; no verdict is written
down beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JSON: TypeAlias = Any
"""What `json.dumps(..., allow_nan=False)` takes: infinities are to be the string "inf" before."""
Answers: TypeAlias = Mapping[str, Any]
"""The answers of all pieces, by the pieces' keys, as they come back from JSON."""
Verdict: TypeAlias = Literal["agrees", "differs", "cannot be known"]

_PAPERS: Final = {
    "000": "Privacy Amplification by Decentralization",
    "001": "Report on Privacy Amplification by Decentralization",
    "003": "Network Shuffling",
    "004": "Muffliato",
}
_NAMED: Final = {
    "decor": "The Privacy Power of Correlated Noise in Decentralized Learning",
    "mafalda": "Unified Privacy Guarantees for Decentralized Learning via Matrix Factorization",
}
STAND_IN: Final = "generated stand-in, no real data"
"""What a picture says at its edge when it was made without the data folder."""
QUICK_NOTE: Final = "quick form, not the full one"
"""What a picture says at its edge when it was made by `--quick`."""
Width: TypeAlias = Literal["single", "double"]
"""One column of a paper's page, or both."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The size of an experiment, small and quick or as in the paper, and the data folder, if any.

    `--quick` without a folder takes generated stand-ins; the full form needs the folder where `needs` is not empty.
    """

    quick: bool = False
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A resumable unit of work of seconds to a few minutes; its key, part of a file name, letters, digits and -_."""

    key: str
    work: Callable[[], dict[str, JSON]]
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """Parameters and seed, all that the answer depends on: another value of any of them makes an old answer stale."""


@dataclass(frozen=True, slots=True)
class Line:
    """One number or statement of ours beside the paper's, if it prints one, and what the comparison says."""

    what: str
    ours: float | str
    paper: float | str | None
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV of numbers; its file is `<experiment>.csv`, or `<experiment>-<name>.csv` where the name is not empty."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[float | str]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure; drawn as `<experiment>.png`, `.svg` and `.pdf`, or `<experiment>-<name>` as tables are.

    The size is that of the screen's form; a sheet keeps its height where it is two columns wide.
    """

    name: str
    width_in: float
    height_in: float
    draw: Callable[[Figure], None]


@dataclass(frozen=True, slots=True)
class Caption:
    """The words beside a picture, for readers who have nothing else; `alt` is for those who cannot see it."""

    shows: str
    """The kind of picture, and what is on its axes."""
    compares: str
    see: str
    """The things to see in it; true of the full form."""
    paper: str
    """The statement of the paper that it is about."""
    no_bound: str = ""
    """Which of the paper's numbers promise nothing, and why."""

    @property
    def alt(self) -> str:
        return f"{self.shows} {self.see}"


@dataclass(frozen=True, slots=True)
class Made:
    """All that comes of an experiment's answers."""

    tables: tuple[Table, ...]
    lines: tuple[Line, ...]
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure or table of a paper: its name is what users type, `needs` the data files that it reads."""

    name: str
    title: str
    pieces: Callable[[Setting], list[Piece]]
    make: Callable[[Setting, Answers], Made]
    caption: Caption
    needs: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    @property
    def paper(self) -> str:
        """Return the paper and what of it is made again, by the name: 003-table1 is Table 1 of paper 003."""
        number, _, what = self.name.partition("-")
        if number in _NAMED:
            return _NAMED[number]
        if number not in _PAPERS:
            return "ours"
        kind, place = ("Table", what[5:]) if what.startswith("table") else ("figure", what[3:])
        return f"{_PAPERS[number]}, {kind} {place}"


def compared(what: str, ours: float, paper: float, why: str, *, relative: float = 0.0, absolute: float = 0.0) -> Line:
    """Return a line whose verdict follows from the two numbers and the tolerance, which it states."""
    allowed = max(absolute, relative * abs(paper))
    tolerance = (
        f"within {100 * relative:.2g} % of it" if relative * abs(paper) >= absolute else f"within {absolute:.2g}"
    )
    same = math.isfinite(ours) and abs(ours - paper) <= allowed
    return Line(what, ours, paper, "agrees" if same else "differs", f"{tolerance}: {why}" if why else tolerance)


def holds(what: str, ours: float | str, paper: str, *, true: bool, why: str) -> Line:
    """Return a line for a statement of the paper without a number, such as "below local DP from n = 20 on"."""
    return Line(what, ours, paper, "agrees" if true else "differs", why)


def unknown(what: str, ours: float | str, why: str) -> Line:
    """Return a line for what the paper shows in a picture only, or for what is missing here."""
    return Line(what, ours, None, "cannot be known", why)
