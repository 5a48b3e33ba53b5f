"""`report.html`: gathers what the page shows from a run's folder and an audit of it, and writes it there.

Where a run is not just ending, its result is read from the folder, so that `audit` makes the same page again that `run`
and `simulate` left. The graph is the one that the ledgers tell, if bootstrap signed its digest: no file is
opened that the spec names. A part that cannot be read is missing from the page, which says so; the claims do not depend
on it.
"""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.audit.estimates import cost_of
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning
from p2pdp.core.errors import P2pdpError
from p2pdp.core.spec import Spec
from p2pdp.files.folder import REPORT_FILE, RESULT_FILE, read_json, write_text
from p2pdp.files.inside import inside
from p2pdp.files.schema import SECTIONS, sections_of
from p2pdp.files.spec import spec_to_toml
from p2pdp.mechanisms import gaussian
from p2pdp.report.html import html_page
from p2pdp.report.page.facts import Curve, Outcome, PageFacts, outcome_of
from p2pdp.report.page.words import observer
from p2pdp.topology.graphs import Graph

if TYPE_CHECKING:
    from p2pdp.runs.audit import Audited


_UNSHOWN: Final = ("run", "transport", "privacy", "audit")
_DELTAS: Final = tuple(10.0 ** (-quarter / 4) for quarter in range(48, 7, -1))  # 1e-12 to 1e-2
_NO_GRAPH: Final = "The ledgers at hand do not tell the graph of this run, so distances in it are unknown."


def write_page(place: Path, audited: Audited, result: dict[str, Any] | None = None) -> None:
    """Writes report.html into the folder of an audited run, from where the result is read if none is given."""
    write_text(place / REPORT_FILE, html_page(page_facts(place, audited, result)), secret=True)


def page_facts(place: Path, audited: Audited, result: dict[str, Any] | None = None) -> PageFacts:
    spec = audited.spec
    assert spec is not None
    outcome, unread = _outcome(place, result, audited.run_id)
    distances, no_distances = _distances(audited)
    exact, cost = audited.epsilon_conditioning == Conditioning.PUBLIC, cost_of(spec)
    return PageFacts(
        run_id=audited.run_id,
        protocol=audited.protocol,
        nodes=audited.nodes,
        delta=audited.delta,
        verified=audited.verified,
        claims=audited.claims,
        refusals=audited.refusals,
        conditioning=audited.epsilon_conditioning,
        epsilon=audited.epsilon,
        mu=audited.mu if exact and cost is None else None,
        coalition=audited.epsilon_coalition,
        distances=distances,
        no_distances=no_distances,
        curves=[
            _curve(claim, audited.delta) for claim in audited.claims if claim.bound and claim.epsilon_max is not None
        ],
        outcome=outcome,
        unread=unread,
        setting=_setting(spec, audited.nodes),
        spec_text=spec_to_toml(spec),
        leak=audited.leak,
        printed=audited.published,
        variation=audited.variation,
    )


def _outcome(place: Path, result: dict[str, Any] | None, run_id: str) -> tuple[Outcome | None, str]:
    """What came out, or why the page cannot say it."""
    try:
        document = read_json(inside(place, place / RESULT_FILE)) if result is None else result
        if document.get("run_id") != run_id:
            return None, f"The {RESULT_FILE} in this folder is that of another run."
        return outcome_of(document), ""
    except P2pdpError:
        return None, f"There is no readable {RESULT_FILE} in this folder."
    except ValueError as error:
        return None, f"The {RESULT_FILE} in this folder cannot be used: {error}."


def _distances(audited: Audited) -> tuple[Floats | None, str]:
    if audited.nodes < 2:
        return None, ""
    return (None, _NO_GRAPH) if audited.graph is None else (distances_in(audited.graph), "")


def distances_in(graph: Graph) -> Floats:
    """Edges on the shortest way between any two nodes; infinite where there is none."""
    if graph.edge_count == graph.n * (graph.n - 1) // 2:
        return 1.0 - np.eye(graph.n)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    heads, tails = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2).T
    matrix = coo_array((np.ones(len(heads)), (heads, tails)), shape=(graph.n,) * 2).tocsr()
    found: Floats = shortest_path(matrix, method="D", directed=False, unweighted=True)
    return found


def _curve(claim: Claim, delta: float) -> Curve:
    assert claim.epsilon_max is not None
    label = f"{observer(claim)} ({claim.method}, {claim.conditioning})"
    if claim.mu_max is None or claim.epsilon_max == math.inf:
        return Curve(label, [(delta, claim.epsilon_max)])
    mu = claim.mu_max
    points = {at: gaussian.epsilon_of(at, mu) for at in _DELTAS}
    return Curve(label, sorted((points | {delta: claim.epsilon_max}).items()))


def _setting(spec: Spec, n: int) -> dict[str, str]:
    """Return each section of the spec as one line, without what was left as it is by default."""
    found = {"protocol": spec.run.protocol, "users": str(n)}
    for name in sections_of(spec.run.protocol):
        if name not in _UNSHOWN:
            part = getattr(spec, name) if name in SECTIONS else spec.options
            given = {item.name: (getattr(part, item.name), item.default) for item in fields(part)}
            found[name] = ", ".join(f"{key} {_value(now)}" for key, (now, default) in given.items() if now != default)
    return found


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " to ".join(map(str, value)) if len(value) == 2 else ", ".join(map(str, value))
    return str(value)
