"""A node's side of enrolment: asks until it has its credentials, or is told why not.

The caller gives `accept`, which shows and checks the spec and returns its digest; it raises a
`P2pdpError` where the node's owner does not agree, and then nothing about the node has left it yet.
Bootstrap is asked again every `retry_s`, in any order of starting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from p2pdp.crypto.enrolment import (
    REFUSED,
    SEAT,
    Answer,
    Application,
    EnrolmentError,
    Offer,
    application_frame,
    check_seat,
    hello_frame,
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
NO_ANSWER: Final = "bootstrap does not answer yet"
FAULTS_KEPT: Final = 100


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
    ) -> None:
        self._identity = identity
        self._run_key = run_key
        self._token = token
        self._secret = secret
        self._bootstrap_public = bootstrap_public
        self._accept = accept
        self._entropy = entropy
        self._offer: Offer | None = None
        self._spec_digest = b""
        self.credentials: Credentials | None = None
        self.refused: str | None = None
        self.waiting_for = NO_ANSWER
        self.doubt: str | None = None  # why the offer that came is not one of the bootstrap in the join token
        self.faults: deque[str] = deque(maxlen=FAULTS_KEPT)

    def ask(self) -> bytes:
        """Return the frame to send to bootstrap now; ask again after `RETRY_S` while there are no credentials."""
        return hello_frame() if self._offer is None else self._application(self._offer)

    def _application(self, offer: Offer) -> bytes:
        entry = sign_entry(self._identity, offer.run_id, self._run_key.public)
        application = Application(self._token, self._secret, entry, self._spec_digest)
        return application_frame(application, offer.box, self._entropy.seed())

    def frame(self, data: bytes) -> bytes | None:
        """Take a frame from bootstrap, and return the next one to send, if there is one at once."""
        if self.credentials is not None or self.refused is not None:
            return None
        try:
            frame = decode_frame(data)
            if frame.kind is Kind.OFFER and self._offer is None:
                offer = self._read_offer(frame.body)
                self._spec_digest = self._accept(offer.spec_text)
                application = self._application(offer)
                self._offer = offer
                self.waiting_for = "bootstrap has the application"
                return application
            if frame.kind is Kind.ROSTER and self._offer is not None:
                self._answered(read_answer(frame.body, self._run_key, self._offer.run_id, self._bootstrap_public))
        except (CodecError, EnrolmentError) as error:
            self.faults.append(str(error))
        return None

    def _read_offer(self, body: bytes) -> Offer:
        try:
            return read_offer(body, self._bootstrap_public)
        except EnrolmentError as error:
            self.doubt = str(error)
            raise

    def _answered(self, answer: Answer) -> None:
        assert self._offer is not None
        if answer.kind == REFUSED:
            self.refused = answer.reason
        elif answer.kind == SEAT:
            mine = sign_entry(self._identity, self._offer.run_id, self._run_key.public)
            roster = check_seat(answer, self._bootstrap_public, mine, self._spec_digest, self._offer.run_id)
            self.credentials = Credentials(answer.user, roster, self._identity, self._run_key, answer.neighbours)
        else:
            self.waiting_for = answer.reason
