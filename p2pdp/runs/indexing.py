"""Keeping the index of runs, while a run lives and from folders at any time.

Guarantee: a run never waits for its index and never fails with it. After each event in the run's life its rows are made
anew from its folder, in a separate thread and at most once in `REFRESH_S`. The index follows from ledgers and folders
alone, and a database that was away or deleted is whole again at the next event.

The index holds spec, roster, result and audit of a run, and of bootstrap's ledger the life cycle only: who enrolled and
was ready, that they went, who was excluded, that the result came and that all ledgers are closed. Who suspected whom,
and for which token, is a piece of a route and stays where it is. A part of the folder that cannot be read raises what
reading it raises, so the index never has half of the facts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.errors import NotReady, P2pdpError, UsageError, VerificationFailed
from p2pdp.core.happenings import Notify, happening
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import BLOCKED, EXCLUDED
from p2pdp.crypto.roster import Roster, RosterEntry, RosterError
from p2pdp.files.folder import AUDIT_FILE, RESULT_FILE, ROSTER_FILE, SPEC_FILE, peer_folder, read_document
from p2pdp.files.keys import make_secret_file
from p2pdp.files.reading import in_folder, read_bytes, read_text
from p2pdp.files.spec import parse_spec
from p2pdp.index.facts import ClaimRow, LifeEvent, Participant, RunFacts
from p2pdp.index.store import Index, IndexBroken
from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import ENROLLED, PUBLISHED, RECEIVED, ROSTER, SENT, Record, public_message, read

REFRESH_S: Final = 2.0
INDEX_FILE: Final = "index.sqlite"
SQLITE: Final = "sqlite"
_SQLITE_FILE: Final = "sqlite:///"


def opened_index(given: str, folder: Path, make: Callable[[str | Path], Index] = Index) -> Index:
    """Return the database; `sqlite` means the file in this folder, as a path, where a `?` would end its name.

    A file of SQLite's that is not there is made, for its owner only: it tells results without noise, and routes. Where
    there is no driver nothing is made.
    """
    database = folder.resolve() / INDEX_FILE if given == SQLITE else given
    index = make(database)
    if isinstance(database, Path) or database.startswith(_SQLITE_FILE):
        make_secret_file(Path(str(database).removeprefix(_SQLITE_FILE)))
    return index


class Refresher:
    """Makes a run's rows anew; reports once when that fails, and once when it works again."""

    def __init__(self, index: Index, folder: Path, notify: Notify) -> None:
        self._index = index
        self._folder = folder
        self._notify = notify
        self._broken = False

    def refresh(self) -> None:
        try:
            self._index.write(facts_of(self._folder))
        except (IndexBroken, P2pdpError) as error:
            self._failed(str(error))
        except Exception as error:  # noqa: BLE001  (an index must never end a run, whatever a driver raises)
            self._failed(type(error).__name__)
        else:
            if self._broken:
                self._broken = False
                self._notify(happening("index_whole"))

    def _failed(self, reason: str) -> None:
        if not self._broken:
            self._broken = True
            self._notify(happening("index_broken", reason=reason))


def index_folders(
    folders: Sequence[Path], url: str | None, *, rebuild: bool, open_index: Callable[[str | Path], Index] = Index
) -> dict[str, Any]:
    """Run `p2pdp index`: write the rows of these folders' runs and list all runs there are."""
    if url is None and not folders:
        raise UsageError("p2pdp index: name a run's folder, or with --index a database")
    given = SQLITE if url is None else url
    if given == SQLITE and not folders:
        raise UsageError("--index sqlite: is the file in a run's folder; name the folder, or sqlite:///FILE")
    index = opened_index(given, folders[0], open_index) if folders else open_index(given)
    facts = [facts_of(folder) for folder in folders]
    try:
        if rebuild:
            index.rebuild()
        for one in facts:
            index.write(one)
        listed = index.runs(1000, 0)
    except IndexBroken as error:
        raise NotReady(f"--index: {error}") from None
    return {"written": [one.run_id for one in facts], **listed}


_RUN_FILE: Final = "run.json"
_COLUMNS: Final = ("observer", "method", "conditioning", "delta", "bound")


