"""What links say to each other beside messages: comparisons of numbers, requests to send again, pokes.

Nothing here is recorded: the numbers are those of the ledger, and a lost frame of control is asked for again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2pdp.host import payloads
from p2pdp.host.link import Hello, Link, Verdict
from p2pdp.host.payloads import Arrival, Payload
from p2pdp.wire.codec import CodecError

if TYPE_CHECKING:
    from p2pdp.host.peers import Peers


def heed_unusual(peers: Peers, link: Link, payload: Payload, now_s: float) -> Arrival | None:
    """Whatever is not the next message; gives it if it is to be looked at all the same."""
    number = payload.number
    if payload.flags & payloads.CONTROL:
        _heed_control(peers, link, payload, now_s)
    elif peers.silent:
        link.passed_over = True  # it is asked for once numbers are compared
    elif number > link.received and peers.closed:
        return Arrival(link.peer, payload.message, payload.value)
    elif number <= link.received:
        if link.repeats(number, payload.message, payload.value) is False:
            peers.fault("conflict", link.peer)
            peers.hello(link.peer, ask=False)
        else:
            peers.frame(link.peer, link.control(0))
    elif link.gap_after != link.received:  # once for all frames behind the missing one
        link.gap_after = link.received
        peers.fault("gap", link.peer)
        peers.frame(link.peer, link.control(payloads.RESEND))
    return None


def _heed_control(peers: Peers, link: Link, payload: Payload, now_s: float) -> None:
    if payload.hello:
        _compare(peers, link, payload.hello, now_s)
    if payload.flags & payloads.RESEND:
        peers.send_again(link, now_s)
    if payload.flags & payloads.POKE:
        peers.frame(link.peer, link.control(0))


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
        peers.acknowledgements.learn(link, theirs.received, now_s)
        if answers and link.in_flight:
            peers.send_again(link, now_s)
