"""`run` and `resume`: a spec in, real processes over real sockets, and the same folder out as from a simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from p2pdp.assembly.outcome import outcome
from p2pdp.auditor.verify import excluded_in
from p2pdp.cluster.folder import RunFolder, is_bootstrap_folder
from p2pdp.cluster.jobs import Job, job_of
from p2pdp.cluster.launcher import Cluster
from p2pdp.cluster.layout import ONE_EACH, Packing, layout_of
from p2pdp.core.errors import Refused, RunFailed, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, Peer, peer_name
from p2pdp.core.spec import Spec
from p2pdp.files.folder import RESULT_FILE, write_json
from p2pdp.files.spec import spec_to_toml
from p2pdp.node.clock import check_expires, refuse_expired
from p2pdp.node.folder import is_node_folder
from p2pdp.protocols import protocol
from p2pdp.replay.evidence import Evidence
from p2pdp.report.result import Circumstances, Result, make_result
from p2pdp.runs import across_bootstrap
from p2pdp.runs.audit import Audited, audit_evidence
from p2pdp.runs.budgeting import check_local
from p2pdp.runs.plan import planned_of
from p2pdp.runs.prepared import save_model, sensitivity, with_task
from p2pdp.transports.registry import transport_kind

OnEvent = Callable[[dict[str, Any]], None]


def run_spec(spec: Spec, out: Path | None, on_event: OnEvent, packing: Packing = ONE_EACH) -> Result:
    """Make a fresh run in a folder that is empty or not there yet."""
    _check(spec, packing)
    check_expires(spec.run)
    return _go(RunFolder.make(out, spec_to_toml(spec), packing), packing, on_event, spec.task.own)


def resume(
    place: Path,
    on_event: OnEvent,
    nodes_per_process: int | None = None,
    *,
    spawn: bool | None = None,
    task: Any = None,
) -> Result:
    """Continue an interrupted run, with the same layout of processes unless told otherwise.

    One that is done just gives its result again.
    """
    if is_bootstrap_folder(place):
        return across_bootstrap.resume(place, lambda told: on_event({**told.to_json(), "text": told.text}))
    if is_node_folder(place):
        raise UsageError(f"{place}: is the folder of one node; run the same p2pdp node command again to go on")
    folder = RunFolder(place)
    before = folder.packing
    packing = Packing(
        before.nodes_per_process if nodes_per_process is None else nodes_per_process,
        before.spawn if spawn is None else spawn,
        before.trace_wire,
    )
    spec = with_task(folder.spec, task)
    _check(spec, packing)
    return _go(folder, packing, on_event, spec.task.own)


def _check(spec: Spec, packing: Packing) -> None:
    protocol(spec.run.protocol)
    if spec.data.kind in ("csv", "npy") and spec.run.seed is not None:
        raise UsageError("[run] seed: real data is never run on a seed; leave it out")
    if spec.task.own is not None and packing.spawn:
        raise UsageError("--spawn: a fresh interpreter cannot receive your objective; leave --spawn out")
    transport_kind(spec.run.transport).check(spec)
    layout_of(spec, packing)
    if spec.privacy.budget is not None:
        check_local(planned_of(spec).run)


def _go(folder: RunFolder, packing: Packing, on_event: OnEvent, own: Any) -> Result:
    on_event({"event": "folder", "folder": str(folder.path)})
    with folder.locked():
        job = job_of(folder, own)
        job.plan(job.slots)  # what cannot be run is refused before anything starts
        for moved in job.moved:
            on_event({"event": "clipped", **asdict(moved)})
        if not folder.is_done:
            _start(job, folder, packing, on_event)
        on_event({"event": "collecting"})
        folder.drop_run_keys()
        return _collect(job, folder)


def _start(job: Job, folder: RunFolder, packing: Packing, on_event: OnEvent) -> None:
    refuse_expired(job.spec.run, folder.run_keys())
    if not packing.spawn:
        job.warm_up()
    try:
        Cluster(job, on_event, packing).run()
    except RunFailed:
        refuse_expired(job.spec.run, folder.run_keys())  # also those of processes that were ended for it
        raise


def _collect(job: Job, folder: RunFolder) -> Result:
    """Audit what the processes left, and writes the result last."""
    roster = folder.roster()
    folder.name_after_users(roster, job.slots)
    evidence = folder.evidence(roster)
    if BOOTSTRAP not in evidence.begun:
        raise VerificationFailed(f"{folder.path}: the ledger of {peer_name(BOOTSTRAP)} is missing")
    run, missing = job.plan(roster.n), excluded_in(evidence.contents(BOOTSTRAP))
    collected = outcome(run, evidence.recorded(evidence.begun, run), missing)
    if not collected.over:
        raise RunFailed(f"nothing was published; p2pdp resume {folder.path} goes on with the run")
    audited = _audited(evidence) if job.spec.run.audit else None
    verdict = None if audited is None else audited.verdict
    sent_bytes, faults = folder.totals(roster)
    around = Circumstances(
        run_id=job.run_id.hex(),
        seeded=False,
        seed=job.spec.run.seed,
        started=folder.started,
        bytes=sent_bytes,
        missing=missing,
        faults=faults,
        private_kept=True,
        traced=folder.packing.trace_wire,
    )

    @cache
    def rows(user: Peer) -> Any:
        return job.rows(roster.n, user)

    result = make_result(run, collected, around, rows, sensitivity(run), verdict)
    result = replace(result, startup_seconds=max(0.0, collected.go_s - folder.started_s))
    if audited is not None:
        audited.save(folder.path, result.to_json())
    save_model(folder.path, run, result)
    write_json(folder.path / RESULT_FILE, result.to_json(), secret=True)
    return replace(result, folder=str(folder.path))


def _audited(evidence: Evidence) -> Audited | None:
    """Return the audit of the run, if there is a claim."""
    try:
        return audit_evidence(evidence)
    except Refused:  # the run is done all the same; `p2pdp audit` says why there is no claim
        return None
