"""Claims about the curator after skeletons were handed in: readable, sealed, and sealed with a size that tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2pdp.audit.ground import Ground
from p2pdp.audit.handed_in import READABLE, told_by_skeletons
from p2pdp.audit.verify import verify
from p2pdp.core.ids import CURATOR
from p2pdp.core.messages import SKELETON
from p2pdp.core.spec import AuditPart
from p2pdp.core.step import Message
from p2pdp.crypto.sealed_skeleton import sealed_bytes
from p2pdp.ledger.records import RECEIVED
from p2pdp.protocols.run_plan import skeleton_size
from p2pdp.replay.evidence import Evidence
from p2pdp.wire.codec import pack_message
from tests.support.runs import DELTA, Run, Written, audited, quiet
from tests.support.shuffle_specs import EARLY

KEY = AuditPart("09" * 32)


def with_skeleton(run: Run, user: int, size: int, audit: AuditPart) -> Evidence:
    """The evidence had this user handed in so many bytes, under a spec with this section."""
    piece = Written(RECEIVED, (0.0, user, pack_message(Message(SKELETON, (0, size)))), bytes(24))
    view = run.rewritten(CURATOR, lambda written: [*written[:-1], piece, *written[-1:]])
    return replace(run.having(CURATOR, view), spec=replace(run.evidence.spec, audit=audit))


def ground_of(run: Run, evidence: Evidence) -> Ground:
    found = verify(replace(evidence, spec=run.evidence.spec))
    plan = replace(run.plan, spec=evidence.spec)
    return Ground(plan, found.views, run.transcript(), (), DELTA, ())


@pytest.fixture(scope="module")
def run() -> Run:
    return quiet(EARLY)


def test_without_skeletons_nothing_is_told(run: Run) -> None:
    assert told_by_skeletons(ground_of(run, run.evidence)) is None


def test_readable_ones_tell_every_route(run: Run) -> None:
    assert told_by_skeletons(ground_of(run, with_skeleton(run, 3, 5000, AuditPart()))) == READABLE


def test_sealed_ones_tell_nothing_unless_one_did_not_fit(run: Run) -> None:
    size = skeleton_size(run.plan, 4)
    fits = with_skeleton(run, 3, sealed_bytes(size), KEY)
    assert told_by_skeletons(ground_of(run, fits)) is None
    lengthened = with_skeleton(run, 3, sealed_bytes(2 * size), KEY)
    assert "user 3" in (told_by_skeletons(ground_of(run, lengthened)) or "")
    ground = ground_of(run, fits)
    without = replace(ground, views={peer: view for peer, view in ground.views.items() if peer != 3})
    assert "user 3" in (told_by_skeletons(without) or "")


def test_the_claim_about_the_curator_is_refused_and_that_about_the_public_stays(run: Run) -> None:
    evidence = with_skeleton(run, 3, 5000, AuditPart())
    found = audited(evidence, verify(evidence), (), DELTA)
    assert ("curator", READABLE) in {(refusal.observer, refusal.reason) for refusal in found.refusals}
    methods = {(claim.observer, claim.method) for claim in found.claims}
    assert ("curator", "shuffle") not in methods
    assert ("public", "shuffle") in methods
