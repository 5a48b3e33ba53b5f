"""Authenticated hostile frames: sealed with the keys of a user of the run, and made to break whoever opens them.

A run is stopped in the middle; hundreds of payloads are put to one host, as frames from one user. They are mutations of
payloads that crossed the wire before (bits, lengths, pieces of others, fields of another kind), and made up by the
grammar of payloads, messages and values. Whatever they are: no exception, no more than `BYTES_MAX` of ledger for each,
no more than `FRAMES_MAX` frames in answer to each. Of those that claim nothing (`Claims.NONE`) nothing at all may
come: the run goes on to its end, and is judged.
"""

from __future__ import annotations

import struct
import traceback
from collections import Counter
from dataclasses import replace
from enum import Enum
from random import Random
from typing import Any, Final

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import Value
from p2pdp.crypto.vouchers import DIGEST_BYTES, START, TAG_BYTES, VOUCHER_BYTES, digest_after, pack_numbers
from p2pdp.ledger.records import digest_of
from p2pdp.peer import payloads
from p2pdp.peer.link import Hello
from p2pdp.peer.payloads import DATA_HEAD, HEAD, VOUCHER_AT, Piece
from p2pdp.sim.faults import NO_FAULTS
from p2pdp.sim.process import Process
from p2pdp.wire.codec import pack
from p2pdp.wire.frames import BOXED, FRAME_HEADER_BYTES, encode_frame
from p2pdp.wire.padding import FrameTooLarge
from tests.campaigns.judging import judge_world
from tests.campaigns.oracle import Violation
from tests.campaigns.running import Campaign, Judged
from tests.campaigns.schedules import Schedule, calm
from tests.campaigns.specs import covered, prepared, specs_of
from tests.campaigns.worlds import LyingWorld

FRAMES: Final = 150  # in one case
BYTES_MAX: Final = 150_000  # of ledger for one frame: a frame holds less than half of that
FRAMES_MAX: Final = 300  # that answer one frame: what is in flight is sent again at once, up to 256 messages
VICTIMS: Final = ("user", "bootstrap", "curator")
_MESSAGES: Final = bytes([payloads.DATA]), bytes([payloads.DATA | payloads.PIECE])
_NO_TAG: Final = bytes(TAG_BYTES)
_COUNTS: Final = (0, 1, 2, 3, 5, 127, 128, 255, 256, 65_535, 2**31 - 1, 2**31, 2**32 - 1)  # of messages on a link
_NUMBERS: Final = (0, 1, 2, 3, 5, 127, 128, 255, 256, 65_535, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**64 - 1)


class Claims(Enum):
    """What frames may say that somebody could believe."""

    NONE = "neither a message that is the next one, nor a hello, nor an acknowledgement"
    MESSAGES = "messages with the next number"
    ALL = "anything"


