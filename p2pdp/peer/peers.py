"""All links of one peer: from frames to messages in order and once, and back.

Beside messages, links compare numbers, ask for what is missing, and ask for a sign of life; a control frame that is
lost is asked for again.

Guarantee: whatever a stranger, a broken network or a restarted peer does to the links becomes a fault, a repeated
acknowledgement or a comparison of numbers, never an exception and never more memory than the bounds below. Nothing in
this file is recorded; the numbers are those of the ledger.

A peer that is shown its own voucher for more than it remembers stops for good. One that is told so without a voucher
takes nothing of that frame, notes the fault `unproven_rollback`, and asks for proof, once on each link. Until the
answer, or for `rejoin_s`, it sends no message on that link, since it might be a second value for what was sent before;
a restart waits for the answer as it waits for those of others. Then it goes on, and what is claimed without proof is
counted and not heeded any more: an honest peer that took a message has the voucher on record, and a dishonest one need
not have told anything.
"""

from __future__ import annotations

from typing import Final

from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.step import Fault, Message
from p2pdp.crypto.channel import Channel, ChannelError
from p2pdp.crypto.roster import RosterError
from p2pdp.crypto.vouchers import received_in
from p2pdp.peer import payloads
from p2pdp.peer.acknowledgements import Acknowledgements, SentMessage
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.effects import Entropy, Timing
from p2pdp.peer.limits import LARGE_MAX, QUESTIONS, REPEATS, RESENDS, TOO_MANY, Limits, Rate
from p2pdp.peer.link import SETTLED, Hello, Link, Verdict
from p2pdp.peer.payloads import Arrival, Payload, Piece, parse_payload
from p2pdp.peer.pieces import ALL, NO_SHELF, Shelf
from p2pdp.peer.tap import Tap
from p2pdp.wire.codec import CodecError
from p2pdp.wire.frames import BOXED, BOXED_HEADER, BOXED_START, FRAME_HEADER_BYTES, encode_frame
from p2pdp.wire.padding import FRAME_BYTES_MAX

_new: Final = tuple.__new__  # see `acknowledgements.py`
BURST_MAX = 256  # messages sent again at once on one link
QUESTION_BYTES: Final = 8  # as few as never come twice: a hello fits into the smallest frame


