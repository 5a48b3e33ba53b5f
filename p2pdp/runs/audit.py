"""`verify`, `audit`, `views` and `export`, each from a run's folder or an exported file, and the page `report.html`.

The page is gathered from a run's folder and an audit of it. Unless a run is just ending, its result is read from the
folder, so that `audit` makes the same page again that `run` and `simulate` left. The graph is the one in the ledgers,
if bootstrap signed its digest: no file that the spec names is opened. The page says which part of it could not be read
and is missing; the claims do not depend on any of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from p2pdp.auditor.audit import audit_run
from p2pdp.auditor.claims import cost_of
from p2pdp.auditor.context import graph_of
from p2pdp.auditor.headline import Verdict, verdict_of
from p2pdp.auditor.verify import INCOMPLETE, Verification
from p2pdp.auditor.verify import verify as judge
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning, Refusal
from p2pdp.core.errors import P2pdpError, Refused, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, Peer, peer_name
from p2pdp.core.spec import Spec
from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.roster import Roster
from p2pdp.files.folder import (
    AUDIT_FILE,
    REPORT_FILE,
    RESULT_FILE,
    check_new_file,
    read_evidence,
    read_json,
    write_arrays,
    write_into_folder,
    write_text,
)
from p2pdp.files.folder import export as write_export
from p2pdp.files.keys import read_auditor_key
from p2pdp.files.reading import inside
from p2pdp.files.schema import SECTIONS, sections_of
from p2pdp.files.spec import spec_to_toml
from p2pdp.files.views import view_lines
from p2pdp.ledger.records import Contents
from p2pdp.mechanisms import gaussian
from p2pdp.replay.evidence import Evidence
from p2pdp.report.documents import claim_document, refusal_document, verdict_document
from p2pdp.report.html import html_page
from p2pdp.report.page.facts import Curve, Outcome, PageFacts, outcome_of
from p2pdp.report.page.words import observer
from p2pdp.runs.collector import undisturbed
from p2pdp.topology.graphs import Graph


@dataclass(frozen=True, slots=True)
class Verified:
    """`verified` is "complete", "incomplete", or None where there are `problems`.

    `run_id` is None where not even spec and roster could be read.
    """

    run_id: str | None
    verified: str | None
    records: int
    problems: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("run_id", "verified", "records", "problems")}


@dataclass(frozen=True, slots=True)
class Audited:
    """The claims of a run that happened. Arrays are indexed [user, observer]; None where nothing is exact."""

    run_id: str
    protocol: str
    nodes: int
    delta: float
    verified: str
    claims: list[Claim]
    refusals: list[Refusal]
    mu: Any = None
    leak: Any = None
    epsilon: Any = None
    epsilon_conditioning: str = Conditioning.PUBLIC
    mu_coalition: Any = None
    leak_coalition: Any = None
    published: Any = None
    variation: Any = None
    epsilon_coalition: Any = None
    spec: Spec | None = None
    graph: Graph | None = None  # the one that was signed, where the ledgers at hand tell it

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.claims, self.refusals, self.nodes, self.delta)

    def to_json(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "protocol": self.protocol,
            "nodes": self.nodes,
            "delta": self.delta,
            "verified": self.verified,
            **verdict_document(self.verdict),
            "claims": [claim_document(claim) for claim in self.claims],
            "refusals": [refusal_document(refusal) for refusal in self.refusals],
        }

    def save_pairs(self, file: str | Path) -> None:
        """Write `--pairs`: arrays [user, observer] with NaN on the diagonal, and coalitions [user]."""
        check_pairs_file(file)
        if self.mu is None:
            raise Refused("--pairs: no leak of this run is exact, so there is none to list for each pair")
        arrays = {"mu": self.mu, "leak": self.leak, "epsilon": self.epsilon}
        arrays["epsilon_conditioning"] = np.array(self.epsilon_conditioning)
        if self.published is not None:
            arrays["published"] = self.published
        if self.mu_coalition is not None:
            arrays |= {"mu_coalition": self.mu_coalition, "leak_coalition": self.leak_coalition}
        write_arrays(Path(file), arrays)

    def save(self, place: str | Path, result: dict[str, Any] | None = None) -> None:
        """Write audit.json and report.html into the folder of the run; beside an exported file nothing is written.

        The report shows this result, by default the one in the folder.
        """
        if write_into_folder(Path(place), AUDIT_FILE, self.to_json()):
            write_page(Path(place), self, result)


def check_pairs_file(file: str | Path) -> None:
    """Refuse a name that `--pairs` cannot write, before any work is done."""
    path = Path(file)
    if path.suffix != ".npz":
        raise UsageError(f"--pairs {file}: the name must end in .npz")
    check_new_file(path, "--pairs")


@undisturbed()
def verify(place: str | Path, key: str | Path | None = None) -> Verified:
    try:
        evidence = read_evidence(Path(place), _opened(key))
    except VerificationFailed as error:
        return Verified(None, None, 0, [{"node": peer_name(BOOTSTRAP), "index": None, "what": str(error)}])
    checked = judge(evidence)
    problems = [
        {"node": peer_name(problem.peer), "index": problem.index, "what": problem.what} for problem in checked.problems
    ]
    return Verified(evidence.roster.run_id.hex(), checked.verified, checked.records, problems)


@undisturbed()
def audit(
    place: str | Path,
    colluders: Sequence[int] | None,
    delta: float | None,
    *,
    allow_missing: bool,
    key: str | Path | None = None,
) -> Audited:
    """Audit a run. Without `key`, the auditor's key file, sealed skeletons count as missing if that is allowed."""
    if delta is not None and not 0.0 < delta < 1.0:
        raise UsageError("--delta: must be strictly between 0 and 1")
    evidence = read_evidence(Path(place), _opened(key), sealed_too=not allow_missing)
    if evidence.own is not None:
        raise UsageError(f"{place}: holds one node's view only; an audit needs the skeletons of all")
    return audit_evidence(evidence, colluders, delta, allow_missing=allow_missing)


