"""Hosts for users, bootstrap and curator, new or from stored ledgers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from p2pdp.core.draws import Sampler
from p2pdp.core.errors import Refused, VerificationFailed
from p2pdp.core.events import Exchanger, Machine, Passer, Waiter
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.crypto.identity import Identity, RunKey, sign_labelled
from p2pdp.crypto.sealed import SealError, open_sealed, seal_to
from p2pdp.ledger.bodies import Inputs, Opened
from p2pdp.ledger.journal import PRIVATE, Journal
from p2pdp.ledger.records import EXCLUSION_LABEL, INPUTS, OPENED, SURVIVORS_LABEL
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.effects import Entropy, Timing
from p2pdp.peer.host import Host
from p2pdp.peer.pieces import NO_SHELF, Shelf
from p2pdp.peer.standstill import GAPS_MIN, Standstill
from p2pdp.peer.tap import Tap
from p2pdp.protocols.decision import Deciding, survivors_bytes
from p2pdp.protocols.participant import Participant
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.services.bootstrap import Bootstrap
from p2pdp.services.curator import Curator, Reports
from p2pdp.tasks.inputs import Learning
from p2pdp.tasks.reports import ReportInputs, open_report
from p2pdp.wire.codec import pack_value, unpack_value

Work = Callable[..., Any]


def timing_of(run: RunPlan) -> Timing:
    """Return the waits: none is so long that a peer which restarts, or lost some frames, would be taken for gone.

    A message of which every copy gets lost looks as if it was withheld. In three patiences, after which whoever
    withholds something is put out, each is sent eight times.
    """
    patience_s = run.spec.run.patience_s
    return Timing(
        patience_s=patience_s,
        tick_s=min(1.0, patience_s / 10),
        resend_s=min(2.0, patience_s / 5),
        resend_max_s=patience_s / 2,
        rejoin_s=min(5.0, patience_s / 2),
    )


def exclusion_signer(identity: Identity, run_id: bytes) -> Callable[[Peer], bytes]:
    return lambda peer: sign_labelled(identity, EXCLUSION_LABEL, run_id, peer.to_bytes(4, "big"))


def survivors_signer(identity: Identity, run_id: bytes) -> Callable[[Sequence[Peer]], bytes]:
    return lambda absent: sign_labelled(identity, SURVIVORS_LABEL, run_id, survivors_bytes(absent))


def user_host(
    run: RunPlan,
    credentials: Credentials,
    journal: Journal,
    sampler: Sampler,
    entropy: Entropy,
    rows: Any | None,
    skeleton: Callable[[], bytes] | None = None,
    tap: Tap | None = None,
    *,
    live_min: int = 0,
    beside: Callable[[Work], Work] | None = None,
    shelf: Shelf = NO_SHELF,
) -> Host:
    """Make a user's host. `rows` are its bounded data; a restart takes the inputs that its private ledger keeps.

    What learns takes its gradients by what `beside` makes of the work.
    """
    if rows is not None and run.rows is not None and len(rows) != run.rows[credentials.me]:
        raise Refused(f"this node stated {run.rows[credentials.me]:,} rows when it enrolled, and has {len(rows):,} now")
    if journal.inputs is not None:
        values = unpack_value(journal.inputs)
        inputs: Any = run.protocol.inputs_again(run.plan, values)
    elif rows is None or journal.replaying:
        raise VerificationFailed("the private ledger does not hold the inputs that the view ledger was begun with")
    else:
        inputs, values = run.protocol.inputs(run.plan, rows)
        _open_private(journal, credentials)
        journal.append_private(INPUTS, Inputs(None, len(values)), pack_value(values), entropy.salt())
        clipped = getattr(rows, "clipped", 0)
        if clipped:
            journal.note(f"clipped {clipped}", entropy.salt())
    if isinstance(inputs, ReportInputs):
        inputs = inputs.sealed_with(partial(seal_to, credentials.roster.entry(CURATOR).box))
    if beside is not None and isinstance(inputs, Learning):
        inputs.gradient = beside(inputs.gradient)
    machine = run.machine(credentials.me, credentials.neighbours, inputs)
    neighbours = None if credentials.neighbours is None else list(credentials.neighbours)
    out_max = run.n - max(live_min, run.spec.run.live_min)
    participant = Participant(credentials.me, machine, run.protocol.messages, out_max)
    return Host(
        credentials,
        participant,
        journal,
        sampler,
        entropy,
        timing=timing_of(run),
        check=run.check,
        facts=(len(values), neighbours),
        skeleton=skeleton,
        passer=None if tap is not None else _passer_of(run, machine, participant),
        standstill=_standstill_of(run, participant, machine, neighbours),
        tap=tap,
        shelf=shelf,
    )


def _passer_of(run: RunPlan, machine: Machine, participant: Participant) -> Passer | Exchanger | None:
    """Return what the fast path of this plan needs, if it has one."""
    hop = run.protocol.fast_hop(run.plan, machine)
    if hop is not None:
        return Passer(hop, participant.hopped)
    found = run.protocol.fast_exchange(run.plan, machine)
    return found._replace(exchange=participant.noting(found.exchange)) if found and found.passes else found


def _standstill_of(
    run: RunPlan, participant: Participant, machine: Machine, neighbours: list[Peer] | None
) -> Standstill:
    """Return a user's watch; on graphs that are not complete a walk may be elsewhere for longer."""
    patience_s, waits_for = run.spec.run.patience_s, None
    if isinstance(machine, Waiter):
        waiter = machine
        waits_for = lambda: waiter.waits_for  # noqa: E731
    gaps = GAPS_MIN + (0 if neighbours is None else run.n)
    return Standstill(patience_s, lambda: participant.going, waits_for, n=run.n, gaps=gaps)


