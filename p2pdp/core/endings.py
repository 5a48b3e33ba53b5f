"""The ways in which a run ends before its result, and what is said of them.

Bootstrap decides, publishes the reason with those concerned (`STOPPED`), and tells everybody the reason alone (`STOP`):
who is concerned may follow from the route of an item. All close their ledgers and hand in their heads as after a
result, so that `verify` can say more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from p2pdp.core.errors import RunFailed
from p2pdp.core.fields import Integer, ListOf, Text
from p2pdp.core.ids import Peer, is_user, peer_name

COMPLAINT: Final = "complaint"
STALLED: Final = "stalled"
STOP: Final = "stop"
STOPPED: Final = "stopped"

UNEXPECTED: Final = "unexpected_message"  # the kind of the fault of a message that is well formed, but impossible now
UNPROVEN: Final = "unproven_rollback"  # the kind of the fault of who says without proof that somebody forgot something
TOO_FEW: Final = "too_few"
DISPUTE: Final = "dispute"
STANDSTILL: Final = "standstill"
WORD_MAX: Final = 40


class RunStopped(RunFailed):
    """Bootstrap stopped the run: it is over, and there is nothing to resume."""


class SetBack(RunFailed):
    """Peers proved that this one's disk was set back: it must not go on."""


_Word = Annotated[str, Text(WORD_MAX)]


class Complaint(NamedTuple):
    peer: Annotated[int, Integer(-2)]  # the roles are -1 and -2
    fault: _Word


class Waiting(NamedTuple):
    users: Annotated[list[int], ListOf(Integer(0))]


class Stop(NamedTuple):
    reason: _Word


class Stopped(NamedTuple):
    reason: _Word
    concerned: Annotated[list[list[int]], ListOf(ListOf(Integer(-2)))]


def why_stopped(reason: str, concerned: Sequence[Sequence[Peer]] = ()) -> str:
    """Return one sentence, without its end, on why bootstrap stopped a run; without names if none are given."""
    if reason == TOO_FEW:
        out = f": {_names([one[0] for one in concerned])} {_were(len(concerned))} put out" if concerned else ""
        return f"the run was stopped, since fewer users are left than [run] min_live demands{out}"
    if reason == DISPUTE:
        pairs = "; ".join(f"{_name(by)} refused what {_name(about)} sent" for by, about in concerned)
        return "the run was stopped, since a message that it needs was refused" + (f": {pairs}" if pairs else "")
    if reason == STANDSTILL:
        awaited = "; ".join(f"{_names(by)} waited for {_name(who)}" for who, *by in concerned)
        return "the run was stopped, since nothing moved any more" + (f": {awaited}" if awaited else "")
    return "the run was stopped by bootstrap"


def _name(peer: Peer) -> str:
    return f"user {peer}" if is_user(peer) else str(peer_name(peer))


def _names(peers: Sequence[Peer]) -> str:
    if len(peers) == 1 or not all(map(is_user, peers)):
        return " and ".join(map(_name, peers))
    return f"users {', '.join(map(str, peers[:-1]))} and {peers[-1]}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
