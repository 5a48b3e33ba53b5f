"""`run` and `resume`: a spec in, real processes over real sockets, and the same folder out as from a simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.outcome import Outcome, outcome
from p2pdp.auditor.verify import excluded_in
from p2pdp.cluster.folder import RunFolder, is_bootstrap_folder
from p2pdp.cluster.jobs import Job, job_of
from p2pdp.cluster.launcher import Cluster
from p2pdp.cluster.layout import ONE_EACH, Packing, layout_of
from p2pdp.core.endings import RunStopped, why_stopped
from p2pdp.core.errors import NotReady, Refused, RunFailed, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.core.spec import REAL_DATA, Spec
from p2pdp.files.checks import learns
from p2pdp.files.data import public_examples
from p2pdp.files.folder import RESULT_FILE, ROSTER_FILE, holds, read_document, write_json, write_text
from p2pdp.files.given import GRAPH_FILE, edges_text
from p2pdp.files.making import with_data
from p2pdp.files.spec import spec_to_toml
from p2pdp.node.clock import check_expires, refuse_expired
from p2pdp.node.folder import is_node_folder
from p2pdp.protocols import protocol
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.published import stopped_in
from p2pdp.report.result import Circumstances, Result, make_result, stopped_result
from p2pdp.runs import across_bootstrap
from p2pdp.runs.audit import Audited, audit_evidence
from p2pdp.runs.budgeting import check_local
from p2pdp.runs.collector import undisturbed
from p2pdp.runs.comparing import differences, published_only
from p2pdp.runs.pages import save_failure
from p2pdp.runs.plan import planned_of
from p2pdp.runs.prepared import save_model, sensitivity, with_task
from p2pdp.runs.same_data import check_same_data, slots_in
from p2pdp.transports.registry import transport_kind

ROWS_KEPT: Final = 1 << 19  # numbers in them, of rows that are asked for a few times

OnEvent = Callable[[dict[str, Any]], None]


def run_spec(spec: Spec, out: Path | None, on_event: OnEvent, packing: Packing = ONE_EACH) -> Result:
    """Make a fresh run in a folder that is empty or not there yet."""
    _check(spec, packing)
    check_expires(spec.run)
    folder = RunFolder.make(out, spec_to_toml(spec), packing)
    if spec.graph.own is not None:
        write_text(folder.path / GRAPH_FILE, edges_text(spec.graph.own), secret=not spec.graph.public)
    return _go(folder, packing, on_event, spec)


def resume(
    place: Path,
    on_event: OnEvent,
    nodes_per_process: int | None = None,
    *,
    spawn: bool | None = None,
    task: Any = None,
    data: Any = None,
) -> Result:
    """Continue an interrupted run, with the same layout of processes unless told otherwise.

    One that is done just gives its result again.
    """
    if is_bootstrap_folder(place):
        return across_bootstrap.resume(place, lambda told: on_event({**told.to_json(), "text": told.text}))
    if is_node_folder(place):
        raise UsageError(f"{place}: is the folder of one node; run the same p2pdp node command again to go on")
    folder = RunFolder(place)
    if holds(folder.path, RESULT_FILE):
        return _result_again(folder)
    before = folder.packing
    packing = Packing(
        before.nodes_per_process if nodes_per_process is None else nodes_per_process,
        before.spawn if spawn is None else spawn,
        before.trace_wire,
    )
    spec = with_task(with_data(folder.spec, data, folder.path), task)
    _check(spec, packing)
    return _go(folder, packing, on_event, spec)


def _result_again(folder: RunFolder) -> Result:
    """Return the result of a run that is done: nothing is read but its folder, and nothing is written."""
    document = read_document(folder.path, RESULT_FILE)
    wrong = differences(folder.path, document, None)
    if wrong and document.get("audit_problem") is None:
        raise VerificationFailed(f"{folder.path}: {wrong[0]}")
    try:
        return replace(Result.from_json(document), folder=str(folder.path))
    except TypeError:
        raise VerificationFailed(f"{folder.path / RESULT_FILE}: is no result") from None


def _check(spec: Spec, packing: Packing) -> None:
    protocol(spec.run.protocol)
    if spec.data.kind in REAL_DATA and spec.run.seed is not None:
        raise UsageError("[run] seed: real data is never run on a seed; leave it out")
    if spec.task.own is not None and packing.spawn:
        raise UsageError("--spawn: a fresh interpreter cannot receive your objective; leave --spawn out")
    if spec.data.own is not None and packing.spawn:
        raise UsageError("--spawn: a fresh interpreter cannot receive data from Python; leave --spawn out")
    if spec.data.own is not None and spec.data.own.starts is not None and spec.run.min_nodes != spec.run.nodes:
        raise UsageError("[run] min_nodes: data given user by user need every user; leave it out, or give one table")
    transport_kind(spec.run.transport).check(spec)
    layout_of(spec, packing)
    if spec.privacy.budget is not None:
        check_local(planned_of(spec).run)


def _go(folder: RunFolder, packing: Packing, on_event: OnEvent, given: Spec) -> Result:
    on_event({"event": "folder", "folder": str(folder.path)})
    with folder.locked():
        job = job_of(folder, given.task.own, given.data.own)
        job.plan(job.slots, job.stated)  # what cannot be run is refused before anything starts
        for moved in job.moved:
            on_event({"event": "clipped", **asdict(moved)})
        if holds(folder.path, ROSTER_FILE) and folder.roster().n == job.slots:
            check_same_data(job, range(job.slots))
        if not folder.is_done:
            _start(job, folder, packing, on_event)
        on_event({"event": "collecting"})
        folder.drop_run_keys()
        with undisturbed():
            return _collect(job, folder, given)


def _start(job: Job, folder: RunFolder, packing: Packing, on_event: OnEvent) -> None:
    refuse_expired(job.spec.run, folder.run_keys())
    if not packing.spawn:
        job.warm_up()
    try:
        Cluster(job, on_event, packing).run()
    except RunFailed:
        refuse_expired(job.spec.run, folder.run_keys())  # also those of processes that were ended for it
        raise


def _collect(job: Job, folder: RunFolder, given: Spec) -> Result:
    """Audit what the processes left, and writes the result last."""
    roster = folder.roster()
    folder.name_after_users(roster, job.slots)
    evidence = folder.evidence(roster)
    if not evidence.begins(BOOTSTRAP):
        raise VerificationFailed(f"{folder.path}: the ledger of {peer_name(BOOTSTRAP)} is missing")
    slots = slots_in(evidence.contents(BOOTSTRAP)) if job.states_rows else range(roster.n)
    if len(slots) != roster.n:
        raise VerificationFailed(f"{folder.path}: the ledger of {peer_name(BOOTSTRAP)} does not say who enrolled")
    check_same_data(job, slots)
    run, missing = job.plan(roster.n, roster.entries.rows), excluded_in(evidence.contents(BOOTSTRAP))
    run = replace(run, public=public_examples(replace(given, task=job.spec.task), run.dimensions))
    published = published_only(run, evidence) if evidence.begins(CURATOR) else Outcome()
    why = None if published.over else stopped_in(evidence.contents(BOOTSTRAP))
    audited, problem = _audited(evidence) if job.spec.run.audit and why is None else (None, None)
    # Of ledgers that failed only what was published can be told.
    collected = published if problem is not None else outcome(run, evidence.recorded(evidence.begun, run), missing)
    if not collected.over and why is None:
        raise RunFailed(f"nothing was published; p2pdp resume {folder.path} goes on with the run")
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

    if why is not None:
        write_json(folder.path / RESULT_FILE, stopped_result(run, collected, around, why).to_json(), secret=True)
        raise RunStopped(why_stopped(*why))

    # What learns asks for the same rows again and again.
    @lru_cache(None if learns(run.spec) else max(1, ROWS_KEPT // run.dimensions))
    def rows(user: Peer) -> Any:
        return job.own_rows(roster.n, user, slots[user])

    result = make_result(run, collected, around, rows if problem is None else None, sensitivity(run), verdict)
    startup_s = max(0.0, collected.go_s - folder.started_s)
    result = replace(result, startup_seconds=startup_s, audit_problem=problem)
    written = result.as_written()
    if audited is not None:
        audited.save(folder.path, written)
    elif problem is not None:
        save_failure(folder.path, result)
    save_model(folder.path, run, result)
    write_json(folder.path / RESULT_FILE, written, secret=True)
    return replace(result, folder=str(folder.path))


def _audited(evidence: Evidence) -> tuple[Audited | None, str | None]:
    """Return the audit of the run, if there is a claim, and what is wrong with its ledgers."""
    try:
        return audit_evidence(evidence), None
    except (NotReady, Refused):  # the run is done all the same; `p2pdp audit` says why there is no claim
        return None, None
    except VerificationFailed as error:
        return None, str(error)
