"""The lies: each kind as a behaviour that composes with the others, and what it may and must lead to.

`KINDS` is the table of expectations. For every kind honest users must be left unharmed: none stops, fails or is put
out, nothing is drawn again, nobody contributes more often than the plan says, and the run ends or goes on by itself.
Besides, `caught` says how the evidence must show that somebody lied, where it must:

* `nothing`: the lie leaves no trace that anybody could read, or does no harm that could be told from an accident;
* `evidence`: verification or a replay of the ledgers finds it, if the lie was told at all and the run ended;
* `out`: the liar is put out, or the run is blocked for it by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import TOKEN, TOTAL, Value
from p2pdp.core.step import Message, Send
from p2pdp.crypto.vouchers import NO_VOUCHER, NUMBER_BYTES, START, TAG_BYTES
from p2pdp.peer import payloads
from p2pdp.peer.payloads import DATA_HEAD, DATA_HEAD_BYTES, VOUCHER_AT, VOUCHER_END
from p2pdp.wire.codec import pack
from tests.campaigns.lying import Behaviour, Liar

FAR: Final = 1 << 30


def _worth(liar: Liar, send: Send) -> bool:
    """Whether a message carries a value to somebody else."""
    return send.to != liar.me and send.message.value is not None


def _once(liar: Liar, name: str) -> bool:
    """Return whether this is the first time, and remember it."""
    before, liar.memory[name] = liar.memory.get(name, False), True
    return not before


def _is_item(liar: Liar, send: Send) -> bool:
    return send.custody is not None and send.to != liar.me


# Links: acknowledgements, comparisons of numbers, numbers


class _Bomb(Behaviour):
    """Acknowledges what was never sent."""

    victim: Peer = 0

    def acts(self, liar: Liar) -> None:
        victim = next((user for user in liar.users if user != liar.me), BOOTSTRAP) if self.victim == 0 else self.victim
        if liar.link(BOOTSTRAP).received or is_user(victim):
            liar.raw(victim, liar.control(victim, 0, FAR))


class AckBomb(_Bomb):
    """Tells a user that it acknowledges what was never sent."""


class AckBombBootstrap(_Bomb):
    """Tells bootstrap so."""

    victim = BOOTSTRAP


class AckBombCurator(_Bomb):
    """Tells the curator so."""

    victim = CURATOR


def _voucher(behaviour: Behaviour, liar: Liar, peer: Peer) -> bytes:
    """Return what a liar can show as the peer's voucher: the last true one, an older one, none, or a made up one."""
    old = liar.memory.setdefault(("voucher", peer), liar.link(peer).voucher)
    made_up = FAR.to_bytes(NUMBER_BYTES, "big") + behaviour.dice.randbytes(TAG_BYTES)
    return behaviour.dice.choice((liar.link(peer).voucher, old, NO_VOUCHER, made_up))


class FalseHello(Behaviour):
    """Says in a hello that it received another history than it was sent: as many messages, with another digest."""

    def acts(self, liar: Liar) -> None:
        for peer in self.dice.sample(liar.knows_peers, 1):
            link = liar.link(peer)
            if link.received:
                hello = replace(link.hello(), received_digest=bytes(16), voucher=_voucher(self, liar, peer))
                liar.raw(peer, link.control(0, hello))


class ProudHello(Behaviour):
    """Says in a hello that it received more than there was, or that more of its own was acknowledged."""

    def acts(self, liar: Liar) -> None:
        for peer in self.dice.sample(liar.knows_peers, 1):
            link = liar.link(peer)
            field = self.dice.choice(("received", "acknowledged"))
            shown = {"voucher": _voucher(self, liar, peer), "acknowledgement": _voucher(self, liar, peer)}
            liar.raw(peer, link.control(0, replace(link.hello(), **{field: FAR}, **shown)))


class Forgetful(Behaviour):
    """Answers hellos as if it had forgotten all: a disk that was rolled back, or that says so."""

    def acts(self, liar: Liar) -> None:
        for peer in self.dice.sample(liar.knows_peers, 1):
            link = liar.link(peer)
            hello = replace(link.hello(), received=0, sent=0, received_digest=bytes(16), sent_digest=bytes(16))
            liar.raw(peer, link.control(0, hello))


