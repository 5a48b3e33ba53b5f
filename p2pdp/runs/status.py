"""The state of a run, read from its folder or asked of its HTTP server. Nothing is written, and nothing is started.

A folder says what its ledgers and files say (`runs/indexing.py`), and whether a process is at work in it, by the lock
that such a process holds. A server is asked for what participants may read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from p2pdp.auditor.verify import verify
from p2pdp.cluster.standing import Kind, is_at_work, kind_of
from p2pdp.core.errors import NotReady, P2pdpError, UsageError
from p2pdp.files.folder import AUDIT_FILE, ROSTER_FILE, holds, read_document, read_evidence
from p2pdp.files.reading import read_text
from p2pdp.files.skeletons import holds_sealed
from p2pdp.files.spec import parse_spec
from p2pdp.index.facts import RunFacts
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.node.folder import NodeFolder
from p2pdp.node.user import has_finished
from p2pdp.runs.comparing import differences
from p2pdp.runs.indexing import facts_of
from p2pdp.web.asking import ask

_OK: Final = 200
_REFUSED: Final = 401
_ABSENT: Final = 404


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """The state of one run, named as in `status --json`; what is not known from here is None.

    `at_work` says whether a process is running; `next` is what can be done now.
    """

    place: str
    kind: str  # local, bootstrap, node, simulated or http
    state: str
    at_work: bool | None = None
    run_id: str | None = None
    protocol: str | None = None
    nodes: int | None = None  # that were expected
    n: int | None = None  # that take part
    enrolled: int | None = None
    ready: int | None = None
    excluded: list[int] = field(default_factory=list)
    user: int | None = None
    started: str | None = None
    seconds: float | None = None
    headline: dict[str, Any] | None = None
    worst: dict[str, Any] | None = None
    next: str | None = None
    problems: list[str] = field(default_factory=list)  # what failed at the end, or is not as the ledgers say

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def status_of(place: str, token_file: Path | None = None, ca: Path | None = None) -> RunStatus:
    """Return the state of the run in a folder, or at the `http` or `https` address of its server."""
    if place.startswith(("http://", "https://")):
        return _asked(place, None if token_file is None else read_text(token_file).strip(), ca)
    if token_file is not None or ca is not None:
        raise UsageError(f"{place}: is a folder; --token-file and --ca go with the address of a server")
    folder = Path(place)
    kind = kind_of(folder)
    return _of_node(folder) if kind == Kind.NODE else _of_run(folder, kind)


def _of_run(folder: Path, kind: Kind) -> RunStatus:
    facts = facts_of(folder)
    at_work = kind != Kind.SIMULATED and is_at_work(folder)
    states = [one.state for one in facts.participants]
    done = facts.state == "done"
    return RunStatus(
        place=str(folder),
        kind=kind,
        state=facts.state if at_work or done else "interrupted",
        at_work=at_work,
        run_id=facts.run_id,
        protocol=facts.protocol,
        nodes=facts.nodes,
        n=facts.n,
        enrolled=len(states) - states.count("stayed_away"),
        ready=sum(state in ("ready", "finished") for state in states),
        excluded=[one.user for one in facts.participants if one.state == "excluded" and one.user is not None],
        started=facts.started,
        seconds=facts.seconds,
        headline=facts.headline,
        worst=facts.worst,
        next=None if at_work else _next(folder, kind, audited=facts.headline is not None, done=done),
        problems=[] if at_work else _problems(folder, kind, facts),
    )


def _problems(folder: Path, kind: Kind, facts: RunFacts) -> list[str]:
    """Return why a finished run failed verification at its end, and where its documents differ from its ledgers."""
    failed = None if facts.result is None else facts.result.get("audit_problem")
    audit = read_document(folder, AUDIT_FILE) if facts.headline is not None else None
    found = [] if failed is None else [f"verification failed, and the result may be false: {failed}"]
    stopped = None if facts.result is None else facts.result.get("stopped")
    if isinstance(stopped, dict):
        found.append(f"there is no result: bootstrap stopped the run ({stopped.get('reason')})")
    if kind == Kind.SIMULATED and not holds(folder, ROSTER_FILE):
        return found  # `simulate --fast` leaves no ledgers
    return [*found, *differences(folder, facts.result, audit)]


def _next(folder: Path, kind: Kind, *, audited: bool, done: bool) -> str | None:
    if done:
        key = " --key FILE" if holds_sealed(folder) else ""
        return f"p2pdp audit {folder}{key}" if audited or kind != Kind.SIMULATED else None
    return None if kind == Kind.SIMULATED else f"p2pdp resume {folder}"


def _of_node(folder: Path) -> RunStatus:
    known = NodeFolder.known(folder)
    run = parse_spec(known.spec_text, None).run if known.has_seat else None
    at_work, done = is_at_work(folder), has_finished(known.work, run)
    roster = known.roster if known.has_begun else None
    told = known.told()
    wrong = [] if at_work or roster is None else [*filter(None, [told.get("problem")]), *_damage(folder)]
    next_ = f"p2pdp views {folder}" if done else "the same p2pdp node command goes on"
    if wrong:
        next_ = f"p2pdp verify {folder} says more; a node whose ledgers are damaged or were set back cannot go on"
    going = "enrolling" if run is None else "running"
    return RunStatus(
        place=str(folder),
        kind=Kind.NODE,
        state="done" if done else going if at_work else "interrupted",
        at_work=at_work,
        run_id=None if roster is None else roster.run_id.hex(),
        protocol=None if run is None else run.protocol,
        nodes=None if run is None else run.nodes,
        n=None if roster is None else roster.n,
        user=told.get("user"),
        excluded=[told["user"]] if told.get("excluded") else [],
        next=None if at_work else next_,
        problems=wrong,
    )


def _damage(folder: Path) -> list[str]:
    """Return what is wrong with the ledgers of a node, each with its file; a run that is not over is no damage."""
    try:
        found = verify(read_evidence(folder)).problems
    except P2pdpError as error:
        return [str(error)]
    work = NodeFolder.known(folder).work
    name = {True: f"{work / PRIVATE}.ledger", False: f"{work / VIEW}.ledger"}
    return [f"{name['private ledger' in one.what]}: {one.what}" for one in found if not one.lacking]


def _asked(url: str, token: str | None, ca: Path | None) -> RunStatus:
    status, document = ask(url, "/api/v1/run", token, ca)
    if status == _ABSENT:  # a node's server has only the probes
        status, document = ask(url, "/readyz", token, ca)
        status = _OK if "state" in document else status
    if status == _REFUSED:
        raise UsageError(f"{url}: the server asks for its read token; --token-file FILE names the file that holds it")
    if status != _OK:
        raise NotReady(f"{url}: answers {status}, and not with the state of a run")
    known = {name: document.get(name) for name in ("run_id", "protocol", "nodes", "n", "enrolled", "ready", "started")}
    excluded = [user for user in document.get("excluded") or [] if isinstance(user, int)]
    failed = ["verification failed, and the result may be false"] if document.get("verification_failed") else []
    return RunStatus(
        place=url, kind="http", state=str(document["state"]), at_work=True, excluded=excluded, problems=failed, **known
    )
