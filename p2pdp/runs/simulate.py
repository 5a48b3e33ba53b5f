"""`simulate`: run a spec in a simulated world, and leave the same folder as a live run.

The fast path (`fast`) draws results from their distribution instead: it leaves spec and result and nothing to audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from p2pdp.assembly.outcome import Outcome, outcome
from p2pdp.auditor.headline import Verdict, verdict_in_advance
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.spec import Spec
from p2pdp.files import folder as folders
from p2pdp.files.spec import spec_digest, without_own
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.report.result import Result, Trial
from p2pdp.runs.audit import Audited, audit_evidence
from p2pdp.runs.budgeting import check_local
from p2pdp.runs.prepared import Prepared, on_seed, prepare, run_id, save_model
from p2pdp.sim.faults import NO_FAULTS, Faults
from p2pdp.sim.trials import Rows, Trials
from p2pdp.sim.world import World

Progress = Callable[[int, int], None]


def simulate_spec(
    spec: Spec,
    out: Path | None,
    trials: int | None,
    *,
    fast: bool,
    faults: Faults | None,
    progress: Progress | None,
    trace_wire: bool = False,
) -> Result:
    if trials is not None and trials < 1:
        raise UsageError("--trials: must be at least 1")
    if fast and faults is not None:
        raise UsageError("--fast: knows no faults; leave one of the two out")
    if trace_wire and (fast or out is None):
        raise UsageError("--trace-wire: needs a run with frames and a folder to write them to; --fast has no frames")
    seed, count = spec.run.seed or 0, trials or 1
    first = prepare(on_seed(spec, seed), fast=fast)
    check_local(first.run)
    place = None if out is None else folders.make_folder(out)
    if fast:
        results = _fast_results(first, count, progress)
    else:
        results = _world_results(first, count, place, faults, progress, trace_wire=trace_wire)
    result = next(results)
    if trials is not None:
        made = [Trial(result.estimate, result.truth, result.error)]
        made += [Trial(one.estimate, one.truth, one.error) for one in results]
        result = replace(result, trials=made)
    if place is None:
        return result
    if fast:
        folders.write_text(place / folders.SPEC_FILE, first.text)
    save_model(place, first.run, result)
    folders.write_json(place / folders.RESULT_FILE, result.to_json(), secret=True)
    return replace(result, folder=str(place))


def default_folder(spec: Spec, *, fast: bool) -> Path:
    """Return the default folder of a run, named after its run id."""
    return Path(f"p2pdp-{run_id(on_seed(spec, spec.run.seed or 0), fast=fast).hex()}")


def _seeds(first: Prepared, trials: int) -> Iterator[tuple[int, Prepared]]:
    """Yield each trial's number and preparation; trial i is on seed + i."""
    yield 0, first
    for number in range(1, trials):
        yield number, prepare(on_seed(first.spec, first.seed + number))


def _fast_results(first: Prepared, trials: int, progress: Progress | None) -> Iterator[Result]:
    made = {0: first}

    def again(number: int) -> tuple[RunPlan, Rows]:
        if number and not first.is_same_on_every_seed:
            made[number] = prepare(on_seed(first.spec, first.seed + number))
        prepared = made.get(number, first)
        return prepared.run, prepared.rows

    def started(number: int) -> None:
        if progress is not None:
            progress(number, trials)

    analysis = first.run.protocol.analysis()
    same = first.is_same_on_every_seed
    outcomes = analysis.fast(Trials(first.run, first.rows, first.seed, trials, same, again, started))
    if outcomes is None:
        yield from _world_results(first, trials, None, None, progress, trace_wire=False)
        return
    for number, drawn in enumerate(outcomes):
        verdict = _in_advance(first) if analysis.fast_in_advance and not number else None
        yield made.pop(number, first).result(drawn, verdict, audited=False)


def _in_advance(prepared: Prepared) -> Verdict:
    """Return the verdict that the fast path compares with the baselines in place of an audit."""
    delta = prepared.spec.privacy.delta
    assert delta is not None
    return verdict_in_advance(prepared.run, delta, prepared.spec.privacy.colluders, one_value=False)


def _world_results(
    first: Prepared,
    trials: int,
    place: Path | None,
    faults: Faults | None,
    progress: Progress | None,
    *,
    trace_wire: bool,
) -> Iterator[Result]:
    for number, trial in _seeds(first, trials):
        traced = trace_wire and number == 0
        simulated = _Simulated(trial, faults or NO_FAULTS, _part_of(progress, number, trials), traced=traced)
        audited = None if place is None or number else simulated.write(place)
        result = simulated.result(None if audited is None else audited.verdict)
        if place is not None and audited is not None:
            audited.save(place, result.to_json())
        yield result


def _part_of(progress: Progress | None, number: int, trials: int) -> Progress | None:
    """Report the progress of one trial as a part of all."""
    if progress is None:
        return None
    told = progress
    return lambda done, total: told(number * total + min(done, total), trials * total)


class _Simulated:
    """One simulated world, run to its end."""

    def __init__(self, prepared: Prepared, faults: Faults, progress: Progress | None, *, traced: bool) -> None:
        self._prepared, self._traced = prepared, traced
        self._world = World(prepared.run, prepared.rows, prepared.text, prepared.digest, prepared.seed, faults)
        for process in self._world.processes.values() if traced else ():
            process.wire = []
        self._world.run_to_end(progress)
        for process in self._world.processes.values():
            process.disk.cut_torn_tails()  # a process that came back has cut its own
        disks = {peer: process.disk for peer, process in self._world.processes.items()}
        spec = without_own(prepared.spec)
        self._evidence = Evidence(
            spec,
            spec_digest(spec),
            self._world.roster,
            {peer: bytes(disk.view) for peer, disk in disks.items() if disk.view},
            {peer: bytes(disk.private) for peer, disk in disks.items() if disk.private},
        )
        recorded = self._evidence.recorded(self._evidence.begun, prepared.run)
        self._found: Outcome = outcome(prepared.run, recorded, self._world.out)

    def result(self, verdict: Verdict | None) -> Result:
        world = self._world
        return self._prepared.result(
            self._found,
            verdict,
            sent_bytes=world.network.bytes,
            missing=world.out,
            faults=world.fault_counts(),
            private_kept=True,
            traced=self._traced,
        )

    def write(self, place: Path) -> Audited | None:
        """Fill the folder and audits it if the spec says so; None where there is no claim."""
        folders.write_text(place / folders.SPEC_FILE, self._prepared.text)
        folders.write_json(place / folders.ROSTER_FILE, self._world.roster.to_json())
        for peer, process in self._world.processes.items():
            wire = None if process.wire is None else b"".join(process.wire)
            views, private = self._evidence.views, self._evidence.private
            folders.write_ledgers(place, peer, views.get(peer, b""), private.get(peer, b""), wire)
        if not self._prepared.spec.run.audit:
            return None
        try:
            return audit_evidence(self._evidence)
        except Refused:  # the run is done all the same; `p2pdp audit` says why there is no claim
            return None
