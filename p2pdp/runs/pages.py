"""The auditor's edition of the report, `report.html`, gathered from a run's folder and an audit of it.

Unless a run is just ending, its result is read from the folder, so that `audit` makes the same page again that `run`
and `simulate` left. The graph is the one in the ledgers, if bootstrap signed its digest: no file that the spec names
is opened. The page says which part of it could not be read and is missing; the claims do not depend on any of these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from p2pdp.auditor.claims import cost_of
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning, Unit
from p2pdp.core.errors import P2pdpError
from p2pdp.core.spec import REAL_DATA, Spec
from p2pdp.files import guide
from p2pdp.files.folder import AUDIT_FILE, REPORT_FILE, RESULT_FILE, drop_file, write_text
from p2pdp.files.pages import page_file
from p2pdp.files.results import read_result
from p2pdp.files.schema import SECTIONS, sections_of
from p2pdp.files.spec import spec_to_toml, without_paths
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.html import failed_page, html_page
from p2pdp.report.page.facts import Advice, Curve, Outcome, PageFacts, outcome_of
from p2pdp.report.page.words import number, observer
from p2pdp.report.result import Result
from p2pdp.runs.advice import ASKED_FOR, IN_PASSING, Patience, advice_on, lacks_objective
from p2pdp.runs.audit import Audited, audit
from p2pdp.runs.comparing import differs
from p2pdp.topology.graphs import Graph, complete_graph

_UNSHOWN: Final = ("run", "transport", "privacy", "audit")
_DELTAS: Final = tuple(10.0 ** (-quarter / 4) for quarter in range(48, 7, -1))  # 1e-12 to 1e-2
_NO_GRAPH: Final = "The ledgers at hand do not tell the graph of this run, so distances in it are unknown."


def write_page(place: Path, audited: Audited, result: dict[str, Any] | None = None) -> None:
    """Write report.html into the folder of an audited run, from where the result is read if none is given."""
    write_text(place / REPORT_FILE, html_page(page_facts(place, audited, result)), secret=True)


def save_failure(place: Path, result: Result) -> None:
    """Say on the page of a run that its ledgers did not pass verification, and drop an audit that says otherwise."""
    drop_file(place / AUDIT_FILE)
    write_text(place / REPORT_FILE, failed_page(result), secret=True)


def write_auditors_page(place: Path, out: Path | None, key: Path | None, *, allow_missing: bool) -> Path:
    """Audit a run and write its page, by default into its folder; return the file."""
    file = page_file(place, out, REPORT_FILE)
    audited = audit(place, None, None, allow_missing=allow_missing, key=key)
    write_text(file, html_page(page_facts(place, audited, patience=ASKED_FOR)), secret=True)
    return file


def page_facts(
    place: Path, audited: Audited, result: dict[str, Any] | None = None, patience: Patience = IN_PASSING
) -> PageFacts:
    """Gather the page; `patience` is for what would be different with more noise."""
    assert audited.spec is not None
    spec = without_paths(audited.spec)
    outcome, unread = _outcome(place, result, audited)
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
        totals=audited.totals,
        sharing=audited.sharing,
        about=about(spec, audited.nodes, None if audited.run is None else audited.run.dimensions, audited.rows),
        proof=audited.proof,
        advice=_advice(audited, patience),
        glossary=glossary(),
    )


def _advice(audited: Audited, patience: Patience) -> Advice | None:
    """Return the advice for the next run of this kind, on the graph that was signed."""
    run, rows = audited.run, audited.rows
    if run is None:
        return None
    one_value = run.by_record or (made_up(run.spec) if rows is None else set(rows) == {1})
    return advice_on(on_graph(run, audited.graph), one_value=one_value, patience=patience)


def on_graph(run: RunPlan, signed: Graph | None) -> RunPlan:
    """Return the plan with the graph that was signed, if it is known, and what follows from it."""
    graph = complete_graph(run.n) if run.spec.graph.changing else signed  # where it changes, anybody may meet anybody
    if graph is None or lacks_objective(run.spec):
        return run
    return replace(run, graph=graph, graph_facts={**run.graph_facts, **run.protocol.graph_facts(run.spec, graph)})


def made_up(spec: Spec) -> bool:
    """Return whether the data are synthetic, one value for each user."""
    return spec.data.kind not in REAL_DATA


_STAND_FOR: Final = {
    Unit.USER: "each of whom stands for all rows that its node holds",
    Unit.RECORD: "each of whose rows is protected by itself",
}


def about(spec: Spec, n: int, dimensions: int | None, rows: Sequence[int] | None = None) -> dict[str, str]:
    """Say who ran what on which data, in a few words each; never a path."""
    told = {} if spec.run.purpose is None else {"purpose": spec.run.purpose}
    told["computed"] = f"{spec.task.kind.replace('_', ' ')}, by the protocol {spec.run.protocol}"
    told["users"] = f"{n}, {_STAND_FOR[spec.privacy.unit]}"
    data = f"synthetic ({spec.data.kind})" if made_up(spec) else f"tables ({spec.data.kind})"
    if spec.data.columns is not None:
        data += f"; columns {', '.join(map(str, spec.data.columns))}"
    told["data"] = data
    if dimensions is not None:
        told["values"] = f"{dimensions} number{'s' if dimensions > 1 else ''} each"
    if rows:
        spread = f"{rows[0]} each" if len(set(rows)) == 1 else f"{min(rows)} to {max(rows)} of one user"
        told["rows"] = f"{sum(rows):,} in all, {spread}"
    if spec.data.clip is not None:
        told["bounds"] = f"every number is clipped to [{number(spec.data.clip[0])}, {number(spec.data.clip[1])}]"
    if spec.privacy.budget is not None:
        told["allowed"] = f"ε {number(spec.privacy.budget)} at most, by the spec"
    return told


_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")


@cache
def glossary() -> dict[str, str]:
    """Return the terms of the guide's glossary with their meanings, as plain text."""
    rows = [line.strip().strip("|").split(" | ") for line in guide.page("glossary").text.splitlines() if "|" in line]
    return {_plain(row[0]): _plain(row[1]) for row in rows[2:] if len(row) == 2}


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("`", "").strip()


