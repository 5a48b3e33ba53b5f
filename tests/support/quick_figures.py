"""The quick form of an experiment, in this process: pieces through JSON and back, then tables, lines and pictures."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from p2pdp.experiments.contract import Experiment, Made, Setting
from p2pdp.experiments.sheet import Sheet, rendered, settings_for

if TYPE_CHECKING:
    from pathlib import Path


def quick(experiment: Experiment, data: Path | None = None) -> tuple[Made, dict[str, Any]]:
    """What is made, after checks that hold of every experiment, and the pieces' answers."""
    setting = Setting(quick=True, data=data)
    pieces = experiment.pieces(setting)
    assert len({piece.key for piece in pieces}) == len(pieces)
    json.dumps([dict(piece.facts) for piece in pieces], allow_nan=False)
    answers = {piece.key: json.loads(json.dumps(piece.work(), allow_nan=False)) for piece in pieces}
    made = experiment.make(setting, answers)
    assert made.lines
    for line in made.lines:
        assert line.what
        assert line.why
        assert line.paper is not None or line.verdict == "cannot be known"
        assert not isinstance(line.ours, float) or math.isfinite(line.ours)
    for table in made.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
    for picture in made.pictures:
        files = rendered(picture, note="quick", title=experiment.title, alt=experiment.caption.alt)
        assert files["png"].startswith(b"\x89PNG")
        assert b"<svg" in files["svg"][:2000]
        assert files["pdf"].startswith(b"%PDF")
        with mpl.rc_context(settings_for("single")):
            narrow = Sheet(picture, "single")
            picture.draw(narrow)
            narrow.fit()
    return made, answers


def line(made: Made, what: str) -> Any:
    """The line about exactly this, or else the one whose subject begins so."""
    exact = [one for one in made.lines if one.what == what]
    (found,) = exact or [one for one in made.lines if one.what.startswith(what)]
    return found
