"""`bootstrap`: bootstrap and curator of a run whose users are on other machines.

They have no data, so the result has neither truth nor error. `messages` and the baselines are there where all
users handed in their skeletons; `bytes` is never known, since nobody says what it sent. The audit claims what the
skeletons at hand allow, as `p2pdp audit --allow-missing` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from p2pdp.assembly.found import Outcome
from p2pdp.assembly.outcome import outcome
from p2pdp.audit.verify import excluded_in
from p2pdp.cluster.bootstrap_folder import BootstrapFolder
from p2pdp.cluster.sockets import connections_of_roles
from p2pdp.core.errors import Refused, RunFailed, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.core.spec import Spec
from p2pdp.core.step import Output
from p2pdp.crypto.addresses import AddressError, is_wildcard, join_address, split_address
from p2pdp.crypto.roster import Roster
from p2pdp.files.data import load_data
from p2pdp.files.edges import read_edge_list
from p2pdp.files.folder import RESULT_FILE, ROSTER_FILE, handed_in_skeletons, read_json, write_json
from p2pdp.files.spec import parse_spec, spec_digest, spec_to_toml
from p2pdp.ledger.records import read
from p2pdp.mechanisms.sampler import ExactSampler
from p2pdp.node.foreground import run_in_foreground
from p2pdp.node.listening import listen_at
from p2pdp.node.roles import LINGER_S, RolesNode, RolesSettings
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.report.result import Circumstances, Result, make_result
from p2pdp.runs.accepting import check_can_run, spec_dimensions
from p2pdp.runs.audit import Audited, audit
from p2pdp.runs.model import save_model
from p2pdp.runs.prepared import sensitivity
from p2pdp.runs.simulate import headline
from p2pdp.services.bootstrap import BLOCKED, EXCLUDED
from p2pdp.services.curator import PUBLISHED_RESULT
from p2pdp.services.desk import Quorum
from p2pdp.transports.networks import TcpNetwork

Say = Callable[[str], None]
Plan = Callable[[int], RunPlan]


@dataclass(frozen=True)
class Places:
    """Where bootstrap listens, and what its tokens say, where that is something else."""

    listen: str
    address: str | None = None


def bootstrap(spec: Spec, places: Places, tokens: int, out: Path, say: Say) -> Result:
    """Until the run is over; the folder of the same spec is gone on with, and a finished one gives its result."""
    _check(spec, tokens)
    listen, address = _split("--listen", places.listen), places.address
    if address is None and is_wildcard(listen[0]):
        raise UsageError(
            f"--listen {places.listen}: nobody can dial this; add --address HOST:PORT, where others reach this machine"
        )
    if address is not None and is_wildcard(_split("--address", address)[0]):
        raise UsageError(f"--address {address}: nobody can dial this; name the host where others reach this machine")
    plan = _planner(spec)
    plan(min(spec.run.nodes, tokens))  # what cannot be run is refused before anything is written
    return _go_on(spec, BootstrapFolder.open(out, spec_to_toml(spec), tokens), places, plan, say)


def resume(place: Path, say: Say) -> Result:
    """Goes on where a bootstrap was interrupted, at the address that it had."""
    folder = BootstrapFolder(place)
    spec = parse_spec(folder.spec_text, None)
    if folder.listen is None:
        raise UsageError(f"{place}: was never started; run p2pdp bootstrap with its options again")
    return _go_on(spec, folder, Places(folder.listen, folder.address), _planner(spec), say)


def _check(spec: Spec, tokens: int) -> None:
    check_can_run(spec)
    if spec.data.kind in ("csv", "npy") and spec.run.seed is not None:
        raise UsageError("[run] seed: real data is never run on a seed; leave it out")
    least = spec.run.min_nodes or spec.run.nodes
    if tokens < least:
        raise UsageError(
            f"--tokens {tokens}: the run needs {least} nodes at least ([run] min_nodes), each with its token"
        )


def _split(option: str, text: str) -> tuple[str, int]:
    try:
        return split_address(text)
    except AddressError as error:
        raise UsageError(f"{option} {text}: {error}") from None


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


def _go_on(spec: Spec, folder: BootstrapFolder, places: Places, plan: Plan, say: Say) -> Result:
    with folder.locked():
        if not folder.is_done:
            _serve(spec, folder, places, plan, say)
        return _collect(spec, folder, plan, say)


def _serve(spec: Spec, folder: BootstrapFolder, places: Places, plan: Plan, say: Say) -> None:
    host, port = _split("--listen", places.listen)
    if port == 0 and folder.listen is not None:
        port = _split("--listen", folder.listen)[1]
    bound = listen_at((host, port), "--listen")
    try:
        network = TcpNetwork(bound, *connections_of_roles(spec.run.nodes))
        listen = join_address(host, network.address[1])
        told_host, told_port = (host, 0) if places.address is None else _split("--address", places.address)
        address = join_address(told_host, told_port or network.address[1])
        identity = folder.identity()
        secrets = folder.write_tokens(listen, address, identity.public)
        say(f"listening on {listen}; {len(secrets)} join tokens, which name {address}, are in {folder.path / 'tokens'}")
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
            protocol=spec.run.protocol,
            secrets=secrets,
            quorum=quorum,
            prepare=plan,
            network=network,
            where=None,
            sampler=ExactSampler,
            on_roster=lambda roster: _on_roster(roster, folder, say),
            on_output=lambda _peer, output: _on_output(output, say),
            power=spec.run.durability == "power",
            on_enrolled=lambda count: say(f"{count} of {quorum.nodes} nodes have enrolled"),
            linger_s=max(LINGER_S, 2 * spec.run.patience_s),
        )
        run_in_foreground(lambda: RolesNode(settings).run())
    finally:
        bound.close()


def _for_others(spec: Spec) -> Spec:
    """Where this machine keeps its files is nobody else's business; the digest leaves paths out anyway."""

    def name(path: str | None) -> str | None:
        return None if path is None else Path(path).name

    return replace(
        spec,
        data=replace(spec.data, path=name(spec.data.path)),
        graph=replace(spec.graph, path=name(spec.graph.path)),
    )