class Conflict(Behaviour):
    """Sends a number again with another content."""

    def payload(self, liar: Liar, to: Peer, payload: bytes) -> Iterable[bytes]:
        if payload[0] != payloads.DATA or self.dice.random() < 0.5:
            return (payload,)
        *_, length = DATA_HEAD.unpack_from(payload)
        if len(payload) == DATA_HEAD.size + length:
            return (payload,)
        other = bytearray(payload)
        other[-1] ^= 1
        return (payload, bytes(other))


class Skips(Behaviour):
    """Sends messages with numbers that are far ahead, which are never the next ones."""

    def payload(self, liar: Liar, to: Peer, payload: bytes) -> Iterable[bytes]:
        if payload[0] != payloads.DATA or self.dice.random() < 0.5:
            return (payload,)
        flags, number, acknowledged, _, length = DATA_HEAD.unpack_from(payload)
        head = liar.stamped(to, flags, number + 5, acknowledged, liar.link(to).sent_digest)
        return (payload, head + length.to_bytes(4, "big") + payload[DATA_HEAD_BYTES:])


class NoThanks(Behaviour):
    """Acknowledges nothing."""

    def payload(self, liar: Liar, to: Peer, payload: bytes) -> Iterable[bytes]:
        flags, number = payload[0], int.from_bytes(payload[1:VOUCHER_AT], "big")
        digest = START if number == 0 else liar.link(to).sent_digest_at(number) or START
        return (liar.stamped(to, flags, number, 0, digest) + payload[VOUCHER_END:],)


class Flood(Behaviour):
    """Asks a user to compare numbers, many times at once."""

    count = 30

    def acts(self, liar: Liar) -> None:
        victim = self.dice.choice(liar.knows_peers)
        link = liar.link(victim)
        for _ in range(self.count):
            liar.raw(victim, link.control(0, replace(link.hello(), question=self.dice.randbytes(8))))


class ResendFlood(Behaviour):
    """Has everybody send again what is in flight, and answer besides."""

    def acts(self, liar: Liar) -> None:
        for peer in liar.knows_peers:
            for _ in range(20):
                liar.raw(peer, liar.control(peer, payloads.RESEND | payloads.POKE, 0))


class Garbage(Behaviour):
    """Sends sealed bytes that are no payload."""

    def acts(self, liar: Liar) -> None:
        for peer in liar.knows_peers:
            liar.raw(peer, self.dice.randbytes(self.dice.randrange(1, 60)))


# Messages that are refused


class Huge(Behaviour):
    """Sends a value beyond all that a run may have."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if not _worth(liar, send) or type(send.message.value) is bytes:
            return (send,)
        value = send.message.value
        huge = 2**63 - 1 if type(value) is int else np.full(np.shape(value), 2**62 + 2**61)
        if type(value) is float:
            huge = 1e300
        elif getattr(value, "dtype", None) == np.float64:
            huge = np.full(value.shape, 1e300)
        elif type(value) is list:
            huge = [0] * 1000
        return (send._replace(message=send.message._replace(value=huge)),)


class WrongShape(Behaviour):
    """Sends a vector where a number belongs, or one of another length."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if not _worth(liar, send):
            return (send,)
        return (send._replace(message=send.message._replace(value=np.zeros(7, dtype=np.int64))),)


class LongType(Behaviour):
    """Sends a message of a type that nobody knows, with a long name."""

    def acts(self, liar: Liar) -> None:
        if _once(liar, "longtype"):
            for peer in liar.knows_peers:
                liar.send(peer, Message("x"), public=pack(["x" * 5000, []]))


class Unheard(Behaviour):
    """Sends a well formed message of a type that the protocol has not."""

    def acts(self, liar: Liar) -> None:
        if _once(liar, "unheard"):
            for peer in liar.knows_peers:
                liar.send(peer, Message("unheard", (1, 2)))


class WrongFields(Behaviour):
    """Sends each message with a field too many."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if send.to == liar.me or self.dice.random() < 0.7:
            return (send,)
        return (send._replace(message=send.message._replace(fields=(*send.message.fields, 5))),)


# Holding back


class Swallow(Behaviour):
    """Takes tokens and reports, acknowledges them, and passes none on."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if _is_item(liar, send):
            liar.memory["swallowed"] = True
            return ()
        return (send,)


