"""`node`: one user's part of a run whose other users are on other machines.

`Member` decides on behalf of the node's owner which data it contributes, which runs it accepts and what these may cost.

Guarantee: the owner sees what a run costs, and `[accept]` and `[budget]` are applied, before the node contacts anybody
else, and again with the signed roster before the node is ready. A node that comes back to a run applies the limits that
its configuration has now. Costs are kept in its folder with a digest of all that they follow from, so that a node that
comes back, for which others wait, does not compute them again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2pdp.assembly.outcome import Number
from p2pdp.core.errors import Refused
from p2pdp.core.expiry import Expired
from p2pdp.core.happenings import Notify, happening
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import OUT, RESULT, Exclusion
from p2pdp.core.spec import RunPart, Spec
from p2pdp.crypto.roster import Roster
from p2pdp.files.node_config import NodeConfig, load_node_config
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger.records import RECEIVED, Contents, public_message, read, whole_message
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler, warm
from p2pdp.node.addresses import RemotePeersSettings
from p2pdp.node.folder import NodeFolder
from p2pdp.node.process import run_in_foreground, with_pulse
from p2pdp.node.user import UserNode, UserSettings, has_finished
from p2pdp.peer.credentials import Credentials
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
from p2pdp.report.documents import plain
from p2pdp.runs.accepting import (
    OwnData,
    check_accepted,
    check_neighbours,
    check_rounds,
    check_seat,
    describe,
    offered_spec,
    own_data,
    who_reads,
)
from p2pdp.runs.budgeting import NodeBudget, Reckoner, reckoning, rounds_of
from p2pdp.runs.costing import OTHERS_SKELETONS, Cost, check_epsilon, rests_on_others, signed_plan, terms_of
from p2pdp.runs.watching import HttpOptions, Watch, Watching, watched
from p2pdp.transports.contract import NodeEndpoint, NodeSettings, Say
from p2pdp.transports.registry import kind_of_address

if TYPE_CHECKING:
    from p2pdp.web.status import Status


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
    own_scores: dict[str, float | None] | None = None  # scores of a learned model on the owner's own rows

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = plain(asdict(self))
        for name in ("traced", "own_scores"):
            if document[name] is None:
                del document[name]
        return document


def take_part(
    config_file: Path,
    out: Path,
    *,
    share_skeleton: bool,
    keep_private: bool,
    notify: Notify,
    http: HttpOptions | None = None,
    trace_wire: bool = False,
) -> TookPart:
    """Run until the node's part is done; one that has finished before only reports again."""
    config = load_node_config(config_file)
    token = config.token
    facts = {
        "identity": config.identity.public.hex(),
        "bootstrap": token.bootstrap_public.hex(),
        "token": token.number,
    }
    folder = NodeFolder(out, facts)
    with folder.locked(), watched(Watching(http), _first_status, None, notify) as watch:
        try:
            run = parse_spec(folder.spec_text, None).run if folder.has_seat else None
            if not has_finished(folder.work, run):
                member = Member(config, folder, watch.notify, shares=share_skeleton)
                _run(
                    member, config, folder, watch, share_skeleton=share_skeleton, trace_wire=trace_wire or folder.traced
                )
                watch.notify(happening("done", folder=str(folder.path)))
        except Expired:
            if folder.has_seat and not keep_private:
                folder.forget_draws()
            raise
        except Refused:
            for cost in _spent_so_far(folder, shares=share_skeleton):
                watch.notify(happening("cost", text=f"spent before: {cost.text}", **cost.to_json()))
            raise
        if not keep_private:
            folder.forget_draws()
        told = _told(config, folder, share_skeleton=share_skeleton, private_kept=keep_private)
        folder.keep_told(told.to_json())
        return told


def _first_status(now_s: float) -> Status:
    from p2pdp.web.status import Status

    return Status(role="node", began_s=now_s)


