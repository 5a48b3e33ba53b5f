"""`bootstrap`: bootstrap and curator of a run whose users are on other machines.

Bootstrap has no data, so the result has neither truth nor error. `messages` and the baselines are there where all users
handed in their skeletons; `bytes` is never known, since no node reports what it sent. The audit claims what the
skeletons at hand allow, as `p2pdp audit --allow-missing` does.

Beside the results stands the participants' edition, `participants.json` and `participants.html` (`runs/editions.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from p2pdp.assembly.outcome import Outcome, outcome
from p2pdp.auditor.verify import excluded_in
from p2pdp.cluster.folder import BootstrapFolder, is_bootstrap_folder
from p2pdp.core.claims import Unit
from p2pdp.core.endings import STOPPED, RunStopped, Stopped, why_stopped
from p2pdp.core.errors import NotReady, Refused, RunFailed, UsageError, VerificationFailed
from p2pdp.core.happenings import Notify, happening
from p2pdp.core.ids import BOOTSTRAP, CURATOR, peer_name
from p2pdp.core.messages import BLOCKED, EXCLUDED, RESULT
from p2pdp.core.spec import REAL_DATA, Spec
from p2pdp.core.step import Output
from p2pdp.crypto.roster import Roster
from p2pdp.crypto.sealed_skeleton import is_sealed
from p2pdp.files.data import public_examples
from p2pdp.files.folder import RESULT_FILE, ROSTER_FILE, write_json
from p2pdp.files.skeletons import handed_in_skeletons
from p2pdp.files.spec import spec_digest, spec_to_toml
from p2pdp.mechanisms.sampler import ExactSampler
from p2pdp.node.clock import Clock, check_expires, refuse_expired
from p2pdp.node.measuring import with_measures
from p2pdp.node.process import run_in_foreground, until_ended, with_pulse
from p2pdp.node.roles import LINGER_S, RolesNode, RolesSettings
from p2pdp.protocols.run_plan import Planner, RunPlan, rows_limit
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.published import stopped_in
from p2pdp.report.documents import verdict_document
from p2pdp.report.result import Circumstances, Result, make_result, stopped_result
from p2pdp.runs.accepting import check_can_run
from p2pdp.runs.audit import Audited, audit_evidence
from p2pdp.runs.comparing import published_only
from p2pdp.runs.editions import edition_of, save_edition
from p2pdp.runs.outlook import planner, told
from p2pdp.runs.pages import save_failure
from p2pdp.runs.plan import check_accountable
from p2pdp.runs.prepared import save_model, sensitivity
from p2pdp.runs.showing import known_of
from p2pdp.runs.watching import UNWATCHED, Watch, Watching, watched
from p2pdp.services.bootstrap import PROGRESS
from p2pdp.services.enrolment import Quorum
from p2pdp.transports.contract import Listening
from p2pdp.transports.registry import kind_of_address, transport_kind

if TYPE_CHECKING:
    from p2pdp.web.status import Status

Show = Callable[[Result], None]


def _unseen(_told: object) -> None:
    pass


def bootstrap(
    spec: Spec,
    listening: Listening,
    tokens: int,
    out: Path,
    notify: Notify,
    watching: Watching = UNWATCHED,
    show: Show = _unseen,
    *,
    trace_wire: bool = False,
) -> Result:
    """Run bootstrap and curator until the run is over; continue a folder of the same spec, or return its result.

    `show` gets the result as soon as it is there; HTTP may stay after that. A folder stays traced, or not, as it began.
    """
    _check(spec, tokens)
    if not is_bootstrap_folder(out):
        check_expires(spec.run)
    transport_kind(spec.run.transport).check_listening(spec, listening)
    plan = planner(spec)
    first = plan(min(spec.run.nodes, tokens))  # what cannot be run is refused before anything is written
    public_examples(with_measures(spec), first.dimensions)
    check_accountable(spec, first.plan)  # every node would refuse it
    folder = BootstrapFolder.open(out, spec_to_toml(spec), tokens, trace_wire=trace_wire)
    return _go_on(spec, folder, listening, plan, notify, watching, show)


def resume(place: Path, notify: Notify) -> Result:
    """Continue where a bootstrap was interrupted, at the address that it had."""
    folder = BootstrapFolder(place)
    spec = folder.spec
    return _go_on(spec, folder, _listening_again(folder), planner(spec), notify, UNWATCHED, _unseen)


def _listening_again(folder: BootstrapFolder) -> Listening:
    """Return the options of the first start."""
    if folder.listen is None or folder.address is None:
        raise UsageError(f"{folder.path}: was never started; run p2pdp bootstrap with its options again")
    return kind_of_address(folder.address).listening_again(folder.listen, folder.address)


def _check(spec: Spec, tokens: int) -> None:
    check_can_run(spec)
    if spec.data.kind in REAL_DATA and spec.run.seed is not None:
        raise UsageError("[run] seed: real data is never run on a seed; leave it out")
    least = spec.run.min_nodes or spec.run.nodes
    if tokens < least:
        raise UsageError(
            f"--tokens {tokens}: the run needs {least} nodes at least ([run] min_nodes), each with its token"
        )


def _go_on(
    spec: Spec,
    folder: BootstrapFolder,
    listening: Listening,
    plan: Planner,
    notify: Notify,
    watching: Watching,
    show: Show,
) -> Result:
    with folder.locked(), watched(watching, partial(_first_status, spec, folder), folder.path, notify) as watch:
        if watch.known is not None:
            roster = folder.roster() if folder.is_done else None
            run = plan(spec.run.nodes) if roster is None else plan(roster.n, roster.entries.rows)
            watch.about(**known_of(run, None if roster is None else roster.n))
        if not folder.is_done:
            refuse_expired(spec.run, folder.run_keys())
            with told(spec, watch.about) if watch.known is not None else nullcontext(_unseen) as outlook:
                outlook(spec.run.nodes)
                _serve(spec, folder, listening, plan, watch, outlook)
        watch.notify(happening("collecting"))
        try:
            result = _collect(spec, folder, plan, watch.notify)
        except RunStopped:  # it is over too
            _stay(watching, notify)
            raise
        watch.notify(happening("done", folder=str(folder.path)))
        show(result)
        _stay(watching, notify)
        return result


def _stay(watching: Watching, notify: Notify) -> None:
    if watching.http is not None and watching.http.stays:
        notify(happening("http_stays"))
        until_ended()


def _first_status(spec: Spec, folder: BootstrapFolder, now_s: float) -> Status:
    from p2pdp.web.status import Status

    first = Status(
        role="bootstrap",
        began_s=now_s,
        run_id=folder.run_id.hex(),
        protocol=spec.run.protocol,
        nodes=spec.run.nodes,
        started=folder.started,
        resumed=folder.listen is not None,
    )
    if not folder.is_done:
        return first  # what its ledger tells is told again as it is taken up
    roster = folder.roster()
    excluded = excluded_in(folder.evidence(roster).contents(BOOTSTRAP))
    return replace(
        first,
        enrolled=roster.n,
        n=roster.n,
        ready=roster.n - len(excluded),
        excluded=tuple(excluded),
        faults=folder.totals(roster)[1],
    )


def _serve(
    spec: Spec,
    folder: BootstrapFolder,
    listening: Listening,
    plan: Planner,
    watch: Watch,
    outlook: Callable[[int], None],
) -> None:
    def say(text: str) -> None:
        watch.notify(happening("told", text=text))

    def on_enrolled(count: int) -> None:
        waiting.count = count
        watch.notify(happening("enrolling", count=count, of=quorum.nodes))

    def on_roster(roster: Roster) -> None:
        waiting.over = True
        write_json(folder.path / ROSTER_FILE, roster.to_json())
        watch.about(**known_of(plan(roster.n, roster.entries.rows), roster.n))
        watch.notify(happening("roster", n=roster.n))
        if roster.n != spec.run.nodes:
            outlook(roster.n)

    kind = transport_kind(spec.run.transport)
    with kind.roles_endpoint(spec, folder.run_id, listening, folder.listen, say) as endpoint:
        identity = folder.identity()
        secrets = folder.write_tokens(endpoint.listen, endpoint.address, identity.public)
        where = {"how": endpoint.description, "address": endpoint.address, "folder": str(folder.path / "tokens")}
        watch.notify(happening("listening", tokens=len(secrets), identity=identity.public.hex(), **where))
        quorum = Quorum(
            min(spec.run.nodes, len(secrets)), spec.run.min_nodes or spec.run.nodes, spec.run.enrol_timeout_s
        )
        waiting = _Waiting(quorum, lambda text: watch.notify(happening("waiting", text=text)), Clock().now_s)
        settings = RolesSettings(
            folder=folder.path / "curator",
            identity=identity,
            curator_identity=folder.identity("curator"),
            run_id=folder.run_id,
            spec_text=spec_to_toml(_for_others(spec)),
            spec_digest=spec_digest(spec),
            run=spec.run,
            secrets=secrets,
            quorum=quorum,
            prepare=plan,
            network=endpoint.network,
            where=None,
            sampler=ExactSampler,
            on_roster=on_roster,
            on_output=lambda _peer, output: _on_output(output, watch),
            power=spec.run.durability == "power",
            on_enrolled=on_enrolled,
            linger_s=max(LINGER_S, 2 * spec.run.patience_s),
            trace_wire=folder.packing.trace_wire,
            rows_max=rows_limit(plan, quorum.nodes) if spec.privacy.unit == Unit.RECORD else None,
        )
        run_in_foreground(lambda: _live(RolesNode(settings), watch, waiting))


class _Waiting:
    """Tells a person, once, that the time to enrol has passed and too few users are there."""

    def __init__(self, quorum: Quorum, say: Callable[[str], None], now_s: Callable[[], float]) -> None:
        self._quorum = quorum
        self._say = say
        self._now_s = now_s
        self._until_s = now_s() + quorum.enrol_timeout_s
        self.count = 0
        self.over = False  # there is a roster

    def look(self) -> None:
        if self.over or self._now_s() < self._until_s:
            return
        self.over, quorum = True, self._quorum
        self._say(
            f"{self.count} of {quorum.nodes} users have enrolled within {quorum.enrol_timeout_s:g} s, and the run "
            f"needs {quorum.min_nodes}: it begins as soon as so many are there"
        )


def _live(node: RolesNode, watch: Watch, waiting: _Waiting) -> Awaitable[None]:
    def beat() -> None:
        waiting.look()
        counts: Counter[str] = Counter()
        for shell in node.shells.values():
            counts.update({} if shell.host is None else shell.host.fault_counts)
        host = node.shells[BOOTSTRAP].host
        watch.beat(counts, None if host is None else host.away)

    return with_pulse(node.run(), beat)


def _for_others(spec: Spec) -> Spec:
    """Return the spec without this machine's paths, which concern nobody else; the digest leaves them out anyway."""

    def name(path: str | None) -> str | None:
        return None if path is None else Path(path).name

    return replace(
        spec,
        data=replace(spec.data, path=name(spec.data.path)),
        graph=replace(spec.graph, path=name(spec.graph.path)),
        transport=replace(spec.transport, **dict.fromkeys(("password_file", "ca", "certificate", "key"))),
    )


