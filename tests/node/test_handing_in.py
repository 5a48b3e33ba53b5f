from __future__ import annotations

from dataclasses import replace

from p2pdp.core.spec import AuditPart
from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.sealed_skeleton import open_skeleton, sealed_bytes
from p2pdp.ledger.records import to_skeleton
from p2pdp.node.handing_in import handed_in
from p2pdp.protocols.skeleton_size import skeleton_size
from tests.support.runs import quiet, walk
from tests.support.toys import credentials

AUDITOR = RunKey(bytes([7] * 32))
RUN = quiet(walk(4, 30))


def test_a_skeleton_is_sealed_to_the_auditor_that_the_spec_names() -> None:
    view = RUN.evidence.views[2]
    assert handed_in(lambda _: view, RUN.plan, credentials(2, 4))() == to_skeleton(view)
    spec = replace(RUN.plan.spec, audit=AuditPart(AUDITOR.public.hex()))
    plan = replace(RUN.plan, spec=spec)
    sealed = handed_in(lambda _: view, plan, credentials(2, 4))
    assert open_skeleton(sealed(), AUDITOR) == to_skeleton(view)
    assert sealed() == sealed()
    assert len(sealed()) == sealed_bytes(skeleton_size(plan, 3))


def test_its_length_is_that_of_every_other_user() -> None:
    plan = replace(RUN.plan, spec=replace(RUN.plan.spec, audit=AuditPart(AUDITOR.public.hex())))
    views = [RUN.evidence.views[user] for user in range(4)]
    assert len({len(view) for view in map(to_skeleton, views)}) > 1
    assert len({len(handed_in(lambda _, view=view: view, plan, credentials(1, 4))()) for view in views}) == 1  # type: ignore[misc]
