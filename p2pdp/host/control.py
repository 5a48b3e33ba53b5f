"""What links say to each other beside messages: comparisons of numbers, requests to send again, pokes.

Nothing here is recorded: the numbers are those of the ledger, and a lost frame of control is asked for again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2pdp.host import link as links
from p2pdp.host.link import Hello, Link, Payload, Verdict
from p2pdp.wire.codec import CodecError

if TYPE_CHECKING:
    from p2pdp.host.peers import Peers


def heed_control(peers: Peers, link: Link, payload: Payload, now_s: float) -> None:
    if payload.hello:
        _compare(peers, link, payload.hello, now_s)
    if payload.flags & links.RESEND:
        peers.send_again(link, now_s)
    if payload.flags & links.POKE:
        peers.dues.take_news(peers.links, now_s)
        link.settled.update(peers.guardian.settled_for(link.peer))
        peers.frame(link.peer, link.control(0))
        link.settled.clear()


def _compare(peers: Peers, link: Link, packed: object, now_s: float) -> None:
    try:
        theirs = Hello.unpacked(packed)
    except CodecError:
        peers.fault("malformed", link.peer)
        return
    verdict, answers = link.compare(theirs), link.answers(theirs)
    if verdict is Verdict.I_WAS_ROLLED_BACK:
        peers.roll_back(link.peer, theirs.question)
        return
    forgot = verdict is Verdict.THEY_WERE_ROLLED_BACK
    link.passed_over |= peers.silent and theirs.sent > link.received
    if answers:
        link.asked = None
        peers.fresh = True
        peers.expected_hellos.discard(link.peer)
    if theirs.question or (forgot and not answers and link.asked is None):
        peers.hello(link.peer, ask=not answers, answer=theirs.question)
    if forgot and answers:
        peers.fault(verdict.value, link.peer)
    elif not forgot:
        link.acknowledge_up_to(theirs.received)
        peers.dues.progress(link.peer, now_s, soon=True)
        if answers and link.waiting:
            peers.send_again(link, now_s)
