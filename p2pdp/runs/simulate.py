"""`simulate`: run a spec in a simulated world, and leave the same folder as a live run.

The fast path (`fast`) draws results from their distribution instead: it leaves spec and result and nothing to audit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from p2pdp.assembly.outcome import Outcome, outcome
from p2pdp.auditor.headline import Verdict, verdict_in_advance
from p2pdp.cluster.blocks import Cores, in_blocks, worker_count
from p2pdp.cluster.pool import Done
from p2pdp.core.errors import NotReady, Refused, RunFailed, UsageError
from p2pdp.core.spec import Spec
from p2pdp.files import folder as folders
from p2pdp.files.given import GRAPH_FILE, edges_text
from p2pdp.files.spec import spec_digest, without_own
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.report.over_trials import sigmas_in, with_trials
from p2pdp.report.result import FIRST, Again, Result, Sigmas, Trial
from p2pdp.runs.audit import Audited, audit_evidence
from p2pdp.runs.budgeting import check_local
from p2pdp.runs.collector import undisturbed
from p2pdp.runs.prepared import Prepared, on_seed, prepare, run_id, save_model
from p2pdp.sim.faults import NO_FAULTS, Faults
from p2pdp.sim.trials import COMPARED_MAX, Rows, Trials
from p2pdp.sim.world import World

Progress = Callable[[int, int], None]
TRIALS_MAX: Final = 1_000_000
_BLOCKS_EACH: Final = 4  # of quick trials for a process
FAST_MAX: Final = 20_000_000_000  # numbers that users exchange in a trial: some minutes
_OF_A_TRIAL: Final = ("estimate", "truth", "error", "scores", "baselines", "curves")


def simulate_spec(
    spec: Spec,
    out: Path | None,
    trials: int | None,
    *,
    fast: bool,
    faults: Faults | None,
    progress: Progress | None,
    trace_wire: bool = False,
    workers: int | None = None,
    audit: bool = True,
) -> Result:
    """Run all trials; without `audit` nothing is audited, whatever the spec says."""
    given: Any = trials  # callers of Python may hand in anything
    if given is not None and (type(given) is not int or not 1 <= given <= TRIALS_MAX):
        raise UsageError(f"--trials: must be a whole number, 1 to {TRIALS_MAX}")
    if fast and faults is not None:
        raise UsageError("--fast: knows no faults; leave one of the two out")
    if fast and not audit:
        raise UsageError("--no-audit: --fast audits nothing; leave one of the two out")
    if trace_wire and (fast or out is None):
        raise UsageError("--trace-wire: needs a run with frames and a folder to write them to; --fast has no frames")
    seed, processes = spec.run.seed or 0, min(worker_count(workers), trials or 1)
    first = prepare(on_seed(spec, seed), fast=fast)
    check_local(first.run)
    if fast:
        check_fast(first.run)
    place = None if out is None else folders.make_folder(out)
    if place is not None and spec.graph.own is not None:
        folders.write_text(place / GRAPH_FILE, edges_text(spec.graph.own), secret=not spec.graph.public)
    result = _repeated(first, trials, place, _How(faults, progress, fast, trace_wire, audit), processes)
    if place is None:
        _check_stopped(result)
        return result
    if fast:
        folders.write_text(place / folders.SPEC_FILE, first.text)
    if result.stopped is None:
        save_model(place, first.run, result)
    folders.write_json(place / folders.RESULT_FILE, result.as_written(), secret=True)
    _check_stopped(result)
    return replace(result, folder=str(place))


def _save_again(kept: Sequence[Audited], place: Path | None, result: Result) -> None:
    """Write the report of the first trial once more, with the means over all."""
    for audited in kept if result.scores is not None else ():
        if place is not None:
            audited.save(place, result.to_json())


def _with_trials(first: Result, others: Iterable[Result]) -> Result:
    made, compared = [Trial(first.estimate, first.truth, first.error)], [first]
    for one in others:
        made.append(Trial(one.estimate, one.truth, one.error))
        if len(compared) < COMPARED_MAX:
            compared.append(one)
    return replace(with_trials(first, compared), trials=made)


def simulate_once(spec: Spec, *, fast: bool) -> Result:
    """Run a spec once and audit it in memory; nothing is written. Results of the fast path are not audited."""
    prepared = prepare(on_seed(spec, spec.run.seed or 0), fast=fast)
    check_local(prepared.run)
    if fast:
        check_fast(prepared.run)
        return next(_fast_results(_Block(prepared, 1), None))
    simulated = _Simulated(prepared, NO_FAULTS, None, traced=False)
    audited = simulated.audited(Cores(1))  # a sweep runs one of these on each core
    return _check_stopped(simulated.result(None if audited is None else audited.verdict))


def check_fast(run: RunPlan) -> None:
    """Refuse a run of so many exchanges, as on a graph that mixes slowly, that the fast path is not quick either."""
    numbers = run.exchanges * math.prod(run.plan.shape)
    if numbers > FAST_MAX:
        raise Refused(
            f"--fast: in this run users exchange {numbers:,} numbers, and at most {FAST_MAX:,} are computed; "
            "use a graph that mixes faster, or fewer rounds or hops"
        )


def _check_stopped(result: Result) -> Result:
    if result.stopped is not None:
        raise RunFailed(result.stopped["text"])
    return result


def default_folder(spec: Spec, *, fast: bool) -> Path:
    """Return the default folder of a run, named after its run id."""
    return Path(f"p2pdp-{run_id(on_seed(spec, spec.run.seed or 0), fast=fast).hex()}")


class _How(NamedTuple):
    """Settings that all trials have in common; the first one alone leaves a trace of its wires."""

    faults: Faults | None
    progress: Progress | None
    fast: bool
    traced: bool = False
    audit: bool = True


class _Block(NamedTuple):
    """So many trials from number `begin` on, where trial i is on the seed of `first`, which is trial 0, plus i.

    The noise of the baselines is that of trial 0, and None before that is known.
    """

    first: Prepared
    trials: int
    begin: int = 0
    sigmas: Sigmas | None = None

    def prepared(self, number: int) -> Prepared:
        """Return the preparation of a trial of this block."""
        at = self.begin + number
        return prepare(on_seed(self.first.spec, self.first.seed + at)) if at else self.first

    def again(self, number: int, sigmas: Sigmas | None) -> Again:
        """Return how a trial of this block is compared with the baselines."""
        at = self.begin + number
        return Again(at, sigmas, self.first.run_id.hex()) if 0 < at < COMPARED_MAX else FIRST

    def noise(self, number: int, result: Result, sigmas: Sigmas | None) -> Sigmas | None:
        """Return the noise of the baselines after this trial."""
        return sigmas_in(result) if self.begin + number == 0 else sigmas


def _repeated(first: Prepared, trials: int | None, place: Path | None, how: _How, processes: int) -> Result:
    """Return the result of the first trial, with all trials where they were asked for."""
    count, kept, shared = trials or 1, list[Audited](), None
    if processes > 1:
        shared = _Shared(how.progress, count)
        how = how._replace(progress=shared.first)
    here = _Block(first, count if shared is None else 1)
    results = _fast_results(here, how.progress) if how.fast else _world_results(here, place, how, kept.append)
    result = next(results)
    if trials is None:
        return result
    others = results if shared is None else _on_cores(first, count, result, how, processes, shared.others)
    result = _with_trials(result, others)
    _save_again(kept, place, result)
    return result


class _Shared:
    """The progress of trials of which the first tells its own, and the others that they are done."""

    def __init__(self, progress: Progress | None, count: int) -> None:
        self._progress, self._count, self._each = progress, count, 1

    def first(self, done: int, total: int) -> None:
        self._each = total
        if self._progress is not None:
            self._progress(min(done, total), total * self._count)

    def others(self, done: int) -> None:
        if self._progress is not None:
            self._progress((1 + done) * self._each, self._count * self._each)


def _on_cores(
    first: Prepared, count: int, result: Result, how: _How, processes: int, told: Callable[[int], None]
) -> list[Result]:
    """Return all trials but the first, run in other processes; of a result they have what trials are compared by."""
    sigmas, silent = sigmas_in(result), how._replace(progress=None, traced=False)

    def block(start: int, size: int) -> Iterator[str]:
        begin = _Block(first, size, start, sigmas)
        for one in _fast_results(begin, None) if how.fast else _world_results(begin, None, silent):
            yield json.dumps([getattr(one, name) for name in _OF_A_TRIAL])  # as text, which may hold infinite losses

    size = 1
    if how.fast:  # trials of learning that are drawn together share most of their work; of others progress is told
        blocks = processes * (1 if first.run.protocol.analysis().learning is not None else _BLOCKS_EACH)
        size = -(-(count - 1) // blocks)
    answers = in_blocks(1, count - 1, block, processes, size, told, _why_trial)
    return [replace(result, **dict(zip(_OF_A_TRIAL, json.loads(answer), strict=True))) for answer in answers]


def _why_trial(done: Done) -> str:
    return f"trial {done.name}: {'a process ' if done.exit_code is None else ''}{done.problem}"


def _fast_results(block: _Block, progress: Progress | None) -> Iterator[Result]:
    first, trials, same = block.first, block.trials, block.first.is_same_on_every_seed
    made: dict[int, Prepared] = {}

    def again(number: int) -> tuple[RunPlan, Rows]:
        if not same and number not in made:
            made[number] = block.prepared(number)
        prepared = made.get(number, first)
        return prepared.run, prepared.rows

    def started(number: int) -> None:
        if progress is not None:
            progress(number, trials)

    analysis = first.run.protocol.analysis()
    outcomes = analysis.fast(Trials(*again(0), first.seed + block.begin, trials, same, again, started, block.begin))
    if outcomes is None:
        yield from _world_results(block, None, _How(None, progress, fast=True))
        return
    sigmas = block.sigmas
    for number, drawn in enumerate(outcomes):
        verdict = _in_advance(block, number)
        compared = block.again(number, sigmas)
        result = made.pop(number, first).result(drawn, verdict, audited=False, again=compared)
        sigmas = block.noise(number, result, sigmas)
        yield result


def _in_advance(block: _Block, number: int) -> Verdict | None:
    """Return the verdict that the fast path compares with the baselines in place of an audit, of the first trial."""
    prepared, delta = block.first, block.first.spec.privacy.delta
    assert delta is not None
    if block.begin + number or not prepared.run.protocol.analysis().fast_in_advance:
        return None
    return verdict_in_advance(prepared.run, delta, prepared.spec.privacy.colluders, one_value=prepared.run.by_record)


def _world_results(
    block: _Block, place: Path | None, how: _How, keep: Callable[[Audited], None] = lambda _: None
) -> Iterator[Result]:
    """Yield the result of each trial; `keep` is given the audit of the first, which is that of `place`."""
    sigmas = block.sigmas
    for number in range(block.trials):
        traced, told = how.traced and number == 0, _part_of(how.progress, number, block.trials)
        with undisturbed():  # until the next trial
            simulated = _Simulated(block.prepared(number), how.faults or NO_FAULTS, told, traced=traced)
            audited = None if place is None or number else simulated.write(place, audit=how.audit)
            verdict = _in_advance(block, number) if how.fast else None if audited is None else audited.verdict
            result = simulated.result(verdict, block.again(number, sigmas), audited=not how.fast)
            sigmas = block.noise(number, result, sigmas)
            if place is not None and audited is not None:
                audited.save(place, result.as_written())
                keep(audited)
            del simulated
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
        usable = {peer: one for peer, one in self._world.processes.items() if not one.faults["unusable_disk"]}
        for process in usable.values():
            process.disk.cut_torn_tails()  # a process that came back has cut its own
        disks = {peer: process.disk for peer, process in usable.items()}
        spec = without_own(prepared.spec)
        views = {peer: bytes(disk.view) for peer, disk in disks.items() if disk.view}
        private = {peer: bytes(disk.private) for peer, disk in disks.items() if disk.private}
        self._ledgers = views, private
        self._evidence = Evidence(
            spec,
            spec_digest(spec),
            self._world.roster,
            views,
            private,
        )
        recorded = self._evidence.recorded(self._evidence.begun, prepared.run)
        self._found: Outcome = outcome(prepared.run, recorded, self._world.out)

    def result(self, verdict: Verdict | None, again: Again = FIRST, *, audited: bool = True) -> Result:
        world = self._world
        return self._prepared.result(
            self._found,
            verdict,
            sent_bytes=world.network.bytes,
            missing=world.out,
            faults=world.fault_counts(),
            private_kept=True,
            traced=self._traced,
            audited=audited,
            stopped=world.stopped,
            again=again,
        )

    def write(self, place: Path, *, audit: bool) -> Audited | None:
        """Fill the folder and audit it if spec and caller want that; None where there is no claim."""
        folders.write_text(place / folders.SPEC_FILE, self._prepared.text)
        folders.write_json(place / folders.ROSTER_FILE, self._world.roster.to_json())
        for peer, process in self._world.processes.items():
            wire = None if process.wire is None else b"".join(process.wire)
            views, private = self._ledgers
            folders.write_ledgers(place, peer, views.get(peer, b""), private.get(peer, b""), wire)
        return self.audited() if audit else None

    def audited(self, cores: Cores | None = None) -> Audited | None:
        """Audit the run if the spec says so; None where there is no claim."""
        if not self._prepared.spec.run.audit or not self._found.over:
            return None
        try:
            return audit_evidence(self._evidence, cores=cores)
        except (NotReady, Refused):  # the run is done all the same; `p2pdp audit` says why there is no claim
            return None
