"""The report of a node to its owner: what came out of a run, and what it cost before and after.

Costs are kept in the node's folder with a digest of all that they follow from, so that a node that comes back, for
which others wait, does not compute them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from p2pdp.assembly.outcome import Number
from p2pdp.core.endings import STOP, TOO_FEW, Stop, why_stopped
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import FINAL, OUT, RESULT, Exclusion
from p2pdp.core.spec import Spec
from p2pdp.files.node_config import NodeConfig
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import OWN, RECEIVED, Contents, public_message, read, whole_message
from p2pdp.node.folder import NodeFolder
from p2pdp.protocols.learning import public_scores
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
from p2pdp.replay.published import survivors_in
from p2pdp.report.documents import plain
from p2pdp.runs.accepting import own_data
from p2pdp.runs.budgeting import Reckoner, reckoning
from p2pdp.runs.costing import Cost, signed_plan, terms_of


@dataclass(frozen=True)
class TookPart:
    """The report to a node's owner after the run. `excluded`: bootstrap put the node out, and it saw no result."""

    run_id: str
    user: int
    nodes: int
    protocol: str
    estimate: Number
    standard_error: Number
    excluded: bool
    skeleton_shared: bool
    private_kept: bool
    faults: dict[str, int]
    folder: str
    cost: list[Cost]  # before taking part, by observer
    spent: list[Cost]  # and after it
    traced: bool | None = None  # True where `wire.jsonl` tells what the node received
    survivors: list[int] | None = None  # whose values the result is made of, where that was decided
    own_scores: dict[str, float | None] | None = None  # scores of a learned model on the owner's own rows
    stopped: str | None = None  # why there is no result, where bootstrap or this node stopped
    clipped: list[dict[str, Any]] = field(default_factory=list)  # columns of which numbers were out of bounds

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = plain(asdict(self))
        document["cost"], document["spent"] = ([one.to_json() for one in costs] for costs in (self.cost, self.spent))
        for name in ("traced", "survivors", "own_scores", "stopped"):
            if document[name] is None:
                del document[name]
        if not self.clipped:
            del document["clipped"]
        return document


def signed_costs(folder: NodeFolder, run: RunPlan, facts: Mapping[str, Any], reckoner: Reckoner) -> list[Cost]:
    """Return what the run of these signed facts costs; facts with kept costs were checked when these were computed."""

    def computed() -> list[Cost]:
        reckoner.sign(run.spec, facts)
        return reckoner.costs()

    return kept_costs(folder, terms_with(terms_of(run), reckoner), computed)


def terms_with(terms: str, reckoner: Reckoner) -> str:
    return f"{terms} shared" if reckoner.shares else terms


def kept_costs(folder: NodeFolder, terms: str, computed: Callable[[], list[Cost]]) -> list[Cost]:
    """Return costs from the folder if they were computed before, which may take seconds."""
    kept = folder.kept_costs(terms)
    if kept is not None:
        return [Cost.from_json(one) for one in kept]
    costs = computed()
    folder.keep_costs(terms, [one.to_json() for one in costs])
    return costs


def told_by(config: NodeConfig, folder: NodeFolder, *, share_skeleton: bool, private_kept: bool) -> TookPart:
    spec, roster = parse_spec(folder.spec_text, None), folder.roster
    facts = dict(roster.facts)
    run = plan_of_facts(spec, facts)
    contents = read(folder.view())
    came = _what_came(contents)
    me, excluded = came.me, came.excluded
    stopped = None if came.over or excluded else _why_stopped(contents)
    published = came.published
    if published is None and came.over and came.own is not None:  # nothing is published, and its own result is its own
        published = run.protocol.publish(run.plan, [came.own])
    survivors = survivors_in(contents, roster.n)
    value = error = scores = None
    if published is not None:
        estimate = run.protocol.estimate_alone(run.plan, published, survivors)
        value, error = estimate.value, estimate.standard_error
        scores = run.protocol.own_scores(run.plan, lambda: own_data(spec, config).user(roster.n, me), published)
        public = own_data(spec, config).public if config.data.public is not None else None
        if public is not None and isinstance(value, list):
            scores = {**(scores or {}), **public_scores(run.plan.descent.objective, public, np.array(value))}
    with reckoning() as process:
        reckoner = Reckoner(process.ask, shares=share_skeleton)
        cost = signed_costs(folder, signed_plan(spec, facts), facts, reckoner)
        reckoner.sign(spec, facts)
        spent = reckoner.spent(me, folder.view_file, cost)
    return TookPart(
        run_id=roster.run_id.hex(),
        user=me,
        nodes=roster.n,
        protocol=roster.protocol,
        estimate=value,
        standard_error=error,
        excluded=excluded,
        skeleton_shared=share_skeleton,
        private_kept=private_kept,
        faults=folder.faults(),
        folder=str(folder.path),
        traced=folder.traced or None,
        survivors=survivors,
        own_scores=scores,
        stopped=stopped,
        clipped=clipped_of(spec, config),
        cost=cost,
        spent=spent,
    )


def spent_so_far(folder: NodeFolder, *, shares: bool) -> list[Cost]:
    """Return what a node that is refused when it comes back has spent; nothing where it had not begun."""
    contents = read(folder.view()) if folder.has_begun else None
    if contents is None or not contents.records:
        return []
    with reckoning() as process:
        reckoner = Reckoner(process.ask, shares=shares)
        reckoner.sign(parse_spec(folder.spec_text, None), dict(folder.roster.facts))
        return reckoner.spent(contents.records[0].body.peer, folder.view_file)


def clipped_of(spec: Spec, config: NodeConfig) -> list[dict[str, Any]]:
    """Return what was clipped of the owner's data; nothing where they are no longer here."""
    try:
        return [asdict(moved) for moved in own_data(spec, config).moved]
    except UsageError:
        return []


def _why_stopped(contents: Contents) -> str:
    """Return why a node whose ledger is closed has no result: bootstrap said so, or else too few users were left."""
    for record in contents.records:
        if record.kind == RECEIVED and record.body.sender == BOOTSTRAP:
            message = public_message(record)
            if message.type == STOP:
                return why_stopped(Stop(*message.fields).reason)
    return why_stopped(TOO_FEW)


class _Came(NamedTuple):
    """The outcome by a node's own ledger: its user, whether the run is over, what was published, and its own result."""

    me: Peer
    over: bool
    published: Any
    own: Any  # of protocols in which every user has a result; published or not
    excluded: bool


def _what_came(contents: Contents) -> _Came:
    records = contents.records
    me: Peer = records[0].body.peer
    over, published, own, excluded = False, None, None, False
    for record in records:
        if record.kind == OWN and public_message(record).type == FINAL:
            own = whole_message(record).value
        if record.kind == RECEIVED and record.body.sender < 0:
            message = public_message(record)
            if record.body.sender == CURATOR and message.type == RESULT:
                over, published = True, whole_message(record).value
            excluded |= (
                record.body.sender == BOOTSTRAP and message.type == OUT and Exclusion(*message.fields).peer == me
            )
    return _Came(me, over, published, own, excluded)
