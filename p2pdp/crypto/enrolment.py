"""The documents by which a node gets its seat, before there is any channel.

    HELLO   node -> bootstrap   version of these documents, number of the join token, a key for the offer, and a proof
                                that whoever chose the key holds the token's secret
    OFFER   bootstrap -> node   sealed to that key, signed: run id, the spec as text, bootstrap's key of this run; or
                                why there is none
    ENROL   node -> bootstrap   sealed: token number and secret, roster entry, digest of the accepted spec
    ROSTER  bootstrap -> node   sealed: an answer, signed: a seat, `waiting`, or `refused`. With a seat comes the
                                roster, with the entries of the node and of those whom it may talk to

All of them may be repeated or lost: a node asks until it has a seat, and bootstrap gives the same
identity the same seat each time. Bodies are padded like all frames, sealed ones between 4 and 16 KiB, where seats are,
in steps of 4 KiB. The key of a HELLO follows from the node's run key, so that a node that was started again reads what
was on its way to it. A HELLO of another version is answered with the version spoken here, in clear.

Guarantee: reading a document that is malformed or not signed by the expected key raises `EnrolmentError`, and
so does answering to a key that nothing can be sealed to. Whoever holds no join token learns from bootstrap whether a
token's number and proof are valid, and nothing else; who listens learns numbers of tokens and sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final

from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.crypto.identity import KEY_BYTES, Identity, RunKey, sign_labelled, verify_labelled
from p2pdp.crypto.roster import ENTRY_BYTES, RUN_ID_BYTES, Roster, RosterEntry, RosterError
from p2pdp.crypto.sealed import SEAL_BYTES, SealError, open_sealed, seal_to
from p2pdp.crypto.tree import HASH_BYTES
from p2pdp.wire.codec import CodecError, pack, unpack
from p2pdp.wire.frames import FRAME_HEADER_BYTES, Kind, encode_frame
from p2pdp.wire.padding import PaddingError, content_end, frame_size, pad, unpad

HANDSHAKE_VERSION: Final = 5
_SEAT_BYTES: Final = 740  # of a seat beside entries and their proof, with the facts that most runs have
_STEP_BYTES: Final = 4096
_STEPS_END: Final = 16 * 1024
_OFFER_LABEL: Final = "p2pdp offer"
_ANSWER_LABEL: Final = "p2pdp answer"

SEAT: Final = "seat"
WAITING: Final = "waiting"
REFUSED: Final = "refused"

BAD_ENROLMENT: Final = "bad_enrolment"  # a kind of fault: a document that is none, or of somebody else


class EnrolmentError(Exception):
    """A document of a stranger that is malformed, or not signed or sealed as it must be."""


class NotSealedToUs(EnrolmentError):
    """A document that is sealed to another key, or damaged: anybody can send such a one."""


class OtherVersion(EnrolmentError):
    """The other end speaks another version of these documents."""

    def __init__(self, version: int) -> None:
        """Keep the version."""
        super().__init__(f"it speaks version {version} of enrolment, and this program version {HANDSHAKE_VERSION}")
        self.version = version


@dataclass(frozen=True, slots=True)
class Hello:
    """A request for the offer; `proof` shows that the token's secret is known to whoever chose the key."""

    token: int
    key: bytes
    proof: bytes

    def knows(self, secret: bytes, bootstrap_public: bytes) -> bool:
        return compare_digest(self.proof, _proof(self.token, secret, bootstrap_public, self.key))


@dataclass(frozen=True, slots=True)
class Offer:
    """The run that is offered; `refusal` says why there is none."""

    run_id: bytes
    spec_text: str
    box: bytes
    refusal: str = ""


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
        sealed = seal_to(box, _padded(document), seed)
    except SealError as error:
        raise EnrolmentError("nothing can be sealed to this key") from error
    return encode_frame(kind, sender, sealed)


