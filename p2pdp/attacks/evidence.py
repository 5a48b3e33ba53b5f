"""One peer's own records, for an attack by it and to score what others guessed of it."""

from __future__ import annotations

from typing import Any

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import Peer, peer_name
from p2pdp.ledger import records
from p2pdp.ledger.evidence import Evidence
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import Contents
from p2pdp.wire.codec import unpack_value


def contents_of(evidence: Evidence, peer: Peer) -> Contents | None:
    """None where its ledger is not here."""
    data = evidence.views.get(peer)
    if data is None:
        return None
    try:
        contents = records.read(data)
    except records.LedgerError as error:
        raise VerificationFailed(f"node {peer_name(peer)}: {error}") from None
    problem = records.chain_problem(contents)
    if problem is not None:
        raise VerificationFailed(f"node {peer_name(peer)}, record {problem[0]}: {problem[1]}")
    return contents


def inputs_of(private: bytes) -> list[Any] | None:
    """A user's values; None where its private ledger does not hold them any more."""
    stored = Journal(private=private).inputs
    return list(unpack_value(stored)) if stored else None
