"""`verify`, `audit`, `views` and `export`, each from a run's folder or an exported file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from p2pdp.auditor.audit import audit_run
from p2pdp.auditor.context import graph_of
from p2pdp.auditor.headline import Verdict, verdict_of
from p2pdp.auditor.pairs import PairTotals
from p2pdp.auditor.verify import INCOMPLETE
from p2pdp.auditor.verify import verify as judge
from p2pdp.cluster.begun import Progress, untold
from p2pdp.cluster.blocks import Cores
from p2pdp.cluster.together import read_together
from p2pdp.core.claims import Claim, Conditioning, Refusal
from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.core.spec import PrivacyPart, Spec
from p2pdp.core.values import PAIR
from p2pdp.core.version import VERSION
from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.roster import Roster
from p2pdp.files.folder import AUDIT_FILE, check_new_file, read_evidence, write_arrays, write_into_folder
from p2pdp.files.folder import export as write_export
from p2pdp.files.keys import read_auditor_key
from p2pdp.files.views import view_lines
from p2pdp.ledger.journal import PRIVATE
from p2pdp.ledger.records import INPUTS, Contents
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.transcript import Transcript
from p2pdp.report.display import Shown, WithClaims, bound_line, people
from p2pdp.report.documents import claim_document, proof_document, refusal_document, verdict_document
from p2pdp.report.page.facts import Proof, Sharing
from p2pdp.report.page.markup import Markup, table
from p2pdp.runs.collector import undisturbed
from p2pdp.runs.comparing import UNKNOWN, estimate_in
from p2pdp.runs.early import begun_early
from p2pdp.runs.in_order import OnLack, check_in_order, first_problem
from p2pdp.runs.memory import Notice, check_memory, in_blocks, unnoticed
from p2pdp.runs.trust import UNPINNED, pinned_key
from p2pdp.topology.components import component_labels
from p2pdp.topology.graphs import Graph, graph_of_edges


@dataclass(frozen=True, slots=True, repr=False)
class Verified(Shown):
    """`verified` is "complete", "incomplete", or None where there are `problems`.

    `run_id` is None where not even spec and roster could be read. `not_checked` says what nothing at hand can tell.
    """

    run_id: str | None
    verified: str | None
    records: int
    problems: list[dict[str, Any]]
    proof: Proof | None = None
    not_checked: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        names = ("run_id", "verified", "records", "problems", "not_checked")
        document = {name: getattr(self, name) for name in names}
        return document | {"digests": None if self.proof is None else proof_document(self.proof)}

    def _said(self) -> list[str]:
        found = f"{len(self.problems)} problems" if self.problems else str(self.verified)
        first = [f"node {one['node']}: {one['what']}" for one in self.problems[:1]]
        return [f"run {self.run_id}, {self.records} records: {found}", *first]

    def _markup(self) -> list[Markup]:
        rows = [(one["node"], one["index"], one["what"]) for one in self.problems]
        return [table(("node", "record", "what"), rows)] if rows else []

    def _rows(self) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        return self.problems, ("node", "index", "what")


@dataclass(frozen=True, slots=True, repr=False)
class Audited(WithClaims):
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
    sharing: Sharing | None = None
    run: RunPlan | None = field(default=None, repr=False)  # by the signed facts, without a graph
    proof: Proof | None = field(default=None, repr=False)
    rows: tuple[int, ...] | None = None  # of each user, where the private ledgers of all are at hand
    not_checked: tuple[str, ...] = ()  # what nothing at hand can tell
    estimate: Any = UNKNOWN  # by the curator's ledger
    totals: PairTotals | None = None  # in place of arrays, where there are many users and pairs were not asked for

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.claims, self.refusals, self.nodes, self.delta)

    @property
    def headline(self) -> dict[str, Any]:
        """Return the headline as in `audit.json`."""
        found: dict[str, Any] = verdict_document(self.verdict)["headline"]
        return found

    @property
    def worst(self) -> dict[str, Any]:
        """Return the same for the worst observer of all that are not trusted."""
        found: dict[str, Any] = verdict_document(self.verdict)["worst"]
        return found

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

    def _said(self) -> list[str]:
        what = f"{len(self.claims)} claims, {len(self.refusals)} refused, ledgers {self.verified}"
        return [f"{self.protocol}, {people(self.nodes)}, {what}", *bound_line(self._bounds()["headline"])]

    def _bounds(self) -> dict[str, Any]:
        return verdict_document(self.verdict)

    def save_pairs(self, file: str | Path) -> None:
        """Write `--pairs`: arrays [user, observer] with NaN on the diagonal, and coalitions [user]."""
        check_pairs_file(file)
        if self.totals is not None:
            raise UsageError("--pairs: the pairs of so many users are not held unless they are asked for: pairs=True")
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
        from p2pdp.runs.pages import write_page

        if write_into_folder(Path(place), AUDIT_FILE, self.to_json()):
            write_page(Path(place), self, result)


def check_pairs_file(file: str | Path) -> None:
    """Refuse a name that `--pairs` cannot write, before any work is done."""
    path = Path(file)
    if path.suffix != ".npz":
        raise UsageError(f"--pairs {file}: the name must end in .npz")
    check_new_file(path, "--pairs")


@undisturbed()
def verify(place: str | Path, key: str | Path | None = None, bootstrap: str | Path | None = None) -> Verified:
    root = pinned_key(bootstrap, Path(place))
    try:
        evidence = read_evidence(Path(place), _opened(key))
    except VerificationFailed as error:
        return Verified(None, None, 0, [{"node": peer_name(BOOTSTRAP), "index": None, "what": str(error)}])
    cores = Cores(None)
    read_together(evidence, cores.processes)
    checked = judge(evidence, root, cores)
    problems = [
        {"node": peer_name(problem.peer), "index": problem.index, "what": problem.what} for problem in checked.problems
    ]
    proof = proof_of(evidence, checked.views)
    untold = [*checked.unchecked, *([UNPINNED] if root is None else [])]
    return Verified(evidence.roster.run_id.hex(), checked.verified, checked.records, problems, proof, untold)


def proof_of(evidence: Evidence, views: Mapping[Peer, Contents]) -> Proof:
    """Return what a page or another copy is compared by: digests, bootstrap's key and signature, ends of ledgers.

    A ledger and its skeleton end in the same hash. That ledgers are in order is for `verify` to say.
    """
    roster = evidence.roster
    ends = {str(peer_name(peer)): views[peer].records[-1].hash.hex() for peer in sorted(views) if views[peer].records}
    lines = "".join(f"{name} {end}\n" for name, end in ends.items())
    together = blake2b(lines.encode(), digest_size=32, person=b"p2pdp ledgers 1").hexdigest() if ends else None
    return Proof(
        VERSION,
        evidence.spec_digest.hex(),
        roster.digest.hex(),
        roster.bootstrap.identity.hex(),
        roster.signature.hex(),
        ends,
        together,
    )


@undisturbed()
def audit(
    place: str | Path,
    colluders: Sequence[int] | None,
    delta: float | None,
    *,
    allow_missing: bool,
    key: str | Path | None = None,
    progress: Progress | None = None,
    bootstrap: str | Path | None = None,
    workers: int | None = None,
    notice: Notice = unnoticed,
    pairs: bool = False,
) -> Audited:
    """Audit a run. Without `key`, the auditor's key file, sealed skeletons count as missing if that is allowed.

    `progress` is told how many users were looked at, of how many; `notice` how much memory a large audit takes. With
    `pairs` the numbers of all pairs are held, however many users there are.
    """
    given: Any = delta  # callers of Python may hand in anything
    if given is not None and not (isinstance(given, int | float) and 0.0 < given < 1.0):
        raise UsageError("--delta: must be strictly between 0 and 1")
    users: Any = colluders
    if users is not None and not (isinstance(users, Iterable) and all(type(one) is int for one in users)):
        raise UsageError("--colluders: must be numbers of users")
    evidence = read_evidence(Path(place), _opened(key), sealed_too=not allow_missing)
    if evidence.own is not None:
        raise UsageError(f"{place}: holds one node's view only; an audit needs the skeletons of all")
    root = pinned_key(bootstrap, Path(place))
    cores = Cores(workers, _by_users(progress, evidence.roster.n) if progress is not None else untold, ahead=True)
    return audit_evidence(
        evidence, colluders, delta, allow_missing=allow_missing, root=root, cores=cores, notice=notice, pairs=pairs
    )


def _by_users(progress: Progress, users: int) -> Progress:
    """Tell progress in users, whatever is counted."""
    return lambda done, total: progress(max(1, done * users // total), users)


def audit_evidence(
    evidence: Evidence,
    colluders: Sequence[int] | None = None,
    delta: float | None = None,
    *,
    allow_missing: bool = False,
    root: bytes | None = None,
    cores: Cores | None = None,
    notice: Notice = unnoticed,
    pairs: bool = False,
) -> Audited:
    """Return the claims of a run whose evidence is at hand; by default with the spec's colluders and delta.

    All cores are used without `cores`. A large one that does not fit into memory is refused before it begins.
    """
    each = cores or Cores(None, ahead=True)
    read_together(evidence, each.processes)
    check_memory(evidence, each.processes, notice, pairs=pairs)
    with begun_early(evidence, each) as ahead:
        checked = judge(evidence, root, each)
        if checked.verified is None and not (allow_missing and checked.only_missing):
            without = "; with --allow-missing it claims what it can" if checked.only_missing else ""
            raise VerificationFailed(first_problem(checked) + without)
        roster, privacy = evidence.roster, evidence.spec.privacy
        at_delta = privacy.delta if delta is None else delta
        assert at_delta is not None
        incomplete = sorted({*checked.missing, *checked.cut_short})
        views = {peer: contents for peer, contents in checked.views.items() if peer not in checked.missing}
        coalition = privacy.colluders if colluders is None else tuple(colluders)
        blocks = in_blocks(evidence, pairs=pairs)
        recorded = evidence.recorded(views)
        made = audit_run(evidence.run, recorded, incomplete, at_delta, coalition, each, ahead=ahead, in_blocks=blocks)
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
        signed_graph(roster, views),
        sharing_in(roster.n, recorded.transcript, coalition),
        evidence.run,
        replace(proof_of(evidence, views), audit=_again(privacy, coalition, at_delta)),
        _rows_of(evidence),
        (*checked.unchecked, *([UNPINNED] if root is None else [])),
        estimate_in(evidence),
        made.totals,
    )


def _again(privacy: PrivacyPart, coalition: Sequence[int], delta: float) -> str:
    """Return the command that makes these claims again."""
    colluders = f" --colluders {','.join(map(str, coalition))}" if tuple(coalition) != privacy.colluders else ""
    return f"p2pdp audit FILE{colluders}{f' --delta {delta!r}' if delta != privacy.delta else ''}"


def _rows_of(evidence: Evidence) -> tuple[int, ...] | None:
    """Return how many rows each user holds, which the roster says or private ledgers keep."""
    if evidence.roster.entries.rows is not None:
        return evidence.roster.entries.rows
    found = []
    for user in range(evidence.roster.n):
        records = evidence.contents(user, PRIVATE).records if evidence.private.get(user) else []
        counts = [record.body.values for record in records if record.kind == INPUTS]
        if not counts:
            return None
        found.append(counts[0])
    return tuple(found)


def sharing_in(nodes: int, transcript: Transcript, colluders: Sequence[Peer]) -> Sharing | None:
    """Return who draws noise together, and what curator and colluders know of that; None if nobody does."""
    sources = [source for source in transcript.pairs if source.kind == PAIR]
    if not sources:
        return None
    known_sources = transcript.known_to((BOOTSTRAP, CURATOR, *colluders))
    ends = [(source.peer, source.other) for source in sources]
    secret = {
        edge
        for edge, source in zip(ends, sources, strict=True)
        if source not in known_sources and not set(edge) & set(colluders)
    }
    told = [source for form in transcript.published or () for source in form.expand()]
    within = {source.peer for source in told if source.kind == "input"} or set(range(nodes))
    away = set(range(nodes)) - within - set(colluders)
    labels = component_labels(graph_of_edges(nodes, sorted(secret)), [*away, *colluders])
    groups: dict[int, list[int]] = {}
    for user in sorted(within - set(colluders)):
        groups.setdefault(int(labels[user]), []).append(user)
    return Sharing(
        nodes,
        sorted(set(ends)),
        frozenset(set(ends) - secret),
        frozenset(colluders),
        frozenset(away),
        sorted(map(tuple, groups.values()), key=lambda group: (-len(group), group)),
    )


def signed_graph(roster: Roster, views: Mapping[Peer, Contents]) -> Graph | None:
    """Return the graph that the ledgers tell, if it is the one that bootstrap signed."""
    graph = graph_of(views, roster.n)
    signed = dict(roster.facts).get("graph")
    return graph if graph is not None and graph.digest.hex() == signed else None


def views(place: str | Path, *, unverified: bool = False, on_lack: OnLack = None) -> Iterator[dict[str, Any]]:
    """Return every record at hand; `unverified`: also of ledgers that are not in order, to see what is wrong."""
    evidence = read_evidence(Path(place), sealed_too=False)
    if not unverified:
        check_in_order(evidence, on_lack)
    run = evidence.run
    return view_lines(evidence, 2.0**run.plan.grid_exponent, run.protocol.analysis().decoded(run))


def export(
    place: str | Path,
    out: str | Path,
    key: str | Path | None = None,
    *,
    unverified: bool = False,
    on_lack: OnLack = None,
) -> int:
    """Write one file without values; `unverified`: also of ledgers that are not in order, to show what is wrong."""
    check = None if unverified else partial(check_in_order, on_lack=on_lack)
    return write_export(Path(place), Path(out), _opened(key), check=check)


def _opened(key: str | Path | None) -> RunKey | None:
    return None if key is None else read_auditor_key(Path(key))
