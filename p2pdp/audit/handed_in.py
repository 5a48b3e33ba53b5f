"""What the curator learned from the skeletons that were handed in to it.

Skeletons that it can read tell every route, so claims about the curator that rest on hidden routes are refused. Sealed
ones tell their sizes only, which follow from public facts (`protocols/run_plan.py`); one that did not fit and
was lengthened tells how much its user passed on, and such claims are refused as well.
"""

from __future__ import annotations

from typing import Final

from p2pdp.audit.ground import Ground
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import SKELETON, SkeletonPiece
from p2pdp.crypto.sealed_skeleton import sealed_bytes
from p2pdp.ledger.records import OPENED, RECEIVED, public_message
from p2pdp.protocols.run_plan import skeleton_size

READABLE: Final = "users handed in skeletons that the curator can read, and these tell every route: name an [audit] key"


def told_by_skeletons(ground: Ground) -> str | None:
    """Why the curator knows more than its claims assume; None where it does not."""
    sizes = _sizes(ground)
    if sizes and ground.run.spec.audit.key is None:
        return READABLE
    for user, size in sorted(sizes.items()):
        degree = _degree(ground, user)
        if degree is None:
            return f"the ledger of user {user} is not at hand, so the size of its skeleton cannot be judged"
        if size != sealed_bytes(skeleton_size(ground.run, degree)):
            return f"the size of the skeleton of user {user} tells how much it passed on"
    return None


def _sizes(ground: Ground) -> dict[Peer, int]:
    """Lengths of the skeletons that the curator received, by user."""
    contents = ground.views.get(CURATOR)
    found: dict[Peer, int] = {}
    for record in contents.records if contents is not None else ():
        if (
            record.kind == RECEIVED
            and is_user(record.body.sender)
            and (message := public_message(record)).type == SKELETON
        ):
            found[record.body.sender] = SkeletonPiece(*message.fields).length
    return found


def _degree(ground: Ground, user: Peer) -> int | None:
    contents = ground.views.get(user)
    if contents is None:
        return None
    opening = next(record for record in contents.records if record.kind == OPENED)
    return ground.run.n - 1 if opening.body.neighbours is None else len(opening.body.neighbours)