def bootstrap_host(
    run: RunPlan,
    credentials: Credentials,
    journal: Journal,
    sampler: Sampler,
    entropy: Entropy,
    tap: Tap | None = None,
) -> Host:
    assert run.graph is not None
    neighbours = run.graph.neighbours.__getitem__
    identity, run_id = credentials.identity, credentials.roster.run_id
    deciding = None
    if run.collector() is not None:
        sign = survivors_signer(identity, run_id)
        hides = partial(run.plan.hides, neighbours=neighbours)
        deciding = Deciding(sign, hides, partial(run.plan.recoverable, neighbours=neighbours))
    machine = Bootstrap(
        run.n,
        neighbours,
        run.plan.starts,
        needed=run.plan.needed,
        patience_s=run.spec.run.patience_s,
        ready_timeout_s=run.spec.run.enrol_timeout_s,
        sign_exclusion=exclusion_signer(identity, run_id),
        opening=run.opening,
        deciding=deciding,
        live_min=run.spec.run.live_min,
    )
    _open_private(journal, credentials)
    return Host(
        credentials,
        machine,
        journal,
        sampler,
        entropy,
        timing=timing_of(run),
        check=run.check,
        watcher=machine,
        tap=tap,
    )


def curator_host(
    run: RunPlan,
    credentials: Credentials,
    journal: Journal,
    sampler: Sampler,
    entropy: Entropy,
    tap: Tap | None = None,
    shelf: Shelf = NO_SHELF,
) -> Host:
    items = None if run.completes_per_user else len(run.plan.starts)
    reports = None
    size = run.protocol.report_bytes(run.plan)
    if size is not None:
        reports = Reports(partial(_opened, credentials.run_key, run, size))
    publish = partial(run.protocol.publish, run.plan)
    machine = Curator(run.n, items, publish, run.spec.run.patience_s, reports, run.collector())
    _open_private(journal, credentials)
    return Host(
        credentials,
        machine,
        journal,
        sampler,
        entropy,
        timing=timing_of(run),
        check=run.check,
        standstill=Standstill(run.spec.run.patience_s, lambda: bool(machine.waits_for), lambda: machine.waits_for),
        tap=tap,
        shelf=shelf,
    )


def _opened(key: RunKey, run: RunPlan, size: int, sealed: bytes) -> tuple[int, bytes] | None:
    """Return the name of a report and the report without its seal; None if it is none of this run."""
    try:
        found = open_report(open_sealed(key, sealed), size)
    except SealError:
        return None
    return found if found is not None and run.protocol.is_report(run.plan, found[1]) else None


def _open_private(journal: Journal, credentials: Credentials) -> None:
    if journal.private_state()[0] == 0:
        journal.append_private(OPENED, Opened(PRIVATE, credentials.roster.run_id, credentials.me), b"", b"")