def _on_output(output: Output, watch: Watch) -> None:
    if output.type == PROGRESS:
        watch.ready(*output.fields)
    elif output.type == RESULT:
        watch.notify(happening("published"))
    elif output.type == STOPPED:
        watch.notify(happening("stopped", reason=why_stopped(Stopped(*output.fields).reason)))
    elif output.type in (EXCLUDED, BLOCKED):
        who, *_ = output.fields
        watch.notify(happening(output.type, user=peer_name(who)))


def _needs_the_route(run: RunPlan, collected: Outcome) -> bool:
    """Return whether only the route tells how many rows are in the result: then participants get no mean of them."""
    if not run.by_record or run.completes_per_user or not collected.over:
        return False
    return run.protocol.estimate_alone(run.plan, collected.published, collected.survivors).value is None


def _collect(spec: Spec, folder: BootstrapFolder, plan: Planner, notify: Notify) -> Result:
    """Lay out the skeletons that were handed in, audits what is there, and writes the result last."""
    roster = folder.roster()
    run, evidence = plan(roster.n, roster.entries.rows), folder.evidence(roster)
    skeletons = handed_in_skeletons(evidence.contents(CURATOR))
    folder.deposit(skeletons)
    evidence = evidence.having({user: skeleton for user, skeleton in skeletons.items() if not is_sealed(skeleton)})
    missing = excluded_in(evidence.contents(BOOTSTRAP))
    audited, problem = (None, None)
    published = published_only(run, evidence)
    why = None if published.over else stopped_in(evidence.contents(BOOTSTRAP))
    if spec.run.audit and why is None:
        audited, problem = _audited(folder.path, evidence, skeletons.values(), notify)
    whole = problem is None and not missing and all(user in evidence.views for user in range(roster.n))
    collected = outcome(run, evidence.recorded(evidence.begun, run), []) if whole else published
    collected.alone = _needs_the_route(run, collected)
    if not collected.over and why is None:
        raise RunFailed(f"nothing was published; p2pdp resume {folder.path} goes on with the run")
    around = Circumstances(
        run_id=folder.run_id.hex(),
        seeded=False,
        seed=spec.run.seed,
        started=folder.started,
        bytes=None,
        missing=missing,
        faults=folder.totals(roster)[1],
        private_kept=False,
        traced=folder.packing.trace_wire,
    )
    if why is not None:
        write_json(folder.path / RESULT_FILE, stopped_result(run, collected, around, why).to_json(), secret=True)
        raise RunStopped(why_stopped(*why))
    verdict = None if audited is None else audited.verdict
    # Without all skeletons it is not known how often each user contributed, which local noise depends on.
    result = make_result(run, collected, around, None, sensitivity(run), verdict if whole else None)
    result = replace(result, **verdict_document(verdict))
    startup_s = max(0.0, collected.go_s - folder.started_s)
    told_messages = result.messages if whole else None
    result = replace(result, startup_seconds=startup_s, messages=told_messages, audit_problem=problem)
    if audited is not None:
        audited.save(folder.path, result.as_written())
    elif problem is not None:
        save_failure(folder.path, result)
    save_model(folder.path, run, result)
    public = public_examples(with_measures(spec), run.dimensions)
    save_edition(folder.path, edition_of(replace(run, public=public), evidence, around, failed=problem is not None))
    write_json(folder.path / RESULT_FILE, result.as_written(), secret=True)
    return replace(result, folder=str(folder.path))


def _audited(
    place: Path, evidence: Evidence, skeletons: Iterable[bytes], notify: Notify
) -> tuple[Audited | None, str | None]:
    """Return the audit of what is here, if there is a claim, and what is wrong with it."""
    try:
        return audit_evidence(evidence, allow_missing=True), None
    except (NotReady, Refused) as error:  # the run is done all the same
        sealed = f"they are sealed; the auditor has claims by p2pdp audit {place} --key FILE"
        notify(happening("no_claim", reason=sealed if any(map(is_sealed, skeletons)) else str(error)))
        return None, None
    except VerificationFailed as error:
        notify(happening("audit_failed", folder=str(place)))
        return None, str(error)