class Peers:
    def __init__(self, credentials: Credentials, entropy: Entropy, timing: Timing) -> None:
        self._credentials = credentials
        self._entropy = entropy
        self._doubt_s = timing.rejoin_s
        self.tap: Tap | None = None  # sees what each authentic frame says
        self.shelf: Shelf = NO_SHELF
        self.frame_header = encode_frame(BOXED, credentials.me, b"")
        self.channels: dict[Peer, Channel] = {}
        self.links: dict[Peer, Link] = {}
        self.ways: dict[Peer, tuple[Link, Channel]] = {}  # of users with whom frames were exchanged
        self.frames: list[tuple[Peer, bytes]] = []
        self.proved: Peer | None = None  # whose the last frame was, if it was authentic
        self.fresh = False  # whether it told us something that no older frame of that peer can have told
        self.faults: list[Fault] = []
        self.messages_sent = 0
        self.content = b""  # of the last frame, if it was authentic
        self.rolled_back = False
        self.closed = False  # the ledger is: messages are looked at, in any order, and none is counted any more
        self.silent = False  # while rejoining: compare numbers, send and take nothing
        self.expected_hellos: set[Peer] = set()
        self.limits = Limits(credentials.me)
        self.acknowledgements = Acknowledgements(timing.tick_s, timing.resend_s, timing.resend_max_s)

    def link(self, peer: Peer) -> Link:
        found = self.links.get(peer)
        if found is None:
            found = self.links[peer] = Link(peer, self._credentials.stamp(peer), self.shelf, self._credentials.context)
        return found

    def frame(self, peer: Peer, payload: bytes, value: bytes | memoryview = b"") -> None:
        """Send a payload, behind which a `value` part may come that is not copied before."""
        try:
            way = self.ways.get(peer)
            channel = self._warm(peer) if way is None else way[1]
            frame = channel.sealed(self.frame_header, self._entropy.nonce(), payload, value)
        except RosterError:
            self.fault("bad_roster_entry", peer)
        except ChannelError as error:
            self.fault(error.kind, peer)
        else:
            self.frames.append((peer, frame))

    def send(self, peer: Peer, message: bytes, value: bytes, now_s: float, digest: bytes | None = None) -> None:
        """Send a message; the `digest` of its value part may be known."""
        link = self.links.get(peer) or self.link(peer)
        item = link.push(message, value, digest)
        if link.refused:
            return
        self.acknowledgements.sent(link, now_s)
        doubted = link.doubted_until_s not in (None, SETTLED)
        if self.silent or self._in_doubt(link, now_s):
            return
        self.acknowledgements.went_along(peer)
        if doubted:  # what was held back comes first
            self.send_again(link, now_s)
        else:
            self._frames_of(link, item, 0)

    def _frames_of(self, link: Link, item: SentMessage, there: int | None) -> None:
        for payload, value in link.payloads(item, there):
            self.frame(link.peer, payload, value)

    def send_again(self, link: Link, now_s: float, asked: Piece | None = None) -> None:
        """Send what is in flight again; of a value part in pieces only what is `asked` for."""
        if self.silent or link.refused or not link.in_flight:
            return
        if self._in_doubt(link, now_s):
            self.hello(link.peer, ask=True)
        else:
            for item in list(link.in_flight)[:BURST_MAX]:
                self._frames_of(link, item, None if asked is None else asked.at if asked.number == item.number else 0)
        self.acknowledgements.sent_again(link, now_s)

    def resume(self, now_s: float) -> None:
        """Go on from what peers have acknowledged: numbers are compared and the machine is where it was."""
        self.silent = False
        for peer in self._credentials.peers():
            link = self.link(peer)
            self.send_again(link, now_s)
            if link.passed_over and not link.refused:  # the peer would send it again only after a wait
                self.frame(peer, link.missing())

    def ask(self, peer: Peer) -> None:
        """Begin to compare numbers anew, as on a new connection."""
        self.link(peer).asked = None
        self.hello(peer, ask=True)

    def ask_all(self) -> None:
        for peer in self._credentials.peers():
            self.ask(peer)

    def ask_again(self) -> None:
        """Ask everybody whose answer is missing once more: question or answer may have got lost."""
        for peer in sorted(self.expected_hellos):
            self.hello(peer, ask=True)

    def hello(self, peer: Peer, *, ask: bool, answer: bytes = b"") -> None:
        """Send what we remember; a question that has no answer yet stays the same."""
        link = self.link(peer)
        if link.refused:
            return
        if ask and link.asked is None:
            link.ask(self._entropy.salt()[:QUESTION_BYTES])
        question = link.asked.question if ask and link.asked is not None else b""
        self.frame(peer, link.control(0, link.hello(question, answer)))

    def poke(self, peer: Peer) -> None:
        if not self.link(peer).refused:
            self.frame(peer, self.link(peer).control(payloads.POKE))

    def refuse(self, peer: Peer) -> None:
        """Take nothing from a peer that is out, and send nothing to it any more."""
        link = self.link(peer)
        self.acknowledgements.refuse(link)
        link.drop()
        self.ways.pop(peer, None)

    def apply(self, sender: Peer, message: Message, now_s: float) -> None:
        """Act on what links have to know of a message before the machine does: who is out, and who lives after all."""
        if sender == BOOTSTRAP and message.type == messages.OUT:
            self._exclude(messages.Exclusion(*message.fields).peer)
        elif sender == BOOTSTRAP and message.type == messages.SPARED:
            self._hurry(messages.OnePeer(*message.fields).peer, now_s)

    def apply_after_close(self, sender: Peer, message: Message, now_s: float) -> None:
        """Act on a message when nothing is recorded any more: send the head that bootstrap misses once more."""
        self.apply(sender, message, now_s)
        if sender == BOOTSTRAP and message.type == messages.PROBE:
            self._hurry(CURATOR, now_s)

    def _hurry(self, peer: Peer, now_s: float) -> None:
        """Send again what somebody has not got who is known to be there, and begin with short waits."""
        link = self.link(peer)
        self.acknowledgements.hurry(link)
        self.send_again(link, now_s)

    def _exclude(self, peer: Peer) -> None:
        """Let nothing pass between a user that is out and anybody but bootstrap, which has told it so."""
        credentials = self._credentials
        if peer == credentials.me:
            for other in credentials.peers():
                if other != BOOTSTRAP:
                    self.refuse(other)
        elif is_user(peer) and credentials.knows(peer):
            self.refuse(peer)

    def flush(self) -> None:
        """Send all acknowledgements."""
        self._acknowledge(self.acknowledgements.due_at_the_end())

    def _acknowledge(self, peers: list[Peer]) -> None:
        for peer in peers:
            link = self.links[peer]
            if not link.refused:
                self.frame(peer, link.control(0))

    def tick(self, now_s: float) -> None:
        self._acknowledge(self.acknowledgements.due(now_s))
        for space in self.acknowledgements.overdue(now_s):
            self.send_again(self.links[space.peer], now_s)

    # Receiving

    def open(self, data: bytes) -> Link | None:
        """Open a frame; return its link, with `content` set, if it is authentic and from a peer that is heard."""
        self.proved, self.fresh = None, False
        if self.rolled_back:
            return None
        kind: str = "malformed"
        if FRAME_HEADER_BYTES <= len(data) <= FRAME_BYTES_MAX:
            start, sender = BOXED_HEADER.unpack_from(data)
            if start == BOXED_START and sender >= CURATOR:
                try:
                    way = self.ways.get(sender)
                    if way is not None or self._credentials.knows(sender):
                        channel = self._warm(sender) if way is None else way[1]
                        self.content = channel.open(data, FRAME_HEADER_BYTES)
                        self.proved = sender  # until here it was a claim
                        if self.tap is not None:
                            self.tap(sender, self.content)
                        return self.links.get(sender) or self.link(sender)
                    kind = "unknown_peer"
                except ChannelError as error:
                    kind = error.kind
                except RosterError:
                    kind = "bad_roster_entry"
        self.fault(kind, None)
        return None

    def read(self, link: Link, now_s: float) -> Arrival | None:
        """Read what was opened; return the message if it is the next one of its link."""
        try:
            payload = parse_payload(self.content)
        except CodecError:
            self.fault("malformed", link.peer)
            return None
        link.last_heard_s = now_s
        if link.refused:
            self.fault("excluded_peer", link.peer)
            return None
        return self._payload(link, payload, now_s)

    def _warm(self, peer: Peer) -> Channel:
        channel, link = self.channel(peer), self.link(peer)
        if peer >= 0 and not link.refused and link.doubted_until_s in (None, SETTLED):
            self.ways[peer] = link, channel
        return channel

    def channel(self, peer: Peer) -> Channel:
        channel = self.channels.get(peer)
        if channel is None:
            channel = self.channels[peer] = self._credentials.channel(peer)
        return channel

    def fault(self, kind: str, peer: Peer | None) -> None:
        self.faults.append(Fault(kind, peer))

    def _payload(self, link: Link, payload: Payload, now_s: float) -> Arrival | None:
        flags, number, acknowledged, voucher, message, value, hello, piece = payload
        if acknowledged > link.sent:
            if not hello:
                self._doubt(link, now_s)
            elif self._grants(link, QUESTIONS, now_s):
                self._compare(link, hello, now_s)
            return None
        self.fresh = acknowledged > link.acknowledged
        if flags & payloads.CONTROL and acknowledged >= link.acknowledged:
            link.acknowledgement = voucher
            self.acknowledgements.learn(link, acknowledged, now_s)
        elif self.closed:
            self.acknowledgements.learn(link, acknowledged, now_s)
        if number == link.received + 1 and not self.silent:
            if piece is not None and not (value := link.whole(piece, message)):  # no news: it may come again and again
                if not self.closed and self._grants(link, REPEATS, now_s):
                    self.frame(link.peer, link.missing())
                return None
            self.fresh = True
            if not self.limits.takes(link.peer, len(message) + len(value), now_s):
                self.fault(TOO_MANY, link.peer)
                return None
            return _new(Arrival, (link.peer, message, value, voucher))
        return self._out_of_order(link, payload, now_s)

    def took(self, arrival: Arrival, now_s: float) -> bytes:
        """Count a message that is recorded, owe its acknowledgement, and return the digest of its value part."""
        peer, message, value, voucher = arrival
        link = self.links[peer]
        self.acknowledgements.learn(link, received_in(voucher), now_s)  # the voucher proves it, and it is recorded
        digest = link.took(message, value)
        link.voucher = voucher
        self.acknowledgements.owe(peer, now_s)
        return digest

    def roll_back(self, peer: Peer, asked: bytes = b"") -> None:
        """Stop, and tell the peer what we remember: it has our voucher for more than that, or for something else."""
        self.hello(peer, ask=False, answer=asked)
        self.rolled_back = True
        self.fault("rolled_back", peer)

    def _doubt(self, link: Link, now_s: float) -> None:
        """Ask for proof that we forgot something, once on a link, and hold back our messages until the answer."""
        self.fault(Verdict.UNPROVEN.value, link.peer)
        if link.doubted_until_s is not None:
            return
        link.doubted_until_s = now_s + self._doubt_s
        self.ways.pop(link.peer, None)
        if self.silent:
            self.expected_hellos.add(link.peer)
        self.ask(link.peer)

    def _in_doubt(self, link: Link, now_s: float) -> bool:
        """Return whether a proof that we forgot something may still come."""
        until_s = link.doubted_until_s
        if until_s is None or now_s < until_s:
            return until_s is not None
        link.doubted_until_s = SETTLED
        return False

    # What is not the next message

    def _out_of_order(self, link: Link, payload: Payload, now_s: float) -> Arrival | None:
        """Act on control, and on messages that are not the next; return one that is to be looked at all the same."""
        number = payload.number
        if payload.flags & payloads.CONTROL:
            self._control(link, payload, now_s)
        elif self.silent:
            link.passed_over = True  # it is asked for once numbers are compared
        elif number > link.received and self.closed:
            return Arrival(link.peer, payload.message, payload.value)
        elif number <= link.received:
            if payload.piece is None and link.repeats(number, payload.message, payload.value) is False:
                self.fault("conflict", link.peer)
                if self._grants(link, QUESTIONS, now_s):
                    self.hello(link.peer, ask=False)
            elif self._grants(link, REPEATS, now_s):
                self.frame(link.peer, link.control(0))
        elif link.asks_again(now_s, self.acknowledgements.resend_s):
            self.fault("gap", link.peer)
            self.frame(link.peer, link.missing())
        return None

    def _grants(self, link: Link, rate: Rate, now_s: float) -> bool:
        limits, amount = self.limits, 1.0 + min(LARGE_MAX, link.large_bytes / 2**20)
        resends = rate is RESENDS
        granted = limits.grants(link.peer, rate, now_s, amount) if resends else limits.answers(link.peer, rate, now_s)
        if not granted:
            self.fault(TOO_MANY, link.peer)
        return granted

    def _control(self, link: Link, payload: Payload, now_s: float) -> None:
        resend = payload.flags & payloads.RESEND
        if payload.piece is not None and not resend:
            link.passed_over |= self.silent
            if not (self.silent or self.closed):
                link.came(payload.piece, payload.value)  # no news either: what is kept of it may get lost
            return
        if payload.hello and self._grants(link, QUESTIONS, now_s):
            self._compare(link, payload.hello, now_s)
        if resend and self._grants(link, RESENDS, now_s):
            self.send_again(link, now_s, payload.piece or ALL)
        if payload.flags & payloads.POKE and self._grants(link, QUESTIONS, now_s):
            self.frame(link.peer, link.control(0))

    def _compare(self, link: Link, packed: object, now_s: float) -> None:
        try:
            theirs = Hello.unpacked(packed)
        except CodecError:
            self.fault("malformed", link.peer)
            return
        verdict, answers = link.compare(theirs), link.answers(theirs)
        if verdict is Verdict.I_WAS_ROLLED_BACK:
            self.roll_back(link.peer, theirs.question)
            return
        forgot = verdict is Verdict.THEY_WERE_ROLLED_BACK
        link.passed_over |= self.silent and theirs.sent > link.received
        if answers:
            link.asked, self.fresh = None, True
            link.settle()
            self.expected_hellos.discard(link.peer)
        if theirs.question or (forgot and not answers and link.asked is None):
            anew = forgot or not theirs.answer or link.asked is not None  # else copies would ask each other for ever
            self.hello(link.peer, ask=anew and not answers, answer=theirs.question)
        if forgot and answers:
            self.fault(verdict.value, link.peer)
        elif not forgot:
            self._judged(link, verdict, theirs.received, now_s)
            if answers and link.in_flight:
                self.send_again(link, now_s)

    def _judged(self, link: Link, verdict: Verdict, received: int, now_s: float) -> None:
        if verdict is Verdict.AGREED:
            self.acknowledgements.learn(link, received, now_s)
        else:
            self.fault(verdict.value, link.peer)
