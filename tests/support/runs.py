"""Small runs for the rooms that judge runs: a world from a spec, its evidence, and ledgers written anew with keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from p2pdp.auditor.audit import Audit, audit_run
from p2pdp.auditor.verify import Verification, verify
from p2pdp.core.claims import Unit
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.messages import HEAD
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message
from p2pdp.crypto.identity import Identity, sign_labelled
from p2pdp.files.data import DataSet, load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger import records
from p2pdp.ledger.bodies import Closed, body_of
from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import CLOSED, HEAD_LABEL, RECEIVED, Chain, Contents, Record, head_parts, public_message, read
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts, plan_run
from p2pdp.replay.evidence import Evidence, Recorded
from p2pdp.replay.transcript import Transcript, replay
from p2pdp.sim.faults import Crash, Faults
from p2pdp.sim.world import World
from p2pdp.wire.codec import pack_message

GAUSSIAN = '[noise]\nmechanism = "gaussian"\nsigma = 2.0\n'
UNIFORM = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
DELTA = 1e-5


def text(
    n: int, graph: str, walk: str, noise: str = GAUSSIAN, data: str = UNIFORM, protocol: str = "walk.sum", seed: int = 1
) -> str:
    run = f'[run]\nprotocol = "{protocol}"\nnodes = {n}\nseed = {seed}\npatience_s = 1.0\n'
    return f'{run}[graph]\nkind = "{graph}"\n[walk]\n{walk}{noise}{data}[privacy]\ndelta = {DELTA}\n'


def ring(n: int, laps: int, extra: str = "", *, tokens: int = 1, **rest: Any) -> str:
    noise = rest.pop("noise", GAUSSIAN) + extra
    return text(n, "ring", f'order = "ring"\nlaps = {laps}\ntokens = {tokens}\n', noise, **rest)


def walk(n: int, hops: int, graph: str = "complete", *, tokens: int = 1, **rest: Any) -> str:
    return text(n, graph, f'order = "random"\nhops = {hops}\ntokens = {tokens}\n', **rest)


HISTOGRAM: dict[str, Any] = {
    "protocol": "walk.histogram",
    "noise": '[noise]\nmechanism = "randomized_response"\nepsilon = 1.0\n',
    "data": '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 3\n',
}


@dataclass(frozen=True)
class Run:
    """A world that has come to its end."""

    world: World
    evidence: Evidence

    @property
    def plan(self) -> RunPlan:
        return plan_of_facts(self.evidence.spec, dict(self.evidence.roster.facts))

    def contents(self) -> dict[Peer, Contents]:
        return {peer: read(data) for peer, data in self.evidence.views.items()}

    def transcript(self) -> Transcript:
        return replay(self.plan, self.contents())

    def audit(self, colluders: Sequence[Peer] = (), delta: float = DELTA) -> Audit:
        return judged(self.evidence, colluders, delta)

    def identity(self, peer: Peer) -> Identity:
        return self.world.processes[peer].identity

    def without(self, *peers: Peer) -> Evidence:
        """The evidence without these peers' ledgers."""
        views = {peer: data for peer, data in self.evidence.views.items() if peer not in peers}
        private = {peer: data for peer, data in self.evidence.private.items() if peer not in peers}
        return replace(self.evidence, views=views, private=private)

    def having(self, peer: Peer, view: bytes) -> Evidence:
        """The evidence with another view ledger of this peer."""
        return replace(self.evidence, views={**self.evidence.views, peer: view})

    def forged(self, peer: Peer, change: Callable[[list[Written]], list[Written]]) -> Evidence:
        """A peer writes its view anew, with its own key, and the curator, in league with it, vouches for it."""
        view = self.rewritten(peer, change)
        last = read(view).records[-1]
        head = pack_message(Message(HEAD, (last.hash,)))

        def vouch(written: list[Written]) -> list[Written]:
            return [
                Written(RECEIVED, (0.0, peer, head, one.body[-1]), b"") if _is_head(one, peer) else one
                for one in written
            ]

        views = {**self.evidence.views, peer: view}
        if peer != CURATOR:
            views[CURATOR] = self.rewritten(CURATOR, vouch)
        return replace(self.evidence, views=views, private={})

    def rewritten(self, peer: Peer, change: Callable[[list[Written]], list[Written]], *, sign: bool = True) -> bytes:
        old = read(self.evidence.views[peer]).records
        written = change([Written(record.kind, tuple(record.body), record.value or b"") for record in old])
        key = self.identity(peer) if sign else None
        return chained(written, key, self.evidence.roster.run_id, peer)


