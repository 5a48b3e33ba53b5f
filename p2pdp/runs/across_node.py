"""`node`: one user's part of a run whose other users are on other machines."""

from __future__ import annotations

from collections.abc import Awaitable
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
from p2pdp.files.node_config import NodeConfig, load_node_config
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import RECEIVED, Contents, public_message, read, whole_message
from p2pdp.node.addresses import RemotePeersSettings
from p2pdp.node.folder import NodeFolder
from p2pdp.node.process import run_in_foreground, with_pulse
from p2pdp.node.user import UserNode, UserSettings, has_finished
from p2pdp.protocols.run_plan import plan_of_facts
from p2pdp.report.documents import plain
from p2pdp.runs.accepting import own_data
from p2pdp.runs.costing import Cost, signed_plan
from p2pdp.runs.member import Member, signed_costs
from p2pdp.runs.reckoning import Reckoner, reckoning
from p2pdp.runs.watching import HttpOptions, Watch, Watching, watched
from p2pdp.transports.contract import NodeEndpoint, NodeSettings, Say
from p2pdp.transports.registry import kind_of_address

if TYPE_CHECKING:
    from p2pdp.web.status import Status


@dataclass(frozen=True)
class TookPart:
    """What a node's owner wants to know afterwards. `excluded`: bootstrap put the node out, and it saw no result."""

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
    own_scores: dict[str, float | None] | None = None  # of a learned model, on the owner's own rows

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
    """Until the node's part is done; one that has done it before just tells of it again."""
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
    """What a node that is refused when it comes back has spent; nothing where it had not begun."""
    contents = read(folder.view()) if folder.has_begun else None
    if contents is None or not contents.records:
        return []
    with reckoning() as process:
        reckoner = Reckoner(process.ask, shares=shares)
        reckoner.sign(parse_spec(folder.spec_text, None), dict(folder.roster.facts))
        return reckoner.spent(contents.records[0].body.peer, folder.view_file)


def _what_came(contents: Contents) -> tuple[Peer, Any, bool]:
    """Who the node was, what the curator told it, and whether bootstrap put it out, from its own ledger."""
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
