"""Check that what users recorded follows from the protocol, by the replay that audits rest on (`replay/transcript.py`).

Where ledgers contradict each other, each is replayed alone: then what came from others is taken as it was recorded, and
nobody is blamed for what somebody else's ledger says. Where values are at hand, the same machines replay each ledger
alone with these (`replay/valued.py`), which finds all that a replay over symbols would, and wrong values too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from p2pdp.core.arrays import Each, Floats, one_by_one
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import BEGIN, Item
from p2pdp.ledger.records import SENT, Contents, packed_message, packed_type, public_message
from p2pdp.protocols.contract import Start
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence, Recorded
from p2pdp.replay.findings import Finding, NotFollowed
from p2pdp.replay.valued import WithoutValues, mispublished, misvalued

_BEGIN: Final = packed_type(BEGIN)


def unfollowed(
    evidence: Evidence, run: RunPlan, peers: Collection[Peer], *, alone: bool
) -> tuple[list[Finding], list[Peer]]:
    """Return the records that do not follow, and the users who could not be judged because of others.

    `peers` are those whose ledgers are in order; with `alone` the ledgers contradict each other.
    """
    findings: list[Finding] = []
    unjudged: list[Peer] = []
    each = (Recorded(run, {user: evidence.contents(user)}) for user in sorted(peers) if is_user(user))
    for recorded in each if alone else [evidence.recorded(peers)]:
        try:
            _ = recorded.transcript
        except NotFollowed as error:
            findings += error.findings
            unjudged += error.unjudged
    return findings, unjudged


def misvalued_in(
    evidence: Evidence,
    run: RunPlan,
    peers: Collection[Peer],
    privates: Mapping[Peer, Contents],
    each: Each = one_by_one,
) -> tuple[list[Finding], dict[str, list[Peer]]]:
    """Return what does not follow once values are looked at, and by reason whose values nothing at hand tells.

    `privates` are the private ledgers that are in order. `each` computes whose values are right; only of the others it
    is looked at here what is wrong.
    """
    findings: list[Finding] = []
    untold: dict[str, list[Peer]] = {}

    def is_right(place: int) -> Floats:
        try:
            return np.array([float(_misvalued(evidence, run, ordered[place], privates) is None)])
        except WithoutValues:
            return np.zeros(1)

    ordered = sorted(peers)
    for peer, (right,) in zip(ordered, each(len(ordered), is_right), strict=True):
        if right:
            continue
        try:
            found = _misvalued(evidence, run, peer, privates)
        except WithoutValues as error:
            untold.setdefault(str(error), []).append(peer)
        else:
            findings += [] if found is None else [found]
    return findings, untold


def _misvalued(evidence: Evidence, run: RunPlan, peer: Peer, privates: Mapping[Peer, Contents]) -> Finding | None:
    """Return what does not follow in one ledger; raise `WithoutValues` where nothing at hand tells."""
    view = evidence.contents(peer)
    if is_user(peer):
        if evidence.private.get(peer) and peer not in privates:
            raise WithoutValues("private ledger not in order")
        return misvalued(run, evidence.roster, peer, view, privates.get(peer))
    if peer == CURATOR and view.skeleton:
        raise WithoutValues("no values at hand")
    return mispublished(run, view) if peer == CURATOR else None


def wrongly_begun(bootstrap: Contents, starts: Sequence[Start], excluded: Collection[Peer]) -> Iterator[Finding]:
    """Yield orders by which bootstrap began an item that the plan has not, elsewhere than the plan says, or twice.

    Whom it excluded may have lost an item that was begun there: then it is begun elsewhere.
    """
    holders = {start.item: start.user for start in starts}
    begun: set[int] = set()
    for record in bootstrap.records:
        if record.kind != SENT or not packed_message(record).startswith(_BEGIN):
            continue
        item = Item(*public_message(record).fields).item
        if item in begun and holders[item] not in excluded:
            yield Finding(BOOTSTRAP, record.index, f"begins item {item} for the second time")
        elif item not in holders or (holders[item] != record.body.receiver and holders[item] not in excluded):
            yield Finding(BOOTSTRAP, record.index, f"begins item {item} where the plan does not begin it")
        begun.add(item)
        holders[item] = record.body.receiver