class SwallowSettle(Swallow):
    """Swallows, and says of what it had from somebody who is out that it had nothing."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if send.message.type == messages.SEEN:
            return (send._replace(message=send.message._replace(fields=(send.message.fields[0], [], []))),)
        return super().sends(liar, send)


class Mute(Behaviour):
    """Says nothing by the protocol, but that it is ready and alive."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        return (send,) if send.message.type in (messages.READY, messages.ALIVE) or send.to == liar.me else ()


class Deaf(Behaviour):
    """Hears other users no more, after the first frames, and lives."""

    def hears(self, liar: Liar, sender: Peer, frame: bytes) -> bool:
        heard = liar.memory["heard"] = liar.memory.get("heard", 0) + 1
        return heard < liar.memory.setdefault("until", self.dice.randint(4, 40)) or sender < 0


class NeverReady(Behaviour):
    """Never says that it is ready."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        return () if send.message.type == messages.READY else (send,)


class Late(Behaviour):
    """Keeps each message with a value back for a third of the patience."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if not _worth(liar, send):
            return (send,)
        due_s = liar.now_s + liar.run.spec.run.patience_s / 3
        liar.memory.setdefault("late", []).append((due_s, send))
        return ()

    def acts(self, liar: Liar) -> None:
        late: list[tuple[float, Send]] = liar.memory.get("late", [])
        while late and late[0][0] <= liar.now_s:
            _, send = late.pop(0)
            liar.send(send.to, send.message, recorded=True)


class Reordered(Behaviour):
    """Sends each second message with a value before the one that came before it."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if not _worth(liar, send):
            return (send,)
        kept = liar.memory.pop("kept", None)
        if kept is None and self.dice.random() < 0.5:
            liar.memory["kept"] = send
            return ()
        return (send,) if kept is None else (send, kept)

    def acts(self, liar: Liar) -> None:
        kept = liar.memory.pop("kept", None)
        if kept is not None:
            liar.send(kept.to, kept.message, recorded=True)


class Early(Behaviour):
    """Says at once what belongs to the end, with values of nobody: totals, finished, masked values, heads."""

    def acts(self, liar: Liar) -> None:
        if liar.link(BOOTSTRAP).received and _once(liar, "early"):
            liar.send(CURATOR, Message(messages.FINISHED))
            for send in _plausible(liar, "user", "curator"):
                liar.send(CURATOR, send)


class Chatter(Behaviour):
    """Repeats each message with a value, as a new message."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        return (send, send) if _worth(liar, send) else (send,)


# False protocol messages


def _zero(liar: Liar) -> Any:
    shape = liar.run.plan.shape
    learns = getattr(liar.run.plan, "learns", False) or not liar.run.plan.starts
    return (np.zeros(shape) if shape else 0.0) if learns else (np.zeros(shape, dtype=np.int64) if shape else 0)


def _plausible(liar: Liar, sender: str, receiver: str) -> list[Message]:
    """Return one message of each type that goes this way: with the right form, and made up."""
    found = []
    for one in liar.run.protocol.messages:
        if not one.goes(sender, receiver):
            continue
        value = _zero(liar) if one.value in (Value.ALWAYS, Value.FILLER) else None
        fields = _FIELDS.get(one.name, tuple(1 for _ in one.fields.__annotations__))
        found.append(Message(one.name, fields, value))
    return found


_FIELDS: Final[dict[str, tuple[Any, ...]]] = {
    messages.OUT: (0, bytes(64)),
    messages.HEAD: (bytes(32),),
    messages.SEEN: (0, [[0, 0, 1]], [[0, 1]]),
    messages.RESOLVED: ([0], [[0, 1]]),
    messages.SKELETON: (0, 100),
    messages.SILENT: (0,),
    "survivors": ([], bytes(64)),
    "collected": ([],),
    "masked": ([0, 1],),
    "seeds": ([0, 1],),
    "activations": (0, 1, [[1, 0]]),
}


class ForgeOut(Behaviour):
    """Sends users what only bootstrap or the curator may say: who is out, what is lost, to begin, the result."""

    def acts(self, liar: Liar) -> None:
        if liar.link(BOOTSTRAP).received and _once(liar, "forgeout"):
            said = _plausible(liar, "bootstrap", "user") + _plausible(liar, "curator", "user")
            for peer in liar.users:
                for message in said:
                    liar.send(peer, message)