def audit_evidence(
    evidence: Evidence,
    colluders: Sequence[int] | None = None,
    delta: float | None = None,
    *,
    allow_missing: bool = False,
) -> Audited:
    """Return the claims of a run whose evidence is at hand; by default with the spec's colluders and delta."""
    checked = judge(evidence)
    if checked.verified is None and not (allow_missing and checked.only_missing):
        raise VerificationFailed(_first_problem(checked))
    roster, privacy = evidence.roster, evidence.spec.privacy
    at_delta = privacy.delta if delta is None else delta
    assert at_delta is not None
    incomplete = sorted({*checked.missing, *checked.cut_short})
    views = {peer: contents for peer, contents in checked.views.items() if peer not in checked.missing}
    coalition = privacy.colluders if colluders is None else tuple(colluders)
    made = audit_run(evidence.run, evidence.recorded(views), incomplete, at_delta, coalition)
    return Audited(
        roster.run_id.hex(),
        roster.protocol,
        roster.n,
        at_delta,
        checked.verified or INCOMPLETE,
        made.claims,
        made.refusals,
        *(made.mu, made.leak, made.epsilon, made.epsilon_conditioning, made.mu_coalition, made.leak_coalition),
        made.published,
        made.variation,
        made.epsilon_coalition,
        evidence.spec,
        _signed_graph(roster, views),
    )


def _signed_graph(roster: Roster, views: Mapping[Peer, Contents]) -> Graph | None:
    graph = graph_of(views, roster.n)
    signed = dict(roster.facts).get("graph")
    return graph if graph is not None and graph.digest.hex() == signed else None


def _first_problem(checked: Verification) -> str:
    first = checked.problems[0]
    place = peer_name(first.peer) if first.index is None else f"{peer_name(first.peer)}, record {first.index}"
    more = f" (and {len(checked.problems) - 1} more: p2pdp verify lists them)" if len(checked.problems) > 1 else ""
    return f"node {place}: {first.what}{more}"


def views(place: str | Path) -> Iterator[dict[str, Any]]:
    evidence = read_evidence(Path(place), sealed_too=False)
    run = evidence.run
    return view_lines(evidence, 2.0**run.plan.grid_exponent, run.protocol.analysis().decoded(run))


def export(place: str | Path, out: str | Path, key: str | Path | None = None) -> int:
    return write_export(Path(place), Path(out), _opened(key))


def _opened(key: str | Path | None) -> RunKey | None:
    return None if key is None else read_auditor_key(Path(key))


_UNSHOWN: Final = ("run", "transport", "privacy", "audit")
_DELTAS: Final = tuple(10.0 ** (-quarter / 4) for quarter in range(48, 7, -1))  # 1e-12 to 1e-2
_NO_GRAPH: Final = "The ledgers at hand do not tell the graph of this run, so distances in it are unknown."


def write_page(place: Path, audited: Audited, result: dict[str, Any] | None = None) -> None:
    """Write report.html into the folder of an audited run, from where the result is read if none is given."""
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
    """Return the outcome, or why the page cannot show it."""
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
