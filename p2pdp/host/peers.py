"""All links of one peer: from frames to messages in order and once, and back.

Everything a stranger, a broken network or a restarted peer can do to the links ends here: it
becomes a fault, a repeated acknowledgement or a comparison of numbers, never an exception and
never more memory than the bounds below. Nothing in this file is recorded; the numbers are those
of the ledger.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.step import Fault
from p2pdp.crypto.channel import Channel, ChannelError, padding_bytes
from p2pdp.crypto.roster import RosterError
from p2pdp.host import link as links
from p2pdp.host.custody import Guardian
from p2pdp.host.dues import Dues
from p2pdp.host.effects import Entropy, Timing
from p2pdp.host.link import DATA_HEAD_BYTES, Hello, Link, Payload, Verdict, parse_payload
from p2pdp.host.seat import Seat
from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import BOXED, BOXED_HEADER, BOXED_START, FRAME_HEADER_BYTES, encode_frame
from p2pdp.wire.padding import FRAME_BYTES_MAX

_new: Final = tuple.__new__  # see `link.py`
BURST_MAX = 256  # messages sent again at once on one link


class Arrival(NamedTuple):
    """The next message in order from a peer; not yet recorded, not yet counted."""

    peer: Peer
    message: bytes
    value: bytes


class Peers:
    def __init__(self, seat: Seat, entropy: Entropy, timing: Timing, guardian: Guardian) -> None:
        self._seat = seat
        self._entropy = entropy
        self._timing = timing
        self.guardian = guardian
        self._frame_header = encode_frame(BOXED, seat.me, b"")
        self._channels: dict[Peer, Channel] = {}
        self.links: dict[Peer, Link] = {}
        self.frames: list[tuple[Peer, bytes]] = []
        self.proved: Peer | None = None  # whose the last frame was, if it was authentic
        self.fresh = False  # whether it told us something that no older frame of that peer can have told
        self.faults: list[Fault] = []
        self.rolled_back = False
        self.closed = False  # the ledger is: messages are looked at, in any order, and none is counted any more
        self.silent = False  # while rejoining: compare numbers, send and take nothing
        self.expected_hellos: set[Peer] = set()
        self.dues = Dues(seat.me, guardian, timing.tick_s)
        self._waiting: set[Peer] = set()
        self.check_at_s: float | None = None

    def link(self, peer: Peer) -> Link:
        found = self.links.get(peer)
        if found is None:
            found = self.links[peer] = Link(peer)
        return found

    def _frame(self, peer: Peer, payload: bytes) -> None:
        try:
            body = (self._channels.get(peer) or self.channel(peer)).seal(payload, self._entropy.nonce())
        except RosterError:
            self._fault("bad_roster_entry", peer)
        else:
            self.frames.append((peer, self._frame_header + body))

    def send(self, peer: Peer, message: bytes, value: bytes, now_s: float) -> int:
        link = self.links.get(peer) or self.link(peer)
        item = link.push(message, value)
        if link.refused:
            return link.sent
        self._waiting.add(peer)
        if link.resend_at_s is None:
            link.resend_at_s = now_s + self._timing.resend_s
        if self.check_at_s is None:
            self.check_at_s = now_s + self._timing.resend_s / 2
        if not self.silent:
            if not link.settled:
                payload = link.data(item)
            else:
                payload = link.data_with_reports(item, padding_bytes(len(message) + len(value) + DATA_HEAD_BYTES))
            if not link.settled:
                self.dues.since_s.pop(peer, None)  # the acknowledgement goes along
            self._frame(peer, payload)
        return link.sent

    def send_again(self, link: Link, now_s: float) -> None:
        if self.silent or link.refused or not link.waiting:
            return
        for item in list(link.waiting)[:BURST_MAX]:
            self._frame(link.peer, link.data(item))
        link.resend_wait_s = min(max(self._timing.resend_s, 2 * link.resend_wait_s), self._timing.resend_max_s)
        link.resend_at_s = now_s + link.resend_wait_s
        self._waiting.add(link.peer)
        self.check_at_s = now_s if self.check_at_s is None else self.check_at_s

    def resume(self, now_s: float) -> None:
        """Numbers are compared and the machine is where it was: go on, from what peers have acknowledged."""
        self.silent = False
        self.guardian.begin_anew(now_s)
        self.dues.tick_soon(now_s)
        for peer in self._seat.peers():
            link = self.link(peer)
            self.dues.progressed.add(peer)
            self.send_again(link, now_s)
            if link.passed_over and not link.refused:  # the peer would send it again only after a wait
                self._frame(peer, link.control(links.RESEND))

    def hello(self, peer: Peer, *, wants_answer: bool) -> None:
        link = self.link(peer)
        if not link.refused:
            self._frame(peer, link.control(0, link.hello(wants_answer=wants_answer)))

    def poke(self, peer: Peer) -> None:
        if not self.link(peer).refused:
            self._frame(peer, self.link(peer).control(links.POKE))

    def adopted(self, item: int, step: int, now_s: float) -> None:
        self.guardian.adopted(item, step, BOOTSTRAP)
        self.dues.tick_soon(now_s)

    def refuse(self, peer: Peer) -> None:
        """The peer is out: nothing is taken from it or sent to it any more."""
        link = self.link(peer)
        link.refused = True
        link.waiting.clear()
        self._waiting.discard(peer)
        self.dues.since_s.pop(peer, None)

    def flush(self, now_s: float) -> None:
        """Sends all acknowledgements and reports."""
        self.dues.take_news(self.links, now_s)
        self._send_dues(self.dues.all())

    def _send_dues(self, peers: list[Peer]) -> None:
        for peer in peers:
            link = self.links[peer]
            if not link.refused:
                self._frame(peer, link.control(0))
                link.settled.clear()

    def tick(self, now_s: float) -> None:
        if self.dues.tick_at_s is not None and now_s >= self.dues.tick_at_s:
            self.dues.take_news(self.links, now_s)
            self._send_dues(self.dues.ripe(now_s))
        if self.check_at_s is not None and now_s >= self.check_at_s:
            self.check_at_s = None
            for peer in sorted(self._waiting):
                link = self.links[peer]
                if not link.waiting:
                    self._waiting.discard(peer)
                elif link.resend_at_s is not None and now_s >= link.resend_at_s:
                    self.send_again(link, now_s)
            if self._waiting or self.guardian.watches:
                self.check_at_s = now_s + self._timing.resend_s / 2

    # Receiving

    def arrive(self, data: bytes, now_s: float) -> Arrival | None:
        """Opens a frame; gives the message if it is the next one of its link."""
        self.proved, self.fresh = None, False
        if self.rolled_back:
            return None
        kind, peer = "malformed", None
        try:
            if not FRAME_HEADER_BYTES <= len(data) <= FRAME_BYTES_MAX:
                raise CodecError("a frame is too short or too long")
            start, sender = BOXED_HEADER.unpack_from(data)
            if start != BOXED_START or sender < CURATOR:
                raise CodecError("not a frame for a running node")
            channel = self._channels.get(sender)
            if channel is not None or self._seat.knows(sender):
                content = (channel or self.channel(sender)).open(data[FRAME_HEADER_BYTES:])
                peer = self.proved = sender  # until here it was a claim
                payload = parse_payload(content)
                link = self.links.get(sender) or self.link(sender)
                link.last_heard_s = now_s
                if not link.refused:
                    return self._payload(link, payload, now_s)
                kind = "excluded_peer"
            else:
                kind = "unknown_peer"
        except ChannelError as error:
            kind = error.kind
        except CodecError:
            pass
        except RosterError:
            kind = "bad_roster_entry"
        self._fault(kind, peer)
        return None

    def channel(self, peer: Peer) -> Channel:
        channel = self._channels.get(peer)
        if channel is None:
            channel = self._channels[peer] = self._seat.channel(peer)
        return channel

    def _fault(self, kind: str, peer: Peer | None) -> None:
        self.faults.append(Fault(kind, peer))

    def _payload(self, link: Link, payload: Payload, now_s: float) -> Arrival | None:
        _, number, acknowledged, message, value, settled, _ = payload
        if acknowledged > link.acknowledged:
            if not link.acknowledge_up_to(acknowledged):
                self._roll_back(link.peer)
                return None
            if link.waiting:
                link.resend_at_s = now_s + self._timing.resend_s
            self.fresh = True
            self.dues.progressed.add(link.peer)
            if self.dues.tick_at_s is None:
                self.dues.tick_soon(now_s)
        for item, step in settled:
            self.guardian.settled(link.peer, item, step)
        if number == link.received + 1 and not self.silent:
            self.fresh = True
            return _new(Arrival, (link.peer, message, value))
        return self._unusual(link, payload, now_s)

    def _unusual(self, link: Link, payload: Payload, now_s: float) -> Arrival | None:
        """Whatever is not the next message."""
        number = payload.number
        if payload.flags & links.CONTROL:
            self._control(link, payload, now_s)
        elif self.silent:
            link.passed_over = True  # it is asked for once numbers are compared
        elif number > link.received and self.closed:
            return Arrival(link.peer, payload.message, payload.value)
        elif number <= link.received:
            if link.repeats(number, payload.message, payload.value) is False:
                self._fault("conflict", link.peer)
                self.hello(link.peer, wants_answer=False)
            else:
                self._frame(link.peer, link.control(0))
        elif link.gap_after != link.received:  # once for all frames behind the missing one
            link.gap_after = link.received
            self._fault("gap", link.peer)
            self._frame(link.peer, link.control(links.RESEND))
        return None

    def took(self, arrival: Arrival, now_s: float) -> None:
        """The message is recorded: count it and owe its acknowledgement."""
        peer, message, value = arrival
        self.links[peer].took(message, value)
        if peer not in self.dues.since_s:
            self.dues.owe(peer, now_s)

    def _control(self, link: Link, payload: Payload, now_s: float) -> None:
        if payload.hello:
            self._compare(link, payload.hello, now_s)
        if payload.flags & links.RESEND:
            self.send_again(link, now_s)
        if payload.flags & links.POKE:
            self.dues.take_news(self.links, now_s)
            link.settled.update(self.guardian.settled_for(link.peer))
            self._frame(link.peer, link.control(0))
            link.settled.clear()

    def _compare(self, link: Link, packed: object, now_s: float) -> None:
        try:
            theirs = Hello.unpacked(packed)
        except CodecError:
            self._fault("malformed", link.peer)
            return
        verdict = link.compare(theirs)
        if verdict is Verdict.I_WAS_ROLLED_BACK:
            self._roll_back(link.peer)
            return
        self.expected_hellos.discard(link.peer)
        self.fresh |= theirs.received > link.acknowledged or theirs.sent > link.received
        link.passed_over |= self.silent and theirs.sent > link.received
        forgot = verdict is Verdict.THEY_WERE_ROLLED_BACK
        ask_again = forgot and not link.doubted
        link.doubted = forgot
        if theirs.wants_answer or ask_again:
            self.hello(link.peer, wants_answer=ask_again)
        if forgot and not ask_again:
            self._fault(verdict.value, link.peer)
        elif not forgot:
            link.acknowledge_up_to(theirs.received)
            self.dues.progressed.add(link.peer)
            self.dues.tick_soon(now_s)
            if link.waiting:
                self.send_again(link, now_s)

    def _roll_back(self, peer: Peer) -> None:
        """The peer proves that we sent or acknowledged more than we remember: tell it what we do, and stop."""
        self.hello(peer, wants_answer=False)
        self.rolled_back = True
        self._fault("rolled_back", peer)
