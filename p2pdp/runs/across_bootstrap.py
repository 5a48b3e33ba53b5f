"""`bootstrap`: bootstrap and curator of a run whose users are on other machines.

Bootstrap has no data, so the result has neither truth nor error. `messages` and the baselines are there where all users
handed in their skeletons; `bytes` is never known, since no node reports what it sent. The audit claims what the
skeletons at hand allow, as `p2pdp audit --allow-missing` does.

Beside the results stands the participants' edition, `participants.json` and `participants.html`. It is made of the plan
and of what the curator published, never of users' ledgers, by the rule of `report/participants.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from p2pdp.assembly.outcome import Outcome, estimate_of, outcome
from p2pdp.auditor.a_priori import claims_a_priori
from p2pdp.auditor.context import AccountResult
from p2pdp.auditor.verify import excluded_in
from p2pdp.cluster.folder import BootstrapFolder, is_bootstrap_folder
from p2pdp.core.claims import Conditioning, Method, Observer, Refusal
from p2pdp.core.errors import P2pdpError, Refused, RunFailed, UsageError, VerificationFailed
from p2pdp.core.happenings import Notify, happening
from p2pdp.core.ids import BOOTSTRAP, CURATOR, peer_name
from p2pdp.core.messages import BLOCKED, EXCLUDED, RESULT
from p2pdp.core.spec import Spec
from p2pdp.core.step import Output
from p2pdp.crypto.roster import Roster
from p2pdp.crypto.sealed_skeleton import is_sealed
from p2pdp.files.data import load_data
from p2pdp.files.folder import (
    PARTICIPANTS_FILE,
    PARTICIPANTS_PAGE,
    RESULT_FILE,
    ROSTER_FILE,
    to_json,
    write_json,
    write_text,
)
from p2pdp.files.skeletons import handed_in_skeletons
from p2pdp.files.spec import spec_digest, spec_to_toml
from p2pdp.files.tables import read_edge_list
from p2pdp.mechanisms.sampler import ExactSampler
from p2pdp.node.clock import check_expires, refuse_expired
from p2pdp.node.process import run_in_foreground, until_ended, with_pulse
from p2pdp.node.roles import LINGER_S, RolesNode, RolesSettings
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.replay.evidence import Evidence
from p2pdp.report.documents import verdict_document
from p2pdp.report.participants import Edition, page, sayable
from p2pdp.report.result import Circumstances, Result, make_result
from p2pdp.runs.accepting import check_can_run, spec_dimensions
from p2pdp.runs.audit import Audited, audit_evidence
from p2pdp.runs.prepared import save_model, sensitivity
from p2pdp.runs.watching import UNWATCHED, Watch, Watching, watched
from p2pdp.services.bootstrap import PROGRESS
from p2pdp.services.enrolment import Quorum
from p2pdp.transports.contract import Listening
from p2pdp.transports.registry import kind_of_address, transport_kind

if TYPE_CHECKING:
    from p2pdp.web.status import Status

Plan = Callable[[int], RunPlan]
Show = Callable[[Result], None]


def _unseen(_result: Result) -> None:
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
    plan = _planner(spec)
    plan(min(spec.run.nodes, tokens))  # what cannot be run is refused before anything is written
    folder = BootstrapFolder.open(out, spec_to_toml(spec), tokens, trace_wire=trace_wire)
    return _go_on(spec, folder, listening, plan, notify, watching, show)


def resume(place: Path, notify: Notify) -> Result:
    """Continue where a bootstrap was interrupted, at the address that it had."""
    folder = BootstrapFolder(place)
    spec = folder.spec
    return _go_on(spec, folder, _listening_again(folder), _planner(spec), notify, UNWATCHED, _unseen)


def _listening_again(folder: BootstrapFolder) -> Listening:
    """Return the options of the first start."""
    if folder.listen is None or folder.address is None:
        raise UsageError(f"{folder.path}: was never started; run p2pdp bootstrap with its options again")
    return kind_of_address(folder.address).listening_again(folder.listen, folder.address)


def _check(spec: Spec, tokens: int) -> None:
    check_can_run(spec)
    if spec.data.kind in ("csv", "npy") and spec.run.seed is not None:
        raise UsageError("[run] seed: real data is never run on a seed; leave it out")
    least = spec.run.min_nodes or spec.run.nodes
    if tokens < least:
        raise UsageError(
            f"--tokens {tokens}: the run needs {least} nodes at least ([run] min_nodes), each with its token"
        )


def _planner(spec: Spec) -> Plan:
    edges = read_edge_list(Path(spec.graph.path)) if spec.graph.kind == "file" and spec.graph.path else None
    dimensions = spec_dimensions(spec)
    if dimensions is None:
        try:
            dimensions = load_data(spec, 1).dimensions
        except UsageError as error:
            raise UsageError(
                f"[data] columns: name them, for bootstrap has no data to count them in ({error})"
            ) from None
    return cache(lambda n: plan_run(spec, n, dimensions, edges))


def _go_on(
    spec: Spec,
    folder: BootstrapFolder,
    listening: Listening,
    plan: Plan,
    notify: Notify,
    watching: Watching,
    show: Show,
) -> Result:
    with folder.locked(), watched(watching, partial(_first_status, spec, folder), folder.path, notify) as watch:
        if not folder.is_done:
            refuse_expired(spec.run, folder.run_keys())
            _serve(spec, folder, listening, plan, watch)
        watch.notify(happening("collecting"))
        result = _collect(spec, folder, plan, watch.notify)
        watch.notify(happening("done", folder=str(folder.path)))
        show(result)
        if watching.http is not None and watching.http.stays:
            notify(happening("http_stays"))
            until_ended()
        return result


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


def _serve(spec: Spec, folder: BootstrapFolder, listening: Listening, plan: Plan, watch: Watch) -> None:
    def say(text: str) -> None:
        watch.notify(happening("told", text=text))

    kind = transport_kind(spec.run.transport)
    with kind.roles_endpoint(spec, folder.run_id, listening, folder.listen, say) as endpoint:
        identity = folder.identity()
        secrets = folder.write_tokens(endpoint.listen, endpoint.address, identity.public)
        where = {"how": endpoint.description, "address": endpoint.address, "folder": str(folder.path / "tokens")}
        watch.notify(happening("listening", tokens=len(secrets), **where))
        quorum = Quorum(
            min(spec.run.nodes, len(secrets)), spec.run.min_nodes or spec.run.nodes, spec.run.enrol_timeout_s
        )
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
            on_roster=lambda roster: _on_roster(roster, folder, watch.notify),
            on_output=lambda _peer, output: _on_output(output, watch),
            power=spec.run.durability == "power",
            on_enrolled=lambda count: watch.notify(happening("enrolling", count=count, of=quorum.nodes)),
            linger_s=max(LINGER_S, 2 * spec.run.patience_s),
            trace_wire=folder.packing.trace_wire,
        )
        run_in_foreground(lambda: _live(RolesNode(settings), watch))


def _live(node: RolesNode, watch: Watch) -> Awaitable[None]:
    def beat() -> None:
        counts: Counter[str] = Counter()
        for shell in node.shells.values():
            counts.update({} if shell.host is None else shell.host.fault_counts)
        watch.beat(counts)

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


def _on_roster(roster: Roster, folder: BootstrapFolder, notify: Notify) -> None:
    write_json(folder.path / ROSTER_FILE, roster.to_json())
    notify(happening("roster", n=roster.n))


def _on_output(output: Output, watch: Watch) -> None:
    if output.type == PROGRESS:
        watch.ready(*output.fields)
    elif output.type == RESULT:
        watch.notify(happening("published"))
    elif output.type in (EXCLUDED, BLOCKED):
        who, *_ = output.fields
        watch.notify(happening(output.type, user=peer_name(who)))


def _collect(spec: Spec, folder: BootstrapFolder, plan: Plan, notify: Notify) -> Result:
    """Lay out the skeletons that were handed in, audits what is there, and writes the result last."""
    roster = folder.roster()
    run, evidence = plan(roster.n), folder.evidence(roster)
    skeletons = handed_in_skeletons(evidence.contents(CURATOR))
    folder.deposit(skeletons)
    evidence = evidence.having({user: skeleton for user, skeleton in skeletons.items() if not is_sealed(skeleton)})
    missing = excluded_in(evidence.contents(BOOTSTRAP))
    whole = not missing and all(user in evidence.views for user in range(roster.n))
    collected = outcome(run, evidence.recorded(evidence.begun, run), []) if whole else published_only(run, evidence)
    if not collected.over:
        raise RunFailed(f"nothing was published; p2pdp resume {folder.path} goes on with the run")
    audited = _audited(folder.path, evidence, skeletons.values(), notify) if spec.run.audit else None
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
    verdict = None if audited is None else audited.verdict
    # Without all skeletons it is not known how often each user contributed, which local noise depends on.
    result = make_result(run, collected, around, None, sensitivity(run), verdict if whole else None)
    result = replace(result, **verdict_document(verdict))
    startup_s = max(0.0, collected.go_s - folder.started_s)
    result = replace(result, startup_seconds=startup_s, messages=result.messages if whole else None)
    if audited is not None:
        audited.save(folder.path, result.to_json())
    save_model(folder.path, run, result)
    save_edition(folder.path, edition_of(run, evidence, around))
    write_json(folder.path / RESULT_FILE, result.to_json(), secret=True)
    return replace(result, folder=str(folder.path))


def _audited(place: Path, evidence: Evidence, skeletons: Iterable[bytes], notify: Notify) -> Audited | None:
    try:
        return audit_evidence(evidence, allow_missing=True)
    except (Refused, VerificationFailed) as error:  # the run is done all the same
        reason = str(error)
        if isinstance(error, Refused) and any(map(is_sealed, skeletons)):
            reason = f"they are sealed; the auditor has claims by p2pdp audit {place} --key FILE"
        notify(happening("no_claim", reason=reason))
        return None


STEPS_MAX: Final = 5_000
"""Of walks whose hidden path is accounted for in the edition: seconds, where 40,000 steps take a minute."""


def published_only(run: RunPlan, evidence: Evidence) -> Outcome:
    """Return what the curator's ledger says: each total holds a contribution of every step, whoever made it."""
    published = outcome(run, evidence.recorded([CURATOR], run), [])
    published.counted = {CURATOR: {0: run.plan.length}}
    return published