def _run(
    member: Member,
    config: NodeConfig,
    folder: NodeFolder,
    watch: Watch,
    *,
    share_skeleton: bool,
    trace_wire: bool,
) -> None:
    def say(text: str) -> None:
        watch.notify(happening("waiting", text=text))

    def live(node: UserNode) -> Awaitable[None]:
        return with_pulse(node.run(), lambda: watch.beat(node.faults))

    with _endpoint(config, say) as endpoint:
        watch.notify(happening("reachable"))
        settings = UserSettings(
            folder=folder.work,
            identity=config.identity,
            token=config.token.number,
            secret=config.token.secret,
            bootstrap_public=config.token.bootstrap_public,
            accept=member.accept,
            prepare=member.prepare,
            network=endpoint.network,
            bootstrap_place=endpoint.bootstrap,
            where=lambda _roster, _user: None,
            sampler=member.sampler,
            run=member.run,
            share_skeleton=share_skeleton,
            trace_wire=trace_wire,
            remote=RemotePeersSettings(endpoint.own_address, member.admit, say),
        )
        run_in_foreground(lambda: live(UserNode(settings)))


def _endpoint(config: NodeConfig, say: Say) -> AbstractContextManager[NodeEndpoint]:
    token = config.token
    settings = NodeSettings(
        source=str(config.path),
        token=token.number,
        bootstrap=token.address,
        listen=config.listen,
        address=config.address,
        part=config.transport,
    )
    return kind_of_address(token.address).node_endpoint(settings, say)


def _told(config: NodeConfig, folder: NodeFolder, *, share_skeleton: bool, private_kept: bool) -> TookPart:
    spec, roster = parse_spec(folder.spec_text, None), folder.roster
    facts = dict(roster.facts)
    run = plan_of_facts(spec, facts)
    contents = read(folder.view())
    me, published, excluded = _what_came(contents)
    value = error = scores = None
    if published is not None:
        # Each token's total holds a contribution of each of its steps, whoever made it.
        estimate = run.protocol.estimate(run.plan, published, run.plan.length)
        value, error = estimate.value, estimate.standard_error
        scores = run.protocol.own_scores(run.plan, lambda: own_data(spec, config).user(roster.n, me), published)
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
        own_scores=scores,
        cost=cost,
        spent=spent,
    )


def _spent_so_far(folder: NodeFolder, *, shares: bool) -> list[Cost]:
    """Return what a node that is refused when it comes back has spent; nothing where it had not begun."""
    contents = read(folder.view()) if folder.has_begun else None
    if contents is None or not contents.records:
        return []
    with reckoning() as process:
        reckoner = Reckoner(process.ask, shares=shares)
        reckoner.sign(parse_spec(folder.spec_text, None), dict(folder.roster.facts))
        return reckoner.spent(contents.records[0].body.peer, folder.view_file)


def _what_came(contents: Contents) -> tuple[Peer, Any, bool]:
    """Return the node's user, the published result and whether it was excluded, from its own ledger."""
    records = contents.records
    me: Peer = records[0].body.peer
    published, excluded = None, False
    for record in records:
        if record.kind == RECEIVED and record.body.sender < 0:
            message = public_message(record)
            if record.body.sender == CURATOR and message.type == RESULT:
                published = whole_message(record).value
            excluded |= (
                record.body.sender == BOOTSTRAP and message.type == OUT and Exclusion(*message.fields).peer == me
            )
    return me, published, excluded


