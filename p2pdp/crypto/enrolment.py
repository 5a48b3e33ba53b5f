"""The documents by which a node gets its seat, before there is any channel.

    HELLO   node -> bootstrap   who is there?
    OFFER   bootstrap -> node   run id, the spec as text, bootstrap's key of this run; signed
    ENROL   node -> bootstrap   sealed: token number and secret, roster entry, digest of the accepted spec
    ROSTER  bootstrap -> node   sealed: an answer, signed: a seat with the roster, `waiting`, or `refused`

All of them may be repeated or lost: a node asks until it has a seat, and bootstrap gives the same
identity the same seat each time. Bodies are padded like all frames.

Guarantee: reading a document that is malformed or not signed by the expected key raises `EnrolmentError`, and
so does answering to a key that nothing can be sealed to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.crypto.identity import Identity, RunKey, sign_labelled, verify_labelled
from p2pdp.crypto.roster import ENTRY_BYTES, RUN_ID_BYTES, Roster, RosterEntry, RosterError
from p2pdp.crypto.sealed import SEAL_BYTES, SealError, open_sealed, seal_to
from p2pdp.wire.codec import CodecError, pack, unpack
from p2pdp.wire.frames import FRAME_HEADER_BYTES, Kind, encode_frame
from p2pdp.wire.padding import PaddingError, pad, unpad

_OFFER_LABEL: Final = "p2pdp offer"
_ANSWER_LABEL: Final = "p2pdp answer"

SEAT: Final = "seat"
WAITING: Final = "waiting"
REFUSED: Final = "refused"


class EnrolmentError(Exception):
    """A document of a stranger that is malformed, or not signed or sealed as it must be."""


@dataclass(frozen=True, slots=True)
class Offer:
    run_id: bytes
    spec_text: str
    box: bytes


@dataclass(frozen=True, slots=True)
class Application:
    token: int
    secret: bytes
    entry: RosterEntry
    spec_digest: bytes

    def __repr__(self) -> str:
        return f"Application(token={self.token})"


@dataclass(frozen=True, slots=True)
class Answer:
    """Bootstrap's answer; `user`, `neighbours` and `roster` belong to a seat; neighbours None means all users."""

    kind: str
    reason: str = ""
    user: Peer = 0
    neighbours: tuple[Peer, ...] | None = None
    roster: bytes = b""


def _typed(data: Any, *types: type) -> list[Any]:
    if not isinstance(data, list) or [type(part) for part in data] != list(types):
        raise EnrolmentError("malformed document")
    return data


def _plain_frame(kind: Kind, sender: Peer, document: bytes) -> bytes:
    return encode_frame(kind, sender, pad(document, FRAME_HEADER_BYTES))


def _sealed_frame(kind: Kind, sender: Peer, document: bytes, box: bytes, seed: bytes) -> bytes:
    try:
        sealed = seal_to(box, pad(document, FRAME_HEADER_BYTES + SEAL_BYTES), seed)
    except SealError as error:
        raise EnrolmentError("nothing can be sealed to this key") from error
    return encode_frame(kind, sender, sealed)


def _opened(body: bytes, key: RunKey) -> Any:
    try:
        return unpack(unpad(open_sealed(key, body), FRAME_HEADER_BYTES + SEAL_BYTES))
    except (SealError, PaddingError, CodecError) as error:
        raise EnrolmentError("not sealed to this key") from error


def hello_frame() -> bytes:
    return _plain_frame(Kind.HELLO, 0, b"")


def offer_frame(identity: Identity, offer: Offer) -> bytes:
    parts = (offer.run_id, offer.spec_text.encode(), offer.box)
    document = pack([*parts, sign_labelled(identity, _OFFER_LABEL, *parts)])
    return _plain_frame(Kind.OFFER, BOOTSTRAP, document)


def read_offer(body: bytes, bootstrap_public: bytes) -> Offer:
    try:
        document = unpack(unpad(body, FRAME_HEADER_BYTES))
        run_id, text, box, signature = _typed(document, bytes, bytes, bytes, bytes)
        spec_text = text.decode()
    except (PaddingError, CodecError, UnicodeDecodeError) as error:
        raise EnrolmentError("malformed offer") from error
    if len(run_id) != RUN_ID_BYTES:
        raise EnrolmentError("malformed offer")
    if not verify_labelled(bootstrap_public, signature, _OFFER_LABEL, run_id, text, box):
        raise EnrolmentError("the offer is not signed by the key in the join token")
    return Offer(run_id, spec_text, box)


def application_frame(application: Application, box: bytes, seed: bytes) -> bytes:
    document = pack([application.token, application.secret, application.entry.to_bytes(), application.spec_digest])
    return _sealed_frame(Kind.ENROL, 0, document, box, seed)


def read_application(body: bytes, key: RunKey) -> Application:
    token, secret, entry, digest = _typed(_opened(body, key), int, bytes, bytes, bytes)
    if len(entry) != ENTRY_BYTES:
        raise EnrolmentError("malformed application")
    return Application(token, secret, RosterEntry.from_bytes(entry), digest)


def answer_frame(identity: Identity, run_id: bytes, box: bytes, answer: Answer, seed: bytes) -> bytes:
    everybody = answer.neighbours is None
    content = pack([answer.kind, answer.reason, answer.user, everybody, list(answer.neighbours or ()), answer.roster])
    document = pack([content, sign_labelled(identity, _ANSWER_LABEL, run_id, box, content)])
    return _sealed_frame(Kind.ROSTER, BOOTSTRAP, document, box, seed)


def read_answer(body: bytes, key: RunKey, run_id: bytes, bootstrap_public: bytes) -> Answer:
    content, signature = _typed(_opened(body, key), bytes, bytes)
    if not verify_labelled(bootstrap_public, signature, _ANSWER_LABEL, run_id, key.public, content):
        raise EnrolmentError("the answer is not signed by the key in the join token")
    try:
        kind, reason, user, everybody, listed, roster = _typed(unpack(content), str, str, int, bool, list, bytes)
    except CodecError as error:
        raise EnrolmentError("malformed answer") from error
    if kind not in (SEAT, WAITING, REFUSED):
        raise EnrolmentError("malformed answer")
    return Answer(kind, reason, user, None if everybody else _users(listed), roster)


def _users(listed: Sequence[Any]) -> tuple[Peer, ...]:
    if any(type(user) is not int or user < 0 for user in listed):
        raise EnrolmentError("malformed answer")
    return tuple(listed)


def check_seat(answer: Answer, bootstrap_public: bytes, mine: RosterEntry, spec_digest: bytes, run_id: bytes) -> Roster:
    """Return the roster of a seat, after checking that it is that of the accepted run and spec, and holds us."""
    try:
        roster = Roster.from_bytes(answer.roster)
        roster.check(bootstrap_public)
    except RosterError as error:
        raise EnrolmentError(str(error)) from error
    if roster.run_id != run_id or roster.spec_digest != spec_digest:
        raise EnrolmentError("the roster is for another run or another spec than the one offered")
    if not 0 <= answer.user < roster.n or roster.entries[answer.user] != mine:
        raise EnrolmentError("the roster does not hold this node's own entry")
    if any(user >= roster.n or user == answer.user for user in answer.neighbours or ()):
        raise EnrolmentError("the list of neighbours does not fit the roster")
    return roster