def edition_of(run: RunPlan, evidence: Evidence, around: Circumstances) -> Edition:
    estimate = estimate_of(run, published_only(run, evidence))
    result = _in_advance(run)
    readable = run.spec.audit.key is None and bool(handed_in_skeletons(evidence.contents(CURATOR)))
    claims, refusals = sayable(run, result.claims, result.refusals, around.missing, readable=readable)
    return Edition(
        run_id=around.run_id,
        seeded=around.seeded,
        started=around.started,
        run=run,
        estimate=estimate.value,
        standard_error=estimate.standard_error,
        missing=around.missing,
        claims=claims,
        refusals=refusals,
    )


def save_edition(folder: Path, edition: Edition) -> None:
    write_text(folder / PARTICIPANTS_FILE, to_json(edition.to_json()) + "\n")
    write_text(folder / PARTICIPANTS_PAGE, page(edition))


def _in_advance(run: RunPlan) -> AccountResult:
    """Return claims that hold before a run; users have an unknown number of values, unless data are made up.

    Of long walks hidden paths are left out: they would keep bootstrap from ending for minutes.
    """
    delta = run.spec.privacy.delta
    assert delta is not None
    made_up, short = _made_up(run.spec), run.plan.length <= STEPS_MAX
    try:
        result = claims_a_priori(run, delta, run.spec.privacy.colluders, one_value=made_up and short)
    except P2pdpError as error:  # the run is done all the same
        return AccountResult(refusals=[Refusal(Observer.NETWORK, Conditioning.A_PRIORI, str(error))])
    if made_up and not short:
        result.refusals = [_left_out(one) if one.method == Method.HIDDEN_PATH else one for one in result.refusals]
    return result


def _left_out(refusal: Refusal) -> Refusal:
    return replace(refusal, reason=f"it takes long to work out for more than {STEPS_MAX} steps; p2pdp plan does")


def _made_up(spec: Spec) -> bool:
    return spec.data.kind not in ("csv", "npy")