class Member:
    """The node that decides on behalf of its owner."""

    def __init__(self, config: NodeConfig, folder: NodeFolder, notify: Notify, *, shares: bool) -> None:
        self._shares = shares
        self._config = config
        self._folder = folder
        self._notify = notify
        self.spec: Spec | None = None
        self._data: OwnData | None = None
        self._budget = NodeBudget(config)
        if folder.has_seat:
            self.spec = parse_spec(folder.spec_text, None)
            self._data = own_data(self.spec, config)
            check_accepted(self.spec, self._data.dimensions, config)

    def accept(self, text: str) -> bytes:
        """Show the offered spec and checks it, before anybody hears of this node."""
        spec = offered_spec(text)
        self._data = own_data(spec, self._config)
        for line in describe(spec, self._data.dimensions, self._config.token.bootstrap_public.hex()):
            self._notify(happening("offer", text=line))
        for moved in self._data.moved:
            self._notify(happening("clipped", **asdict(moved)))
        check_accepted(spec, self._data.dimensions, self._config)
        self.spec = spec
        with reckoning() as process:
            self._consider(spec, self._data.dimensions, Reckoner(process.ask, shares=self._shares))
        if self._shares:
            self._notify(happening("offer", text=f"  --share-skeleton: {who_reads(spec)}"))
        self._folder.keep_spec(text)
        return spec_digest(spec)

    def _consider(self, spec: Spec, dimensions: int, reckoner: Reckoner) -> None:
        offered = reckoner.offer(spec, dimensions)
        if offered is None:
            text = (
                "What this run costs follows from a graph that only bootstrap knows now; it is shown once it is signed."
            )
            self._notify(happening("offer", text=text))
            return
        check_rounds(offered.rounds, self._config)
        costs = kept_costs(self._folder, _terms(offered.terms, reckoner), reckoner.costs)
        self._show(spec, costs, f"What a run of {spec.run.nodes} nodes would cost this node at most, by observer:")
        charge = self._budget.consider(spec, reckoner)
        if charge is not None:
            self._notify(happening("offer", text=f"  its budget would be charged with {charge}"))

    def _show(self, spec: Spec, costs: Sequence[Cost], title: str) -> None:
        """Show costs to the owner, then refuse what is above the owner's limits."""
        self._notify(happening("offer", text=title))
        for cost in costs:
            self._notify(happening("cost", text=cost.text, **cost.to_json()))
        if rests_on_others(spec, costs):
            self._notify(happening("offer", text=f"  {OTHERS_SKELETONS}"))
        check_epsilon(costs, self._config)

    def admit(self, credentials: Credentials) -> None:
        """Apply the owner's limits to the signed run, also when a node comes back: they may have changed."""
        assert self.spec is not None
        assert self._data is not None
        spec, facts = self.spec, dict(credentials.roster.facts)
        check_seat(credentials, spec, self._data, self._config)
        run = signed_plan(spec, facts)
        check_neighbours(credentials, run)
        check_rounds(rounds_of(run), self._config)
        with reckoning() as process:
            reckoner = Reckoner(process.ask, shares=self._shares)
            costs = signed_costs(self._folder, run, facts, reckoner)
            self._show(spec, costs, f"What this run of {run.n} nodes costs this node at most, by observer:")
            self._budget.reserve(spec, credentials.roster, reckoner)
        if spec.noise.sampler == "exact":
            for mechanism in run.plan.mechanisms:
                warm(mechanism)
        self._folder.take_seat(credentials.roster, credentials.me)
        self._notify(happening("seat", user=credentials.me, n=credentials.roster.n))

    def run(self) -> RunPart | None:
        return None if self.spec is None else self.spec.run

    def prepare(self, roster: Roster, me: Peer) -> tuple[RunPlan, Any]:
        assert self.spec is not None
        assert self._data is not None
        return plan_of_facts(self.spec, dict(roster.facts)), self._data.user(roster.n, me)

    def sampler(self) -> ExactSampler | FastSampler:
        assert self.spec is not None
        return ExactSampler() if self.spec.noise.sampler == "exact" else FastSampler()


def signed_costs(folder: NodeFolder, run: RunPlan, facts: Mapping[str, Any], reckoner: Reckoner) -> list[Cost]:
    """Return what the run of these signed facts costs; facts with kept costs were checked when these were computed."""

    def computed() -> list[Cost]:
        reckoner.sign(run.spec, facts)
        return reckoner.costs()

    return kept_costs(folder, _terms(terms_of(run), reckoner), computed)


def _terms(terms: str, reckoner: Reckoner) -> str:
    return f"{terms} shared" if reckoner.shares else terms


def kept_costs(folder: NodeFolder, terms: str, computed: Callable[[], list[Cost]]) -> list[Cost]:
    """Return costs from the folder if they were computed before, which may take seconds."""
    kept = folder.kept_costs(terms)
    if kept is not None:
        return [Cost.from_json(one) for one in kept]
    costs = computed()
    folder.keep_costs(terms, [one.to_json() for one in costs])
    return costs
