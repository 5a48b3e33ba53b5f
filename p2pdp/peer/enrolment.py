"""A node's side of enrolment: asks until it has its credentials, or is told why not.

The caller gives `accept`, which shows and checks the spec and returns its digest; it raises a
`P2pdpError` where the node's owner does not agree, and then nothing about the node has left it yet but that its join
token is in use. The caller asks bootstrap again, in any order of starting.

Guarantee: nothing that bootstrap signed is passed over in silence. A seat that does not fit what was accepted, and
an offer of another run, raise `Refused`. What anybody could have sent is counted, and `waiting` tells of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from p2pdp.core.errors import Refused
from p2pdp.core.spec import RunPart
from p2pdp.crypto.enrolment import (
    REFUSED,
    SEAT,
    Answer,
    Application,
    EnrolmentError,
    NotSealedToUs,
    Offer,
    OtherVersion,
    application_frame,
    check_seat,
    hello_frame,
    hello_key,
    read_answer,
    read_offer,
)
from p2pdp.crypto.entropy import Entropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import sign_entry
from p2pdp.peer.credentials import Credentials
from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import Kind, decode_frame

RETRY_S: Final = 1.0
RETRY_MAX_S: Final = 30.0
ANSWER_S: Final = 0.003  # that bootstrap takes for each of many on a busy machine
NO_ANSWER: Final = "bootstrap does not answer yet"
FAULTS_KEPT: Final = 100
HELLO_EVERY: Final = 8  # how often a node that applied asks what is offered: bootstrap may have begun another run


def first_wait_s(run: RunPart | None) -> float:
    """Return after how long to ask again, where all ask at once: those who ask twice delay the answers to others."""
    return RETRY_S if run is None else min(max(RETRY_S, ANSWER_S * run.nodes), RETRY_MAX_S)


class EnrolmentClient:
    def __init__(
        self,
        identity: Identity,
        run_key: RunKey,
        token: int,
        secret: bytes,
        bootstrap_public: bytes,
        accept: Callable[[str], bytes],
        entropy: Entropy,
        rows: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`rows` tells how many rows the node has, once the spec is accepted; None where the run does not ask."""
        self._rows = rows
        self._identity = identity
        self._run_key = run_key
        self._token = token
        self._secret = secret
        self._bootstrap_public = bootstrap_public
        self._accept = accept
        self._entropy = entropy
        self._hello_key = hello_key(run_key)
        self._offer: Offer | None = None
        self._asked = 0
        self._spec_digest = b""
        self.credentials: Credentials | None = None
        self.refused: str | None = None
        self.waiting_for = NO_ANSWER
        self.doubt: str | None = None  # why the offer that came is not one of the bootstrap in the join token
        self.faults: deque[str] = deque(maxlen=FAULTS_KEPT)
        self.fault_count = 0

    def ask(self) -> bytes:
        """Return the frame to send to bootstrap now."""
        self._asked += 1
        if self._offer is None or self._asked % HELLO_EVERY == 0:
            return hello_frame(self._token, self._secret, self._bootstrap_public, self._hello_key.public)
        return self._application(self._offer)

    @property
    def waiting(self) -> str:
        """Return what this node waits for, and what is wrong with what came instead."""
        return f"{self.waiting_for} (what came was of no use: {self.faults[-1]})" if self.faults else self.waiting_for

    def _application(self, offer: Offer) -> bytes:
        entry = sign_entry(self._identity, offer.run_id, self._run_key.public, self._rows())
        application = Application(self._token, self._secret, entry, self._spec_digest)
        return application_frame(application, offer.box, self._entropy.seed())

    def frame(self, data: bytes) -> bytes | None:
        """Take a frame from bootstrap, and return the next one to send, if there is one at once."""
        if self.credentials is not None or self.refused is not None:
            return None
        try:
            frame = decode_frame(data)
            if frame.kind is Kind.OFFER:
                return self._offered(self._read_offer(frame.body))
            if frame.kind is Kind.ROSTER and self._offer is not None:
                self._answered(read_answer(frame.body, self._run_key, self._offer.run_id, self._bootstrap_public))
        except (CodecError, EnrolmentError) as error:
            self.faults.append(str(error))
            self.fault_count += 1
        return None

    def _read_offer(self, body: bytes) -> Offer:
        try:
            return read_offer(body, self._hello_key, self._bootstrap_public)
        except (NotSealedToUs, OtherVersion):  # it may have been for an earlier life, or by anybody
            raise
        except EnrolmentError as error:
            self.doubt = str(error)
            raise

    def _offered(self, offer: Offer) -> bytes | None:
        if offer.refusal:
            self.refused = offer.refusal
            return None
        if self._offer is None:
            self._spec_digest = self._accept(offer.spec_text)
            application = self._application(offer)
            self._offer = offer
            self.waiting_for = "bootstrap has the application"
            return application
        if offer != self._offer:
            raise Refused(
                "bootstrap offers another run than the one that this node applied for; start the node again to see it"
            )
        return None

    def _answered(self, answer: Answer) -> None:
        assert self._offer is not None
        if answer.kind == REFUSED:
            self.refused = answer.reason
        elif answer.kind == SEAT:
            mine = sign_entry(self._identity, self._offer.run_id, self._run_key.public, self._rows())
            try:
                roster = check_seat(answer, self._bootstrap_public, mine, self._spec_digest, self._offer.run_id)
            except EnrolmentError as error:
                raise Refused(f"the seat that bootstrap gave this node does not fit: {error}") from None
            self.credentials = Credentials(answer.user, roster, self._identity, self._run_key, answer.neighbours)
        else:
            self.waiting_for = answer.reason