def _outcome(place: Path, result: dict[str, Any] | None, audited: Audited) -> tuple[Outcome | None, str]:
    """Return the outcome, or why the page cannot show it."""
    try:
        document = read_result(place) if result is None else result
        if document.get("run_id") != audited.run_id:
            return None, f"The {RESULT_FILE} in this folder is that of another run."
        outcome = outcome_of(document)
    except P2pdpError:
        return None, f"There is no readable {RESULT_FILE} in this folder."
    except ValueError as error:
        return None, f"The {RESULT_FILE} in this folder cannot be used: {error}."
    if differs(document, audited.estimate):
        return None, f"The {RESULT_FILE} in this folder has another estimate than the curator's ledger."
    return outcome, ""


def _distances(audited: Audited) -> tuple[Floats | None, str]:
    if audited.nodes < 2 or audited.totals is not None:
        return None, ""
    return (None, _NO_GRAPH) if audited.graph is None else (distances_in(audited.graph), "")


def distances_in(graph: Graph) -> Floats:
    """Return the number of edges between any two nodes; infinite where nothing connects them."""
    if graph.edge_count == graph.n * (graph.n - 1) // 2:
        return 1.0 - np.eye(graph.n)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    heads, tails = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2).T
    matrix = coo_array((np.ones(len(heads)), (heads, tails)), shape=(graph.n,) * 2).tocsr()
    distances: Floats = shortest_path(matrix, method="D", directed=False, unweighted=True)
    return distances


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
    lines = {"protocol": spec.run.protocol, "users": str(n)}
    for name in sections_of(spec.run.protocol):
        if name not in _UNSHOWN:
            part = getattr(spec, name) if name in SECTIONS else spec.options
            given = {item.name: (getattr(part, item.name), item.default) for item in fields(part)}
            lines[name] = ", ".join(f"{key} {_value(now)}" for key, (now, default) in given.items() if now != default)
    return lines


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " to ".join(map(str, value)) if len(value) == 2 else ", ".join(map(str, value))
    return str(value)