class HostileWorld(LyingWorld):
    """Puts hostile frames from one user to a victim at one event, then goes on or stops."""

    def __init__(self, text: str, seed: int, victim: Peer, sender: Peer, at: int, claims: Claims) -> None:
        super().__init__(text, seed, NO_FAULTS, {})
        self._dice = Random(f"hostile {seed}")  # noqa: S311 - what is thrown is no secret
        self._victim, self._sender, self._at, self._claims = victim, sender, at, claims
        self._seen: list[bytes] = [HEAD.pack(payloads.CONTROL, 0, 0, _NO_TAG) + pack([])]
        self.wrong: list[Violation] = []
        self.put = 0
        self.over = False
        self._part = b""  # what was sent last as a piece

    def _transmit(self, sender: Peer, receiver: Peer, frame: bytes) -> None:
        if frame[1] == 1 and len(self._seen) < 400:
            self._seen.append(self.channels(sender, receiver).open(frame[FRAME_HEADER_BYTES:]))
        super()._transmit(sender, receiver, frame)

    def _happen(self, kind: int, process: Process, content: Any) -> None:
        if not self.over:
            super()._happen(kind, process, content)
        victim = self.processes[self._victim]
        if self.put == 0 and self.events >= self._at and victim.host is not None and self.oracle.begun:
            self._attack(victim)

    def _finished(self) -> bool:
        return self.over or super()._finished()

    def _attack(self, victim: Process) -> None:
        channel = self._credentials_of(self._sender).channel(self._victim)
        entropy = self.processes[self._sender].entropy(self._seed + 1)
        for _ in range(FRAMES):
            payload = self._payload(victim)
            self.put += 1
            try:
                frame = encode_frame(BOXED, self._sender, channel.seal(payload, entropy.nonce()))
            except FrameTooLarge:
                continue
            try:
                assert victim.host is not None
                effects = victim.host.frame(frame, self.now_s)
            except Exception as error:  # noqa: BLE001 - that there is none is what is tested
                last = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{type(error).__name__} in {last.filename.rpartition('p2pdp/')[2]}:{last.lineno}"
                self.wrong.append(Violation("exception", f"{what}, payload {payload.hex()[:400]}"))
                self.over = True
                return
            written = sum(len(data) for _, data in effects.writes)
            if written > BYTES_MAX or len(effects.frames) > FRAMES_MAX:
                self.wrong.append(Violation("unbounded", f"{written} bytes and {len(effects.frames)} frames for one"))
            self._carry_out(victim, effects)
        self.over = self._claims is not Claims.NONE  # what claims may have done is judged by other campaigns

    # What is sent

    def _payload(self, victim: Process) -> bytes:
        payload = self._grammar() if self._dice.random() < 0.6 else self._mutated()
        if self._claims is Claims.ALL:
            return payload
        if self._claims is Claims.MESSAGES and payload[:1] == bytes([payloads.DATA]):
            return payload[:VOUCHER_AT] + bytes(8) + payload[VOUCHER_AT + 8 :]
        return self._disarmed(payload, victim)

    def _disarmed(self, payload: bytes, victim: Process) -> bytes:
        """Take every claim out of a payload: hellos, the next number, and acknowledgements."""
        assert victim.host is not None
        link = victim.host._peers.link(self._sender)
        if payload[:1] in _MESSAGES and len(payload) >= DATA_HEAD.size:
            flags, number, _, tag, length = DATA_HEAD.unpack_from(payload)
            number = number if number != link.received + 1 else number + 1
            return DATA_HEAD.pack(flags, number, link.acknowledged, tag, length) + payload[DATA_HEAD.size :]
        head = HEAD.pack(payload[0] if payload else 0, 0, link.acknowledged, self._tag(0, link.acknowledged))
        pieced = bool(payload) and payload[0] & payloads.PIECE
        return head + (payload[HEAD.size :] if pieced else pack(self._dice.choice(([], {}, 1, [[]]))))

    def _mutated(self) -> bytes:
        dice, data = self._dice, bytearray(self._dice.choice(self._seen))
        for _ in range(dice.choice((1, 1, 2, 8))):
            way = dice.randrange(6)
            at = dice.randrange(len(data) + 1)
            if way == 0 and data:
                data[at % len(data)] ^= 1 << dice.randrange(8)
            elif way == 1:
                del data[at:]
            elif way == 2:
                data[at:at] = dice.randbytes(dice.choice((1, 4, 40)))
            elif way == 3:
                other = dice.choice(self._seen)
                data[at:] = other[dice.randrange(len(other) + 1) :]
            elif way == 4 and len(data) >= 9:
                struct.pack_into(">I", data, dice.choice((1, 5)), dice.choice(_COUNTS))
            else:
                data += data[-dice.randrange(1, 20) :]
        return bytes(data)

    def _grammar(self) -> bytes:
        dice = self._dice
        if dice.random() < 0.15:
            return self._piece()
        if dice.random() < 0.25:
            flags = payloads.CONTROL | dice.choice((0, payloads.RESEND, payloads.POKE, payloads.RESEND | payloads.POKE))
            hello = [self._item(0) for _ in range(dice.choice((0, 2, 3, 3, 4)))]
            if len(hello) == 3 and dice.random() < 0.7:
                counts = [dice.choice(_COUNTS) for _ in range(3)]
                vouchers = [dice.randbytes(VOUCHER_BYTES) for _ in range(2)]
                said = Hello(counts[0], bytes(16), counts[1], dice.randbytes(16), counts[2], dice.randbytes(8), b"")
                hello = replace(said, voucher=vouchers[0], acknowledgement=vouchers[1]).packed()
                hello[0] = hello[0][: dice.choice((len(hello[0]), len(hello[0]), 75))]
            acknowledged = dice.choice(_COUNTS)
            return HEAD.pack(flags, 0, acknowledged, self._tag(0, acknowledged)) + pack(hello)
        link = self.processes[self._victim].host
        number = link._peers.link(self._sender).received + 1 if link is not None and dice.random() < 0.7 else 1
        message, value = self._message()
        acknowledged = dice.choice((0, 0, 0, dice.choice(_COUNTS)))
        tag = self._tag(number, acknowledged)
        return DATA_HEAD.pack(payloads.DATA, number, acknowledged, tag, len(message)) + message + value

    def _piece(self) -> bytes:
        """A piece of a value, a question for one, or a message whose value came in pieces."""
        dice, link = self._dice, self.processes[self._victim].host
        number = link._peers.link(self._sender).received + 1 if link is not None and dice.random() < 0.7 else 1
        acknowledged, data = dice.choice((0, dice.choice(_COUNTS))), dice.randbytes(dice.choice((0, 1, 30)))
        if dice.random() < 0.3:
            message, of = self._message()[0], dice.choice((len(data), 30, *_COUNTS))
            digest = dice.randbytes(DIGEST_BYTES)
            if link is not None and dice.random() < 0.7:  # what was sent last is all of it
                of, before = len(self._part), link._peers.link(self._sender).received_digest
                digest = digest_after(before, message, digest_of(self._part))
            head = DATA_HEAD.pack(payloads.DATA | payloads.PIECE, number, acknowledged, _NO_TAG, len(message))
            return head + message + struct.pack(">Q", of) + digest
        self._part = data
        flags = payloads.CONTROL | payloads.PIECE | dice.choice((0, 0, 0, payloads.RESEND, payloads.POKE))
        place = Piece(number, dice.choice((0, 0, *_COUNTS)), dice.choice((len(data), 30, *_COUNTS)))
        return HEAD.pack(flags, 0, acknowledged, self._tag(0, acknowledged)) + place.packed() + data

    def _tag(self, number: int, acknowledged: int) -> bytes:
        """A tag of the sender's own key over what is said, where it is control, or over something else."""
        if self._dice.random() < 0.3:
            return self._dice.choice((_NO_TAG, self._dice.randbytes(TAG_BYTES)))
        stamp = self._credentials_of(self._sender).stamp(self._victim)
        return stamp.tag(pack_numbers(number, acknowledged), START)

    def _message(self) -> tuple[bytes, bytes]:
        """A message of a known type, often with fields of its form, and a value of any."""
        dice = self._dice
        kind = dice.choice(list(self.run.protocol.messages))
        count = len(kind.fields.__annotations__)
        fields = [self._item(0) for _ in range(count)]
        if dice.random() < 0.6:
            fields = [dice.choice((0, 1, 2, 3, dice.choice(_NUMBERS[:14]))) for _ in range(count)]
        name: Any = kind.name if dice.random() < 0.9 else self._item(0)
        value = b""
        if dice.random() < (0.95 if kind.value in (Value.ALWAYS, Value.FILLER) else 0.2):
            value = dice.randbytes(16) + self._value()
        return pack([name, fields]), value

    def _value(self) -> bytes:
        dice = self._dice
        seen = dice.choice(self._seen)
        made = (
            b"\x01" + struct.pack(">q", dice.choice((0, -1, 2**62, 2**63 - 1, -(2**63)))),
            bytes([dice.randrange(12)]) + dice.randbytes(dice.choice((0, 1, 8, 9, 64))),
            bytes([dice.randrange(8)]) + struct.pack(">d", dice.choice((float("nan"), float("inf"), -0.0, 1e308))),
            seen[-dice.choice((9, 17, 40)) :],
            bytes([dice.randrange(12)]) + struct.pack(">I", dice.choice((0, 1, 2**31, 2**32 - 1))) + dice.randbytes(16),
        )
        return dice.choice(made)

    def _item(self, depth: int) -> Any:
        dice = self._dice
        if depth < 4 and dice.random() < 0.3:
            return [self._item(depth + 1) for _ in range(dice.choice((0, 1, 2, 5)))]
        return dice.choice((dice.choice(_NUMBERS[:15]), -1, -2, 1.5, "", "token", b"", dice.randbytes(64), bytes(32)))


