"""Bootstrap's side of enrolment: admits nodes, and gives each of them its place in the roster.

Guarantee: an enrolment is in bootstrap's ledger before it is answered, and the roster is one durable
record before the first place is given out. A secret serves one identity only; the same identity with the same
key gets the same answer however often it asks. The roster closes when all expected nodes are enrolled, or
after `enrol_timeout_s` with at least `min_nodes`; users are numbered in the order of their tokens.

`prepare(n, rows)` makes the graph for the real n and the facts that are signed; it may raise `RunFailed`. `rows` is how
many rows each user has stated, where the unit of the run is a record; None where no number was asked for.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any, Final

from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.rows import Rows, count_problem
from p2pdp.crypto.enrolment import (
    BAD_ENROLMENT,
    REFUSED,
    SEAT,
    WAITING,
    Answer,
    Application,
    EnrolmentError,
    Offer,
    OtherVersion,
    answer_frame,
    offer_frame,
    read_application,
    read_hello,
    version_frame,
)
from p2pdp.crypto.entropy import Entropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import RUN_ID_BYTES, Roster, RosterEntry, sign_entry, sign_roster
from p2pdp.ledger.bodies import Enrolled, Opened, SignedRoster
from p2pdp.ledger.journal import VIEW, Journal
from p2pdp.ledger.records import ENROLLED, OPENED, ROSTER
from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import Kind, decode_frame

FAULTS_KEPT: Final = 100
REFUSED_ENROLMENT: Final = "refused_enrolment"
INVALID_TOKEN: Final = "this join token is not valid here"

Neighbours = Callable[[Peer], Sequence[Peer] | None]
Prepare = Callable[[int, Rows | None], tuple[Neighbours, Mapping[str, int | str | float]]]


@dataclass(frozen=True, slots=True)
class Quorum:
    nodes: int
    min_nodes: int
    enrol_timeout_s: float


@dataclass(frozen=True, slots=True)
class Replies:
    """Like `peer.effects.Effects`, but frames go back to where a request came from.

    They are to be gone through once. Rosters are sealed only then, one for each node.
    """

    writes: tuple[tuple[str, bytes], ...] = ()
    frames: Iterable[tuple[Any, bytes]] = ()
    wake_at_s: float | None = None


class EnrolmentService:
    def __init__(
        self,
        identity: Identity,
        run_key: RunKey,
        offer: Offer,
        spec_digest: bytes,
        protocol: str,
        curator: RosterEntry,
        secrets: Sequence[bytes],
        quorum: Quorum,
        prepare: Prepare,
        journal: Journal,
        entropy: Entropy,
        *,
        rows_max: int | None = None,
    ) -> None:
        """`rows_max` where each node has to say how many rows it has: at most so many."""
        self._rows_max = rows_max
        self._identity = identity
        self._run_key = run_key
        self._offer = offer
        self._spec_digest = spec_digest
        self._protocol = protocol
        self._curator = curator
        self._secrets = secrets
        self._quorum = quorum
        self._prepare = prepare
        self._journal = journal
        self._entropy = entropy
        self._enrolled: dict[int, RosterEntry] = {}
        self._tokens: dict[bytes, int] = {}  # of those who are enrolled, by identity
        self._boxes = {run_key.public, curator.box}
        self._users: dict[int, Peer] = {}  # the number of each, by token, once the roster is closed
        self._origins: dict[int, Any] = {}
        self._due: set[int] = set()  # tokens whose places are about to be sent
        self._neighbours: Neighbours = lambda _user: ()
        self._deadline_s = 0.0
        self.roster: Roster | None = None
        self.faults: deque[str] = deque(maxlen=FAULTS_KEPT)
        self.fault_counts: Counter[str] = Counter()

    @property
    def enrolled(self) -> int:
        """Return how many nodes are enrolled."""
        return len(self._enrolled)

    def begin(self, now_s: float) -> Replies:
        """Open bootstrap's ledger, or read from a stored one who is enrolled, and the roster if there is one."""
        if not self._journal.replaying:
            self._journal.append(OPENED, Opened(VIEW, self._offer.run_id, BOOTSTRAP))
        while (record := self._journal.next_stored()) is not None and record.kind in (OPENED, ENROLLED, ROSTER):
            self._journal.take_stored()
            if record.kind == ENROLLED:
                self._enrol(record.body.token, RosterEntry.from_bytes(record.body.entry))
            elif record.kind == ROSTER:
                self._seat_all(Roster.from_bytes(record.body.roster))
        self._deadline_s = now_s + self._quorum.enrol_timeout_s
        return self.wake(now_s)

    def frame(self, origin: Any, data: bytes, now_s: float) -> Replies:
        try:
            frame = decode_frame(data)
            if frame.kind is Kind.HELLO:
                return self._replies([(origin, self._offer_for(frame.body))], now_s)
            if frame.kind is not Kind.ENROL:
                raise EnrolmentError("not an application")
            return self._apply(origin, read_application(frame.body, self._run_key), now_s)
        except (CodecError, EnrolmentError) as error:
            self._fault(BAD_ENROLMENT, str(error))
            return self._replies([(origin, version_frame())] if isinstance(error, OtherVersion) else (), now_s)

    def _fault(self, kind: str, text: str) -> None:
        self.faults.append(text)
        self.fault_counts[kind] += 1

    def _offer_for(self, body: bytes) -> bytes:
        """Return what answers a HELLO: the offer for who holds a join token, a refusal for others."""
        hello, offer = read_hello(body), self._offer
        known = 0 <= hello.token < len(self._secrets)
        if not known or not hello.knows(self._secrets[hello.token], self._identity.public):
            self._fault(REFUSED_ENROLMENT, REFUSED_ENROLMENT)
            offer = Offer(bytes(RUN_ID_BYTES), "", b"", INVALID_TOKEN)
        return offer_frame(self._identity, offer, hello.key, self._run_key)

    def wake(self, now_s: float) -> Replies:
        return self._close_roster(now_s) if self._complete(now_s) else self._replies((), now_s)

    def _complete(self, now_s: float) -> bool:
        """Return whether to close the roster: all are enrolled, or enough of them after the time to enrol."""
        here, quorum = len(self._enrolled), self._quorum
        late = now_s >= self._deadline_s and here >= quorum.min_nodes
        return self.roster is None and (here == quorum.nodes or late)

    def _apply(self, origin: Any, application: Application, now_s: float) -> Replies:
        wrong = self._wrong_with(application)
        if wrong is not None:
            self._fault(REFUSED_ENROLMENT, REFUSED_ENROLMENT)
            return self._replies([(origin, self._answer(application.entry, Answer(REFUSED, wrong)))], now_s)
        token = application.token
        self._origins[token] = origin
        if token not in self._enrolled:
            self._journal.append(ENROLLED, Enrolled(now_s, token, application.entry.to_bytes()))
            self._enrol(token, application.entry)
            if self._complete(now_s):
                return self._close_roster(now_s)
        if token in self._due:
            return self._replies((), now_s)  # whoever is impatient would wait the longer for it
        return self._replies([(origin, self._answer(application.entry, self._answer_for(token)))], now_s)

    def _enrol(self, token: int, entry: RosterEntry) -> None:
        self._enrolled[token] = entry
        self._tokens[entry.identity] = token
        self._boxes.add(entry.box)

    def _wrong_with(self, application: Application) -> str | None:
        token = application.token
        if not 0 <= token < len(self._secrets) or not compare_digest(self._secrets[token], application.secret):
            return INVALID_TOKEN
        known = self._enrolled.get(token)
        if known != application.entry and not application.entry.is_valid(self._offer.run_id):
            return "the node's run key is not signed by its identity"
        if application.spec_digest != self._spec_digest:
            return "the node accepted another spec than the one offered"
        if known is not None and known != application.entry:
            return _unlike(known, application.entry)
        if self._tokens.get(application.entry.identity, token) != token:
            return "this identity is enrolled already, with another join token"
        if known is None and application.entry.box in self._boxes:
            return "another node has enrolled with this run key; every node needs a folder of its own"
        if application.entry.identity in (self._identity.public, self._curator.identity):
            return "this identity is that of bootstrap or of the curator; a user needs one of its own"
        if known is None and self.roster is not None:
            return "the run has started without this node"
        return self._wrong_rows(application.entry.rows)

    def _wrong_rows(self, rows: int | None) -> str | None:
        if self._rows_max is None:
            return None if rows is None else "this run does not ask how many rows a node has"
        return "this run asks how many rows each node has" if rows is None else count_problem(rows, self._rows_max)

    def _answer_for(self, token: int) -> Answer:
        if self.roster is None:
            return Answer(WAITING, f"{len(self._enrolled)} of {self._quorum.nodes} nodes have enrolled")
        user = self._users[token]
        neighbours = self._neighbours(user)
        return Answer(
            SEAT,
            user=user,
            neighbours=None if neighbours is None else tuple(neighbours),
            roster=self.roster.to_bytes() if neighbours is None else self.roster.part((user, *neighbours)),
        )

    def _answer(self, entry: RosterEntry, answer: Answer) -> bytes:
        return answer_frame(self._identity, self._offer.run_id, entry.box, answer, self._entropy.seed())

    def _close_roster(self, now_s: float) -> Replies:
        entries = [self._enrolled[token] for token in sorted(self._enrolled)]
        stated = tuple(entry.rows for entry in entries if entry.rows is not None)
        _, facts = self._prepare(len(entries), None if self._rows_max is None else stated)
        roster = sign_roster(
            self._identity,
            run_id=self._offer.run_id,
            spec_digest=self._spec_digest,
            protocol=self._protocol,
            facts=facts,
            bootstrap=sign_entry(self._identity, self._offer.run_id, self._run_key.public),
            curator=self._curator,
            entries=entries,
        )
        self._journal.append(ROSTER, SignedRoster(roster.to_bytes()))
        self._seat_all(roster)
        self._due.update(self._origins)
        return self._replies(self._seats(sorted(self._origins)), now_s)

    def _seats(self, tokens: Sequence[int]) -> Iterator[tuple[Any, bytes]]:
        for token in tokens:
            self._due.discard(token)
            yield self._origins[token], self._answer(self._enrolled[token], self._answer_for(token))

    def _seat_all(self, roster: Roster) -> None:
        self._neighbours, _ = self._prepare(roster.n, roster.entries.rows)
        self._users = {token: user for user, token in enumerate(sorted(self._enrolled))}
        self.roster = roster

    def _replies(self, frames: Iterable[tuple[Any, bytes]], now_s: float) -> Replies:
        waiting = self.roster is None and now_s < self._deadline_s
        wake_at_s = self._deadline_s if waiting else None  # afterwards the next application decides
        return Replies(tuple(self._journal.take_writes()), frames, wake_at_s)


def _unlike(known: RosterEntry, entry: RosterEntry) -> str:
    """Return why a token that has served for one entry does not serve for another."""
    if known.identity != entry.identity:
        return "this join token was used by another identity"
    if known.rows != entry.rows:
        return "this identity enrolled with another number of rows"
    return "this identity enrolled with another run key, which its folder has lost"