@dataclass(frozen=True)
class Written:
    """A record before it has a place in a chain."""

    kind: int
    body: tuple[Any, ...]
    value: bytes

    def as_record(self, index: int) -> Record:
        """Return it as if it had been read, outside any chain."""
        return Record(self.kind, index, body_of(self.kind, self.body), self.value, b"", b"", b"")


def _is_head(written: Written, peer: Peer) -> bool:
    if written.kind != RECEIVED or written.as_record(0).body.sender != peer:
        return False
    return public_message(written.as_record(0)).type == HEAD


def chained(written: Sequence[Written], key: Identity | None, run_id: bytes, peer: Peer) -> bytes:
    """A ledger with these records; closing records are signed anew where there is a key."""
    chain, parts = Chain(), [records.LEDGER_MAGIC]
    for one in written:
        body = one.body
        if one.kind == CLOSED and key is not None and len(body) == len(Closed._fields):
            _, voucher_key, told = body
            signed = head_parts(VIEW, run_id, peer, chain.count, chain.head, voucher_key, *told)
            body = (sign_labelled(key, HEAD_LABEL, *signed), voucher_key, told)
        parts.append(chain.append(one.kind, body, one.value))
    return b"".join(parts)


def judged(evidence: Evidence, colluders: Sequence[Peer] = (), delta: float = DELTA, *, lenient: bool = False) -> Audit:
    """Verifies and audits, as `runs/audit.py` does for a folder."""
    found = verify(evidence)
    assert found.problems == [] or (lenient and found.only_missing), found.problems
    return audited(evidence, found, colluders, delta)


def audited(evidence: Evidence, found: Verification, colluders: Sequence[Peer], delta: float) -> Audit:
    plan = plan_of_facts(evidence.spec, dict(evidence.roster.facts))
    views = {peer: contents for peer, contents in found.views.items() if peer not in found.missing}
    return audit_run(plan, Recorded(plan, views), sorted({*found.missing, *found.cut_short}), delta, colluders)


def run_of(
    spec_or_text: Spec | str, *crashes: Crash, changed: Callable[[RunPlan], RunPlan] = lambda run: run, **network: Any
) -> Run:
    """A world of this spec, run to its end; `changed` may change what the users run."""
    spec = parse_spec(spec_or_text, None) if isinstance(spec_or_text, str) else spec_or_text
    data: DataSet = load_data(spec, spec.run.nodes)
    rows = data.stated if spec.privacy.unit == Unit.RECORD else None
    plan = changed(plan_run(spec, spec.run.nodes, data.dimensions, rows=rows, sampler="seeded"))
    digest = spec_digest(spec)
    faults = Faults(crashes=crashes, **{"reordering": True, **network})
    world = World(
        plan, data.user, spec_or_text if isinstance(spec_or_text, str) else "", digest, spec.run.seed or 0, faults
    )
    world.run_to_end()
    for process in world.processes.values():
        process.disk.cut_torn_tails()
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items() if process.disk.view}
    private = {peer: bytes(process.disk.private) for peer, process in world.processes.items() if process.disk.private}
    return Run(world, Evidence(spec, digest, world.roster, views, private))


@cache
def quiet(spec_text: str) -> Run:
    """The same run once for all tests: nothing that is frozen in it may be changed."""
    return run_of(spec_text)
