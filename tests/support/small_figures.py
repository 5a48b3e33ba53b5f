"""An experiment's quick form by name, with its lines and rows at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from p2pdp.experiments.figures import experiments
from tests.support.quick_figures import quick

if TYPE_CHECKING:
    from pathlib import Path

    from p2pdp.experiments.contract import Line


class Run:
    """`lines` are by what they are about."""

    def __init__(self, name: str, data: Path | None = None) -> None:
        self.made, self.answers = quick(experiments()[name], data)
        self.lines: dict[str, Line] = {line.what: line for line in self.made.lines}
        assert len(self.lines) == len(self.made.lines)

    def line(self, part: str) -> Line:
        """The one line about it."""
        (found,) = [line for what, line in self.lines.items() if part in what]
        return found

    def rows(self, table: str = "") -> list[list[Any]]:
        (found,) = [one for one in self.made.tables if one.name == table]
        return [list(row) for row in found.rows]
