"""Bootstrap's side of enrolment: admits nodes, and gives each of them its place in the roster.

Guarantee: an enrolment is in bootstrap's ledger before it is answered, and the roster is one durable
record before the first place is given out. A secret serves one identity only; the same identity with the same
key gets the same answer however often it asks. The roster closes when all expected nodes are enrolled, or
after `enrol_timeout_s` with at least `min_nodes`; users are numbered in the order of their tokens.

`prepare(n)` makes the graph for the real n and the facts that are signed; it may raise `RunFailed`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any, Final

from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.crypto.enrolment import (
    REFUSED,
    SEAT,
    WAITING,
    Answer,
    Application,
    EnrolmentError,
    Offer,
    answer_frame,
    hello_frame,
    offer_frame,
    read_application,
)
from p2pdp.crypto.entropy import Entropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, RosterEntry, sign_entry, sign_roster
from p2pdp.ledger.bodies import Enrolled, Opened, SignedRoster
from p2pdp.ledger.journal import VIEW, Journal
from p2pdp.ledger.records import ENROLLED, OPENED, ROSTER
from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import Kind, decode_frame

FAULTS_KEPT: Final = 100

Neighbours = Callable[[Peer], Sequence[Peer] | None]
Prepare = Callable[[int], tuple[Neighbours, Mapping[str, int | str | float]]]


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
    ) -> None:
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
        self._origins: dict[int, Any] = {}
        self._due: set[int] = set()  # tokens whose places are about to be sent
        self._neighbours: Neighbours = lambda _user: ()
        self._deadline_s = 0.0
        self.roster: Roster | None = None
        self.faults: deque[str] = deque(maxlen=FAULTS_KEPT)

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
            if data == hello_frame():
                return self._replies([(origin, offer_frame(self._identity, self._offer))], now_s)
            frame = decode_frame(data)
            if frame.kind is not Kind.ENROL:
                raise EnrolmentError("not an application")
            return self._apply(origin, read_application(frame.body, self._run_key), now_s)
        except (CodecError, EnrolmentError) as error:
            self.faults.append(str(error))
            return self._replies((), now_s)

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
            self.faults.append("refused_enrolment")
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

    def _wrong_with(self, application: Application) -> str | None:
        token = application.token
        if not 0 <= token < len(self._secrets) or not compare_digest(self._secrets[token], application.secret):
            return "this join token is not valid here"
        if not application.entry.is_valid(self._offer.run_id):
            return "the node's run key is not signed by its identity"
        if application.spec_digest != self._spec_digest:
            return "the node accepted another spec than the one offered"
        known = self._enrolled.get(token)
        if known is not None and known.identity != application.entry.identity:
            return "this join token was used by another identity"
        if known is not None and known != application.entry:
            return "this identity enrolled with another run key, which its folder has lost"
        if self._tokens.get(application.entry.identity, token) != token:
            return "this identity is enrolled already, with another join token"
        if known is None and self.roster is not None:
            return "the run has started without this node"
        return None

    def _answer_for(self, token: int) -> Answer:
        if self.roster is None:
            return Answer(WAITING, f"{len(self._enrolled)} of {self._quorum.nodes} nodes have enrolled")
        user = sorted(self._enrolled).index(token)
        neighbours = self._neighbours(user)
        return Answer(
            SEAT,
            user=user,
            neighbours=None if neighbours is None else tuple(neighbours),
            roster=self.roster.to_bytes(),
        )

    def _answer(self, entry: RosterEntry, answer: Answer) -> bytes:
        return answer_frame(self._identity, self._offer.run_id, entry.box, answer, self._entropy.seed())

    def _close_roster(self, now_s: float) -> Replies:
        entries = [self._enrolled[token] for token in sorted(self._enrolled)]
        _, facts = self._prepare(len(entries))
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
        self._neighbours, _ = self._prepare(roster.n)
        self.roster = roster

    def _replies(self, frames: Iterable[tuple[Any, bytes]], now_s: float) -> Replies:
        waiting = self.roster is None and now_s < self._deadline_s
        wake_at_s = self._deadline_s if waiting else None  # afterwards the next application decides
        return Replies(tuple(self._journal.take_writes()), frames, wake_at_s)
