"""`node`: one user's part of a run whose other users are on other machines.

`Member` decides on behalf of the node's owner which data it contributes, which runs it accepts and what these may cost.

Guarantee: the owner sees what a run costs, and `[accept]` and `[budget]` are applied, before the node contacts anybody
else, and again with the signed roster before the node is ready. A node that comes back to a run applies the limits that
its configuration has now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.claims import Unit
from p2pdp.core.endings import SetBack
from p2pdp.core.errors import Refused, RunFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.happenings import Notify, happening
from p2pdp.core.ids import Peer
from p2pdp.core.spec import RunPart, Spec
from p2pdp.crypto.roster import Roster
from p2pdp.files.node_config import NodeConfig, load_node_config
from p2pdp.files.reading import others_may_read
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler, warm
from p2pdp.node.addresses import RemotePeersSettings
from p2pdp.node.folder import NodeFolder
from p2pdp.node.process import PULSE_S, run_in_foreground, until_ended, with_pulse, working
from p2pdp.node.user import UserNode, UserSettings, has_finished
from p2pdp.peer.credentials import Credentials
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
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
from p2pdp.runs.costing import OTHERS_SKELETONS, Cost, check_epsilon, rests_on_others, signed_plan
from p2pdp.runs.following import Following
from p2pdp.runs.own_part import TookPart, kept_costs, signed_costs, spent_so_far, terms_with, told_by
from p2pdp.runs.showing import known_after, known_costs, known_of_node, limits_of_owner
from p2pdp.runs.watching import HttpOptions, Watch, Watching, watched
from p2pdp.transports.contract import NodeEndpoint, NodeSettings, Say
from p2pdp.transports.registry import kind_of_address

if TYPE_CHECKING:
    from p2pdp.web.status import Status


_OVER_ROUTES: Final = "as bounds over all routes that it may take"


def take_part(
    config_file: Path,
    out: Path,
    *,
    share_skeleton: bool,
    keep_private: bool,
    notify: Notify,
    http: HttpOptions | None = None,
    trace_wire: bool = False,
    show: Callable[[TookPart], None] = lambda _told: None,
) -> TookPart:
    """Run until the node's part is done; one that has finished before only reports again.

    `show` gets the report as soon as it is there; HTTP may stay after that.
    """
    config = load_node_config(config_file)
    token = config.token
    facts = {
        "identity": config.identity.public.hex(),
        "bootstrap": token.bootstrap_public.hex(),
        "token": token.number,
    }
    folder = NodeFolder(out, facts)
    with folder.locked(), watched(Watching(http), _first_status, None, notify) as watch:
        about = None if http is None else watch.about
        if about is not None:
            about(own=limits_of_owner(config, None))
        _warn_of_token(config, watch)
        try:
            run = parse_spec(folder.spec_text, None).run if folder.has_seat else None
            finished = has_finished(folder.work, run)
            if not finished:
                member = Member(config, folder, watch.notify, shares=share_skeleton, about=about)
                traces = trace_wire or folder.traced
                _run(member, config, folder, watch, share_skeleton=share_skeleton, trace_wire=traces)
            if not finished or about is not None:
                watch.notify(happening("done", folder=str(folder.path)))
        except Expired:
            if folder.has_seat and not keep_private:
                folder.forget_draws()
            raise
        except Refused:
            _tell_spent(folder, watch.notify, shares=share_skeleton)
            raise
        if not keep_private:
            folder.forget_draws()
        told = told_by(config, folder, share_skeleton=share_skeleton, private_kept=keep_private)
        folder.keep_told(told.to_json())
        if about is not None:
            about(**known_after(parse_spec(folder.spec_text, None), config, told))
        show(told)
        _stay(http, notify)
        if told.stopped is not None:
            raise RunFailed(told.stopped)
        return told


def _stay(http: HttpOptions | None, notify: Notify) -> None:
    if http is not None and http.stays:
        notify(happening("http_stays"))
        until_ended()


def _warn_of_token(config: NodeConfig, watch: Watch) -> None:
    if config.token_file is not None and others_may_read(config.token_file):
        watch.notify(happening("token_open", file=str(config.token_file)))


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
        return with_pulse(node.run(), lambda: beat(node))

    def beat(node: UserNode) -> None:
        watch.beat(node.faults)
        member.following.note(node.learned)

    with working(member.following.work, PULSE_S) as nudge, _endpoint(config, say) as endpoint:
        member.following.nudge = nudge
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
            live_min=config.accept.min_live or 0,
            rows=member.rows,
            remote=RemotePeersSettings(endpoint.own_address, member.admit, say),
        )
        try:
            run_in_foreground(lambda: live(UserNode(settings)))
        except SetBack as error:
            folder.keep_told({"problem": str(error)})
            raise


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


def _tell_spent(folder: NodeFolder, notify: Notify, *, shares: bool) -> None:
    for cost in spent_so_far(folder, shares=shares):
        notify(happening("cost", text=f"spent before: {cost.text}", **cost.to_json()))


class Member:
    """The node that decides on behalf of its owner."""

    def __init__(
        self,
        config: NodeConfig,
        folder: NodeFolder,
        notify: Notify,
        *,
        shares: bool,
        about: Callable[..., None] | None = None,
    ) -> None:
        """`about` takes what the node's page is to tell beside what `notify` tells of, if there is a page."""
        self._about = about
        self._shares = shares
        self._config = config
        self._folder = folder
        self._notify = notify
        self.spec: Spec | None = None
        self._data: OwnData | None = None
        self._budget = NodeBudget(config)
        self.following = Following(lambda curve: self._tell(lambda: {"curve": curve}))
        if folder.has_seat:
            self.spec = parse_spec(folder.spec_text, None)
            self._data = own_data(self.spec, config)
            check_accepted(self.spec, self._data.dimensions, config)

    def accept(self, text: str) -> bytes:
        """Show the offered spec and checks it, before anybody hears of this node."""
        spec = offered_spec(text)
        data = self._data = own_data(spec, self._config)
        for line in describe(spec, self._data.dimensions, self._config.token.bootstrap_public.hex()):
            self._notify(happening("offer", text=line))
        for moved in self._data.moved:
            self._notify(happening("clipped", **asdict(moved)))
        self._tell(lambda: known_of_node(spec, self._config, data))
        check_accepted(spec, self._data.dimensions, self._config)
        self.spec = spec
        with reckoning() as process:
            self._consider(spec, self._data, Reckoner(process.ask, shares=self._shares))
        if self._shares:
            self._notify(happening("offer", text=f"  --share-skeleton: {who_reads(spec)}"))
        self._folder.keep_spec(text)
        return spec_digest(spec)

    def _tell(self, known: Callable[[], dict[str, Any]]) -> None:
        if self._about is not None:
            self._about(**known())

    def _consider(self, spec: Spec, data: OwnData, reckoner: Reckoner) -> None:
        offered = reckoner.offer(spec, data.dimensions, data.rows)
        if offered is None:
            text = (
                "What this run costs follows from a graph that only bootstrap knows now; it is shown once it is signed."
            )
            self._notify(happening("offer", text=text))
            self._tell(lambda: {"costs_note": text})
            return
        check_rounds(offered.rounds, self._config)
        costs = kept_costs(self._folder, terms_with(offered.terms, reckoner), reckoner.costs)
        self._show(
            spec,
            costs,
            f"What a run of {spec.run.nodes} nodes would cost this node, by observer, {_OVER_ROUTES}:",
        )
        charge = self._budget.consider(spec, reckoner)
        if charge is not None:
            self._notify(happening("offer", text=f"  its budget would be charged with {charge}"))

    def _show(self, spec: Spec, costs: Sequence[Cost], title: str) -> None:
        """Show costs to the owner, then refuse what is above the owner's limits."""
        self._notify(happening("offer", text=title))
        for cost in costs:
            self._notify(happening("cost", text=cost.text, **cost.to_json()))
        self._tell(lambda: known_costs(spec, costs))
        if rests_on_others(spec, costs):
            self._notify(happening("offer", text=f"  {OTHERS_SKELETONS}"))
        check_epsilon(costs, self._config)

    def admit(self, credentials: Credentials) -> None:
        """Apply the owner's limits to the signed run, also when a node comes back: they may have changed."""
        assert self.spec is not None
        assert self._data is not None
        spec, data, facts = self.spec, self._data, dict(credentials.roster.facts)
        check_seat(credentials, spec, self._data, self._config)
        run = signed_plan(spec, facts)
        check_neighbours(credentials, run)
        check_rounds(rounds_of(run), self._config)
        with reckoning() as process:
            reckoner = Reckoner(process.ask, shares=self._shares)
            costs = signed_costs(self._folder, run, facts, reckoner)
            self._show(
                spec,
                costs,
                f"What this run of {run.n} nodes costs this node, by observer, {_OVER_ROUTES}:",
            )
            self._budget.reserve(spec, credentials.roster, reckoner)
        if spec.noise.sampler == "exact":
            for mechanism in run.plan.mechanisms:
                warm(mechanism)
        self._folder.take_seat(credentials.roster, credentials.me)
        self._tell(lambda: known_of_node(spec, self._config, data, credentials.roster.n))
        self._notify(happening("seat", user=credentials.me, n=credentials.roster.n))

    def run(self) -> RunPart | None:
        return None if self.spec is None else self.spec.run

    def prepare(self, roster: Roster, me: Peer) -> tuple[RunPlan, Any]:
        assert self.spec is not None
        assert self._data is not None
        run = plan_of_facts(self.spec, dict(roster.facts))
        if self._about is not None:
            self.following.begin(run, self._data.public)
        return run, self._data.user(roster.n, me)

    def rows(self) -> int | None:
        """Return how many rows this node states, where the run asks."""
        assert self.spec is not None
        assert self._data is not None
        return self._data.rows if self.spec.privacy.unit == Unit.RECORD else None

    def sampler(self) -> ExactSampler | FastSampler:
        assert self.spec is not None
        return ExactSampler() if self.spec.noise.sampler == "exact" else FastSampler()
