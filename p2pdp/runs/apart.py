"""Orders for live runs in a process of their own (`cluster/apart.py`), which this module serves when it is started.

An order holds the text of the spec and what came from Python: rows and edges. An objective is code, which
does not travel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from p2pdp.cluster.apart import serve
from p2pdp.cluster.layout import Packing
from p2pdp.core.spec import Spec
from p2pdp.files.folder import RESULT_FILE, SPEC_FILE, read_json
from p2pdp.files.given import Given
from p2pdp.files.making import with_data
from p2pdp.files.reading import read_text
from p2pdp.files.spec import parse_spec, spec_to_toml
from p2pdp.files.tables import largest_component
from p2pdp.report.result import Result
from p2pdp.runs.live import resume, run_spec

MODULE: Final = "p2pdp.runs.apart"


def run_order(spec: Spec, out: Path | None, packing: Packing) -> dict[str, Any]:
    """Return the order to run a spec."""
    own, edges = spec.data.own, spec.graph.own
    return {
        "spec": spec_to_toml(spec),
        "data": None if own is None else own.packed(),
        "edges": None if edges is None else [(edges.labels[u], edges.labels[v]) for u, v in edges.edges.tolist()],
        "out": None if out is None else str(out),
        "packing": asdict(packing),
    }


def resume_order(folder: Path, nodes_per_process: int | None, *, spawn: bool | None, data: Any) -> dict[str, Any]:
    """Return the order to continue a run."""
    own = None
    if data is not None:
        own = with_data(parse_spec(read_text(folder / SPEC_FILE), None), data, folder).data.own.packed()
    return {"folder": str(folder), "nodes_per_process": nodes_per_process, "spawn": spawn, "data": own}


def result_in(folder: str) -> Result:
    """Return the result of a run that is done."""
    return Result.from_json({**read_json(Path(folder) / RESULT_FILE), "folder": folder})


def _done(order: Mapping[str, Any], tell: Callable[[dict[str, Any]], None]) -> str | None:
    """Do what an order says; return the folder of the result."""
    data = None if order["data"] is None else Given.unpacked(order["data"])
    if "folder" in order:
        folder = Path(order["folder"])
        return resume(folder, tell, order["nodes_per_process"], spawn=order["spawn"], data=data).folder
    spec = parse_spec(order["spec"], None)
    edges = None if order["edges"] is None else largest_component([(a, b) for a, b in order["edges"]])
    spec = replace(spec, data=replace(spec.data, own=data), graph=replace(spec.graph, own=edges))
    out = None if order["out"] is None else Path(order["out"])
    return run_spec(spec, out, tell, Packing(**order["packing"])).folder


if __name__ == "__main__":
    serve(_done)