def _parts() -> list[str]:
    return [f"{protocol}:{victim}" for protocol in covered() for victim in VICTIMS]


def hostile(part: str, seed: int) -> Judged:
    protocol, _, role = part.partition(":")
    dice = Random(f"{part}/{seed}")  # noqa: S311 - what is thrown is no secret
    text = dice.choice(specs_of(protocol))
    users = prepared(text).run.n
    sender, user = dice.sample(range(users), 2)
    neighbours = prepared(text).run.neighbours(user)
    if neighbours is not None:
        sender = dice.choice(list(neighbours))
    victim = {"user": user, "bootstrap": BOOTSTRAP, "curator": CURATOR}[role]
    claims = (Claims.NONE, Claims.MESSAGES, Claims.NONE, Claims.MESSAGES, Claims.ALL)[seed % 5]
    events = sum(calm(text)[1].values())
    world = HostileWorld(text, seed, victim, sender, dice.randrange(1, events), claims)
    case = Schedule(protocol, seed, text, NO_FAULTS)
    found = judge_world(case, world, whole=claims is Claims.NONE)
    if claims is not Claims.NONE:
        found = [violation for violation in found if violation.kind == "exception"]
    return Judged(world.wrong + found, None, f"{part} seed {seed}", Counter(frames=world.put))


HOSTILE = Campaign("hostile", "sealed hostile frames into hosts of users, bootstrap and curator", _parts, hostile)