def _on_roster(roster: Roster, folder: BootstrapFolder, say: Say) -> None:
    write_json(folder.path / ROSTER_FILE, roster.to_json())
    say(f"the roster is closed with {roster.n} nodes; the run begins when all of them are ready")


def _on_output(output: Output, say: Say) -> None:
    if output.type == PUBLISHED_RESULT:
        say("the result is published; the nodes close their ledgers")
    elif output.type == EXCLUDED:
        say(f"user {peer_name(output.fields[0])} is out; the others go on")
    elif output.type == BLOCKED:
        say(f"{peer_name(output.fields[0])} is silent, and nobody can go round it")


def _collect(spec: Spec, folder: BootstrapFolder, plan: Plan, say: Say) -> Result:
    """Lays out the skeletons that were handed in, audits what is there, and writes the result last."""
    roster = Roster.from_json(read_json(folder.path / ROSTER_FILE))
    run, views = plan(roster.n), folder.views(roster)
    skeletons = handed_in_skeletons(views[CURATOR])
    folder.deposit(skeletons)
    views |= skeletons
    missing = excluded_in(read(views[BOOTSTRAP]))
    whole = not missing and all(user in views for user in range(roster.n))
    found = outcome(run, views, []) if whole else _partial(run, views)
    if not found.over:
        raise RunFailed(f"nothing was published; p2pdp resume {folder.path} goes on with the run")
    audited = _audited(folder.path, say) if spec.run.audit else None
    around = Circumstances(
        run_id=folder.run_id.hex(),
        seeded=False,
        seed=spec.run.seed,
        started=folder.started,
        bytes=None,
        missing=missing,
        faults=folder.totals(roster)[1],
        private_kept=False,
    )
    epsilon = headline(audited.claims) if audited is not None and whole else None
    result = make_result(run, found, around, None, sensitivity(run), epsilon)
    startup_s = max(0.0, found.go_s - folder.started_s)
    result = replace(result, startup_seconds=startup_s, messages=result.messages if whole else None)
    if audited is not None:
        audited.save(folder.path, result.to_json())
    save_model(folder.path, run, result)
    write_json(folder.path / RESULT_FILE, result.to_json())
    return replace(result, folder=str(folder.path))


def _partial(run: RunPlan, views: Mapping[Peer, bytes]) -> Outcome:
    """What the curator's ledger tells: each total holds a contribution of every step, whoever made it."""
    found = outcome(run, {CURATOR: views[CURATOR]}, [])
    found.counted = {CURATOR: {0: run.plan.length}}
    return found


def _audited(place: Path, say: Say) -> Audited | None:
    try:
        return audit(place, None, None, allow_missing=True)
    except (Refused, VerificationFailed) as error:  # the run is done all the same
        say(f"no claim can be made from the skeletons here: {error}")
        return None