class ForgeRoles(Behaviour):
    """Sends bootstrap what only the curator may say, and the other way round."""

    def acts(self, liar: Liar) -> None:
        if liar.link(BOOTSTRAP).received and _once(liar, "forgeroles"):
            for message in _plausible(liar, "curator", "bootstrap"):
                liar.send(BOOTSTRAP, message)
            for message in _plausible(liar, "bootstrap", "curator"):
                liar.send(CURATOR, message)


class ForgeValues(Behaviour):
    """Sends users made up protocol messages of the right form, as from a user."""

    def acts(self, liar: Liar) -> None:
        if liar.link(BOOTSTRAP).received and _once(liar, "forgevalues"):
            for peer in liar.users:
                for message in _plausible(liar, "user", "user"):
                    liar.send(peer, message, recorded=True)


class Milk(Behaviour):
    """Sends one user tokens with rising steps, so that it contributes again and again; its ledger says so."""

    def acts(self, liar: Liar) -> None:
        plan = liar.run.plan
        victim, step = liar.users[0], liar.memory.get("milked", 0) + 1
        if liar.link(BOOTSTRAP).received and step < plan.steps:
            liar.memory["milked"] = step
            liar.send(victim, Message(TOKEN, (0, step), _zero(liar)), recorded=True)


class Double(Behaviour):
    """Passes each token to two users; its ledger says so."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        others = [user for user in liar.users if user != send.to]
        if not _is_item(liar, send) or not is_user(send.to) or not others:
            return (send,)
        liar.memory["doubled"] = True
        return (send, send._replace(to=self.dice.choice(others)))


class BadValue(Behaviour):
    """Adds far more than a value may be to what it passes on."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if not _worth(liar, send) or type(send.message.value) not in (int, float, np.ndarray):
            return (send,)
        value = send.message.value
        more = 1 << 40 if type(value) is int or getattr(value, "dtype", None) == np.int64 else 1024.0
        return (send._replace(message=send.message._replace(value=value + more)),)


class FalseTotal(Behaviour):
    """Hands the curator a total that nobody gave it, as soon as it may."""

    def acts(self, liar: Liar) -> None:
        plan = liar.run.plan
        if liar.link(BOOTSTRAP).received and _once(liar, "total"):
            liar.send(CURATOR, Message(TOTAL, (0, plan.steps + 1), _zero(liar)), recorded=True)


class Collude(Behaviour):
    """Passes items to its accomplice alone, with a value of its own choice."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        partner = liar.memory.get("partner")
        if not _is_item(liar, send) or not is_user(send.to) or partner not in liar.users or liar.on_a_ring:
            return (send,)
        liar.memory["colluded"] = liar.memory.get("colluded", False) or send.to != partner
        return (send._replace(to=partner),)


class FalseShares(Behaviour):
    """Gives its neighbours parts of another secret than its own, and the curator other keys."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if send.to == liar.me or send.message.type not in ("share", "seeds", "pair_key"):
            return (send,)
        value = send.message.value
        if type(value) is bytes:
            liar.memory["shares"] = True
            value = bytes((value[0] ^ 1,)) + value[1:]
        elif type(value) is list:
            liar.memory["shares"] = True
            value = [bytes((one[0] ^ 1,)) + one[1:] if type(one) is bytes else one for one in value]
        return (send._replace(message=send.message._replace(value=value)),)


# Exclusion and the end


class SilentFlood(Behaviour):
    """Tells bootstrap of everybody else's silence, again and again."""

    def acts(self, liar: Liar) -> None:
        for _ in range(20):
            for peer in (*liar.users, CURATOR):
                liar.send(BOOTSTRAP, Message(messages.SILENT, (peer,)))