def seat_size(n: int, entries: int) -> int:
    """Return about how large the frame of a seat is, with so many entries of n that stand anywhere in the roster."""
    proof = 0 if entries >= n else entries * HASH_BYTES * (1 + (n // entries).bit_length())
    return _size(_SEAT_BYTES + entries * ENTRY_BYTES + proof)


def _size(needed: int) -> int:
    if not _STEP_BYTES < needed <= _STEPS_END:
        return frame_size(needed)
    return -(-needed // _STEP_BYTES) * _STEP_BYTES


def _padded(document: bytes) -> bytes:
    """Pad what is to be sealed, so that the frame has one of the sizes of frames, or one of those between."""
    overhead_bytes = FRAME_HEADER_BYTES + SEAL_BYTES
    return (document + b"\x80").ljust(_size(len(document) + 1 + overhead_bytes) - overhead_bytes, b"\0")


def _unpadded(padded: bytes) -> bytes:
    """Return what was padded; refuse what `_padded` makes of nothing."""
    end = content_end(padded)
    if end is None or _padded(padded[:end]) != padded:
        raise PaddingError("malformed padding")
    return padded[:end]


def _opened(body: bytes, key: RunKey) -> Any:
    try:
        document = open_sealed(key, body)
    except SealError as error:
        raise NotSealedToUs("not sealed to this key") from error
    try:
        return unpack(_unpadded(document))
    except (PaddingError, CodecError) as error:
        raise EnrolmentError("malformed document") from error


def hello_key(run_key: RunKey) -> RunKey:
    """Return the key that offers to this node are sealed to; it is the same each time."""
    return RunKey(blake2b(b"", digest_size=KEY_BYTES, key=run_key.secret, person=b"p2pdp hello key").digest())


def _proof(token: int, secret: bytes, bootstrap_public: bytes, key: bytes) -> bytes:
    content = pack([token, bootstrap_public, key])
    return blake2b(content, digest_size=KEY_BYTES, key=secret, person=b"p2pdp hello").digest()


def hello_frame(token: int, secret: bytes, bootstrap_public: bytes, key: bytes) -> bytes:
    proof = _proof(token, secret, bootstrap_public, key)
    return _plain_frame(Kind.HELLO, 0, pack([HANDSHAKE_VERSION, token, key, proof]))


def read_hello(body: bytes) -> Hello:
    try:
        document = unpad(body, FRAME_HEADER_BYTES)
        parts = unpack(document) if document else [1]  # what the first version said
    except (PaddingError, CodecError) as error:
        raise EnrolmentError("malformed greeting") from error
    if type(parts) is list and parts and type(parts[0]) is int and parts[0] != HANDSHAKE_VERSION:
        raise OtherVersion(parts[0])
    _, token, key, proof = _typed(parts, int, int, bytes, bytes)
    if (len(key), len(proof)) != (KEY_BYTES, KEY_BYTES):
        raise EnrolmentError("malformed greeting")
    return Hello(token, key, proof)


def version_frame() -> bytes:
    """Return the answer to a HELLO of another version."""
    return _plain_frame(Kind.OFFER, BOOTSTRAP, pack([HANDSHAKE_VERSION]))


def offer_frame(identity: Identity, offer: Offer, key: bytes, box_key: RunKey) -> bytes:
    """Seal an offer; the seed follows from bootstrap's key of this run and from all that is sealed with it."""
    content = pack([offer.run_id, offer.spec_text, offer.box, offer.refusal])
    document = pack([content, sign_labelled(identity, _OFFER_LABEL, key, content)])
    hashed = blake2b(key + document, digest_size=KEY_BYTES, key=box_key.secret, person=b"p2pdp offer seed")
    return _sealed_frame(Kind.OFFER, BOOTSTRAP, document, key, hashed.digest())


def read_offer(body: bytes, key: RunKey, bootstrap_public: bytes) -> Offer:
    """Return an offer; raise `OtherVersion` where the body says nothing else."""
    try:
        document = _opened(body, key)
    except NotSealedToUs:
        _raise_version(body)
        raise
    content, signature = _typed(document, bytes, bytes)
    if not verify_labelled(bootstrap_public, signature, _OFFER_LABEL, key.public, content):
        raise EnrolmentError("the offer is not signed by the key in the join token")
    try:
        run_id, text, box, refusal = _typed(unpack(content), bytes, str, bytes, str)
    except CodecError as error:
        raise EnrolmentError("malformed offer") from error
    if len(run_id) != RUN_ID_BYTES:
        raise EnrolmentError("malformed offer")
    return Offer(run_id, text, box, refusal)


def _raise_version(body: bytes) -> None:
    try:
        (version,) = _typed(unpack(unpad(body, FRAME_HEADER_BYTES)), int)
    except (PaddingError, CodecError, EnrolmentError):
        return
    raise OtherVersion(version)


def application_frame(application: Application, box: bytes, seed: bytes) -> bytes:
    document = pack([application.token, application.secret, application.entry.to_bytes(), application.spec_digest])
    return _sealed_frame(Kind.ENROL, 0, document, box, seed)


def read_application(body: bytes, key: RunKey) -> Application:
    token, secret, entry, digest = _typed(_opened(body, key), int, bytes, bytes, bytes)
    try:
        return Application(token, secret, RosterEntry.from_bytes(entry), digest)
    except RosterError:
        raise EnrolmentError("malformed application") from None


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
    users = set(roster.entries.named)
    if answer.user not in users or roster.held(answer.user) != mine:
        raise EnrolmentError("the roster does not hold this node's own entry")
    others = range(roster.n) if answer.neighbours is None else answer.neighbours
    if answer.user in (answer.neighbours or ()) or users != {answer.user, *others}:
        raise EnrolmentError("the roster holds other entries than those of this node and its neighbours")
    return roster
