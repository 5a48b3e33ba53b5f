"""`run` and `resume`: a spec in, real processes over real sockets, and the same folder out as from a simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from p2pdp.assembly.outcome import outcome
from p2pdp.audit.verify import excluded_in
from p2pdp.cluster.bodies import Job
from p2pdp.cluster.folder import RunFolder
from p2pdp.cluster.launcher import Cluster
from p2pdp.core.errors import NotReady, Refused, RunFailed, UsageError
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.spec import Spec
from p2pdp.crypto.roster import Roster
from p2pdp.files.data import load_data
from p2pdp.files.edges import read_edge_list
from p2pdp.files.folder import AUDIT_FILE, RESULT_FILE, ROSTER_FILE, read_json, write_json
from p2pdp.files.spec import parse_spec, spec_digest, spec_to_toml
from p2pdp.ledger.records import read
from p2pdp.mechanisms.sampler import warm
from p2pdp.protocols import protocol
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.report.result import Circumstances, Result, make_result
from p2pdp.runs.audit import audit
from p2pdp.runs.prepared import sensitivity
from p2pdp.runs.simulate import headline

OnEvent = Callable[[dict[str, Any]], None]


def run_spec(spec: Spec, out: Path | None, on_event: OnEvent) -> Result:
    """A fresh run in a folder that is empty or not there yet."""
    _check(spec)
    return _go(spec, RunFolder.make(out, spec_to_toml(spec)), on_event)


def resume(place: Path, on_event: OnEvent) -> Result:
    """Goes on with an interrupted run; one that is done just gives its result again."""
    folder = RunFolder(place)
    spec = parse_spec(folder.spec_text, None)
    _check(spec)
    return _go(spec, folder, on_event)


def _check(spec: Spec) -> None:
    protocol(spec.run.protocol)
    if spec.data.kind in ("csv", "npy") and spec.run.seed is not None:
        raise UsageError("[run] seed: real data is never run on a seed; leave it out")
    if spec.run.transport != "tcp":
        raise NotReady(f"[run] transport: {spec.run.transport!r} is not there yet; this version runs over tcp")


def _go(spec: Spec, folder: RunFolder, on_event: OnEvent) -> Result:
    with folder.locked():
        job = _job(spec, folder)
        if not folder.is_done:
            Cluster(job, on_event).run()
        folder.drop_run_keys()
        return _collect(job, folder)


def _job(spec: Spec, folder: RunFolder) -> Job:
    edges = read_edge_list(Path(spec.graph.path)) if spec.graph.kind == "file" and spec.graph.path else None
    data = load_data(spec, spec.run.nodes)

    @cache
    def plan(n: int) -> RunPlan:
        return plan_run(spec, n, data.dimensions, edges)

    @cache
    def data_of(n: int) -> Any:
        return data if n == spec.run.nodes else load_data(spec, n)

    for mechanism in plan(spec.run.nodes).plan.mechanisms:  # what cannot be run is refused before anything starts
        if spec.noise.sampler == "exact":
            warm(mechanism)  # once, and not in every process
    return Job(
        spec=spec,
        folder=folder.path,
        run_id=folder.run_id,
        text=folder.spec_text,
        digest=spec_digest(spec),
        bootstrap_public=folder.bootstrap_public(),
        secrets=folder.tokens(spec.run.nodes),
        plan=plan,
        rows=lambda n, user: data_of(n).user(user),
    )


def _collect(job: Job, folder: RunFolder) -> Result:
    """Audits what the processes left, and writes the result last."""
    roster = Roster.from_json(read_json(folder.path / ROSTER_FILE))
    folder.name_after_users(roster, job.slots)
    run, views = job.plan(roster.n), folder.views(roster)
    missing = excluded_in(read(views[BOOTSTRAP]))
    found = outcome(run, views, missing)
    if found.published is None:
        raise RunFailed(f"nothing was published; p2pdp resume {folder.path} goes on with the run")
    epsilon = _audited(folder.path) if job.spec.run.audit else None
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
    )

    @cache
    def rows(user: Peer) -> Any:
        return job.rows(roster.n, user)

    result = make_result(run, found, around, rows, sensitivity(run), epsilon)
    result = replace(result, startup_seconds=max(0.0, found.go_s - folder.started_s))
    write_json(folder.path / RESULT_FILE, result.to_json())
    return replace(result, folder=str(folder.path))


def _audited(place: Path) -> float | None:
    """Writes audit.json; gives the headline's epsilon, if there is a claim."""
    try:
        audited = audit(place, None, None, allow_missing=False)
    except Refused:  # the run is done all the same; `p2pdp audit` says why there is no claim
        return None
    write_json(place / AUDIT_FILE, audited.to_json())
    return headline(audited.claims)
