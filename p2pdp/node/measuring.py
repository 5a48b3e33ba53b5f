"""Measures of objectives that a spec names, taken in a process of its own.

So a process that plans, launches or serves a run holds neither torch nor any of the model's code, and the nodes that it
forks are not born with them; only nodes that learn load them. It is run as `python -m p2pdp.node.measuring`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.spec import Spec, TaskPart
from p2pdp.files.folder import read_json, write_json
from p2pdp.files.model_code import model_code
from p2pdp.node.helper import Helper, serve
from p2pdp.protocols.learning import is_named, with_objective
from p2pdp.tasks.named import Measures, loaded, measured

MEASURES_FILE: Final = "model.json"


def with_measures(spec: Spec, folder: Path | None = None) -> Spec:
    """Return the spec with the objective that it names, whose measures are taken elsewhere when they are needed.

    A run's folder keeps them, so that each of its processes has them.
    """
    if not is_named(spec) or spec.task.own is not None:
        return spec

    def measure(columns: int, norm_max: float | None) -> Measures:
        if folder is not None and (folder / MEASURES_FILE).is_file():
            return _kept(folder / MEASURES_FILE)
        found = _asked(spec.task, columns, norm_max)
        if folder is not None:
            write_json(folder / MEASURES_FILE, found.to_json())
        return found

    return with_objective(spec, measure, model_code(spec.task))


def _kept(place: Path) -> Measures:
    try:
        return Measures.from_json(read_json(place))
    except (KeyError, TypeError, ValueError):
        raise VerificationFailed(f"{place}: is damaged") from None


def _asked(task: TaskPart, columns: int, norm_max: float | None) -> Measures:
    request = {"task": asdict(replace(task, own=None)), "columns": columns, "norm_max": norm_max}
    with Helper("p2pdp.node.measuring", "the size and the start of the model") as helper:
        return Measures.from_json(helper.ask(request))


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    objective = loaded(TaskPart(**request["task"]))
    return measured(objective, request["columns"], request["norm_max"]).to_json()


if __name__ == "__main__":
    serve(answer)