@dataclass
class _Life:
    """The life cycle of a run, from bootstrap's ledger."""

    tokens: dict[str, int] = field(default_factory=dict)  # by identity
    events: list[LifeEvent] = field(default_factory=list)
    roster: Roster | None = None
    ready: set[Peer] = field(default_factory=set)
    out: set[Peer] = field(default_factory=set)
    state: str = "enrolling"
    now_s: float = 0.0

    def take(self, record: Record) -> None:
        if record.kind == ENROLLED:
            self.now_s, token, packed = record.body
            self.tokens[RosterEntry.from_bytes(packed).identity.hex()] = token
            self._note("enrolled")  # users get their numbers with the roster
        elif record.kind == ROSTER:
            self.roster = Roster.from_bytes(record.body.roster)
            self._reach("gathering", "roster")
        elif record.kind == RECEIVED:
            self.now_s = record.body.now_s
            self._heard(record.body.sender, public_message(record).type)
        elif record.kind == SENT and public_message(record).type == messages.GO:
            self._reach("running", "begun")
        elif record.kind == PUBLISHED:
            message = public_message(record)
            if message.type in (EXCLUDED, BLOCKED):
                peer, *_ = message.fields
                self._note(message.type, peer)
                if message.type == EXCLUDED:
                    self.out.add(peer)

    def _heard(self, sender: Peer, kind: str) -> None:
        if kind == messages.READY and is_user(sender) and sender not in self.ready:
            self.ready.add(sender)
            self._note("ready", sender)
        elif kind == messages.DONE and sender == CURATOR:
            self._reach("closing", "published")
        elif kind == messages.OVER and sender == CURATOR:
            self._reach("collecting", "closed")

    def _reach(self, state: str, event: str) -> None:
        if self.state != state:
            self.state = state
            self._note(event)

    def _note(self, event: str, user: int | None = None) -> None:
        self.events.append(LifeEvent(self.now_s, event, user))


def facts_of(folder: Path) -> RunFacts:
    if not (text := _maybe(folder, SPEC_FILE)):
        raise UsageError(f"{folder}: is not the folder of a run; it lacks {SPEC_FILE}")
    spec = parse_spec(text, None)
    result, audit, begun = (_document(folder, name) for name in (RESULT_FILE, AUDIT_FILE, _RUN_FILE))
    try:
        life = _life(folder)
        roster = life.roster or _roster(folder)
    except (RosterError, ValueError, TypeError, IndexError):
        raise VerificationFailed(f"{folder}: the ledger of bootstrap or the roster is damaged") from None
    try:
        claims = [] if audit is None else [_row(claim) for claim in audit["claims"]]
    except (KeyError, TypeError):
        raise VerificationFailed(f"{folder / AUDIT_FILE}: is no audit") from None
    run_id = next((document["run_id"] for document in (begun, result) if document and "run_id" in document), None)
    if run_id is None and roster is not None:
        run_id = roster.run_id.hex()
    if run_id is None:
        raise UsageError(f"{folder}: holds no run that has begun")
    return RunFacts(
        run_id=str(run_id),
        folder=str(folder.resolve()),
        protocol=spec.run.protocol,
        transport=spec.run.transport,
        nodes=spec.run.nodes,
        n=None if roster is None else roster.n,
        state="done" if result is not None else life.state,
        started=None if begun is None else begun.get("started"),
        seconds=None if result is None else result.get("seconds"),
        participants=_participants(life, roster, over=result is not None or life.state == "collecting"),
        events=life.events,
        result=result,
        claims=claims,
        headline=None if audit is None else audit.get("headline"),
        worst=None if audit is None else audit.get("worst"),
    )


def _participants(life: _Life, roster: Roster | None, *, over: bool) -> list[Participant]:
    known = () if roster is None else zip(roster.entries.named, roster.entries, strict=True)
    users = {entry.identity.hex(): user for user, entry in known}
    participants = []
    for identity in sorted(users.keys() | life.tokens.keys()):
        user = users.get(identity)
        state = "enrolled"
        if roster is not None and user is None:
            state = "stayed_away"
        elif user in life.out:
            state = "excluded"
        elif over:
            state = "finished"
        elif user in life.ready:
            state = "ready"
        participants.append(Participant(life.tokens.get(identity), user, identity, state))
    return participants


def _life(folder: Path) -> _Life:
    life = _Life()
    ledger = in_folder(folder, peer_folder(folder, BOOTSTRAP).relative_to(folder) / f"{VIEW}.ledger")
    try:
        data = read_bytes(ledger)
    except UsageError:
        return life  # before the first enrolment, or of a simulation that leaves no ledgers
    for record in read(data).records if data else ():
        life.take(record)
    return life


def _roster(folder: Path) -> Roster | None:
    document = _document(folder, ROSTER_FILE)
    return None if document is None else Roster.from_json(document)


def _row(claim: dict[str, Any]) -> ClaimRow:
    numbers = {name: math.inf if claim[name] == "inf" else claim[name] for name in ("epsilon_max", "mu_max")}
    columns: dict[str, Any] = {name: claim[name] for name in _COLUMNS} | numbers
    return ClaimRow(**columns, document=claim)


def _document(folder: Path, name: str) -> dict[str, Any] | None:
    return None if _maybe(folder, name) is None else read_document(folder, name)


def _maybe(folder: Path, name: str) -> str | None:
    """Return the text of a file; None if it is not there."""
    try:
        return read_text(in_folder(folder, name))
    except UsageError:
        return None