class SeenLie(Behaviour):
    """Answers that it had what it had not, when somebody is put out."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        if send.message.type != messages.SEEN:
            return (send,)
        peer = send.message.fields[0]
        lies = (peer, [[0, 0, 1], [0, 0, 999]], [[0, 1], [0, 999]])
        return (send._replace(message=send.message._replace(fields=lies)),)


class SkeletonFlood(Behaviour):
    """Hands the curator pieces of a skeleton without end."""

    def acts(self, liar: Liar) -> None:
        if liar.link(BOOTSTRAP).received:
            for _ in range(5):
                liar.send(CURATOR, Message(messages.SKELETON, (0, 1 << 30), bytes(1000)))


class FalseSkeleton(Behaviour):
    """Hands the curator a skeleton that is none."""

    def acts(self, liar: Liar) -> None:
        if liar.link(BOOTSTRAP).received and _once(liar, "skeleton"):
            liar.send(CURATOR, Message(messages.SKELETON, (0, 64), self.dice.randbytes(64)))


class ForkedHead(Behaviour):
    """Hands in the head of another ledger than the one that it keeps."""

    def payload(self, liar: Liar, to: Peer, payload: bytes) -> Iterable[bytes]:
        at = payload.find(b"\xa4head")
        if to != CURATOR or payload[0] != payloads.DATA or at < 0:
            return (payload,)
        liar.memory["forked"] = True
        other = bytearray(payload)
        other[-1] ^= 1
        return (bytes(other),)


class NoHead(Behaviour):
    """Never hands in its head."""

    def payload(self, liar: Liar, to: Peer, payload: bytes) -> Iterable[bytes]:
        return () if to == CURATOR and payload[0] == payloads.DATA and b"\xa4head" in payload else (payload,)


class Probes(Behaviour):
    """Does not answer bootstrap's probes by name, and acknowledges them."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        return () if send.message.type == messages.ALIVE else (send,)


@dataclass(frozen=True)
class Kind:
    """A kind of lie: how it is told, in which runs, and how it must be caught. `told` names what it remembers then."""

    behaviour: type[Behaviour]
    caught: str = "nothing"
    only: tuple[str, ...] = ("",)  # beginnings of names of protocols
    needs_starts: bool = False  # only where items go round
    told: str | None = None
    liars: int = 1
    with_gone: bool = False  # somebody else has to be put out for it to come into play


_WALKS: Final = ("walk.",)
_ITEMS: Final = ("walk.", "shuffle.")

KINDS: Final[dict[str, Kind]] = {
    "ackbomb": Kind(AckBomb),
    "ackbomb_b": Kind(AckBombBootstrap),
    "ackbomb_c": Kind(AckBombCurator),
    "hello_false": Kind(FalseHello),
    "hello_proud": Kind(ProudHello),
    "forgetful": Kind(Forgetful),
    "conflict": Kind(Conflict),
    "skips": Kind(Skips),
    "nothanks": Kind(NoThanks),
    "flood": Kind(Flood),
    "resendflood": Kind(ResendFlood),
    "garbage": Kind(Garbage),
    "huge62": Kind(Huge),
    "wrongshape": Kind(WrongShape),
    "longtype": Kind(LongType),
    "unheard": Kind(Unheard),
    "wrongfields": Kind(WrongFields),
    "swallow": Kind(Swallow, "evidence", _ITEMS, told="swallowed"),
    "swallow_settle": Kind(SwallowSettle, "evidence", _ITEMS, told="swallowed", with_gone=True),
    "mute": Kind(Mute),
    "deaf": Kind(Deaf),
    "neverready": Kind(NeverReady, "out"),
    "late": Kind(Late),
    "reordered": Kind(Reordered),
    "early": Kind(Early),
    "chatter": Kind(Chatter),
    "forgeout": Kind(ForgeOut),
    "forgeroles": Kind(ForgeRoles),
    "forgevalues": Kind(ForgeValues),
    "milk": Kind(Milk, "evidence", _WALKS, told="milked"),
    "double": Kind(Double, "evidence", _ITEMS, told="doubled"),
    "badvalue": Kind(BadValue),
    "total": Kind(FalseTotal, "evidence", _WALKS, told="total"),
    "collude": Kind(Collude, "evidence", _ITEMS, told="colluded", liars=2),
    "falseshares": Kind(FalseShares, "nothing", ("pairwise.",), told="shares", with_gone=True),
    "silentflood": Kind(SilentFlood),
    "seenlie": Kind(SeenLie, with_gone=True),
    "skelflood": Kind(SkeletonFlood),
    "falseskeleton": Kind(FalseSkeleton),
    "forkedhead": Kind(ForkedHead, "evidence", told="forked"),
    "nohead": Kind(NoHead, "out"),
    "noprobes": Kind(Probes),
}


def kinds_for(protocol: str) -> list[str]:
    return [name for name, kind in KINDS.items() if protocol.startswith(kind.only)]
