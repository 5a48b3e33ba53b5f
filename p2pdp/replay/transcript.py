"""Replay a recorded run over symbols instead of values.

Every user's machine is made anew with symbolic inputs and gets the recorded events (`player.py`). The linear form of a
message comes from its sender's replay, so users are replayed side by side, each as far as the messages it has allow.
Ledgers that do not follow from the protocol raise `NotFollowed`, which names the first such record of each of them.

The result says for every message exactly which inputs and draws it contains, whatever was lost, sent again or sent
elsewhere. Values are never read: skeletons are enough.

Where a sender's ledger is absent or ends early (it was excluded, or the audit allows missing ones), what it sent is
rebuilt from what others sent to it (`absent.py`), or is an `unknown` source: claims about a view that depends on one
must be refused. What was sent to a peer counts as seen by it even where its own ledger has no record of it: it may have
arrived when nothing could be recorded any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

from p2pdp.core.draws import Mechanism
from p2pdp.core.events import Event
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import Value
from p2pdp.core.step import Message
from p2pdp.core.values import PAIR, ZERO_FORM, LinearForm, Share, Source, in_order
from p2pdp.ledger.records import (
    CLOSED,
    OPENED,
    RECEIVED,
    REFUSED,
    Contents,
    Record,
    carries_value,
    public_message,
)
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.absent import Absent
from p2pdp.replay.contributions import Noise, Recorded, noise_of
from p2pdp.replay.findings import Finding, NotFollowed, not_followed
from p2pdp.replay.player import CutShort, Player
from p2pdp.replay.published import Link, collected_by, tells, with_collector, with_curator, without_curator

UNKNOWN: Final = "unknown"


@dataclass
class Transcript:
    """All that every party saw, as linear forms, and all that every user drew.

    `rebuilt` names users some of whose messages follow from others' ledgers, `unknown` those where that is not
    possible. `published` has a form for each value that was published, and is None where no ledger at hand says it.
    `finals` are the results that users keep for themselves, `models` those at which a user took its gradients, by user
    and visit.
    """

    received: dict[Peer, list[LinearForm]] = field(default_factory=dict)
    draws: dict[Peer, list[Mechanism]] = field(default_factory=dict)
    pairs: dict[Source, Mechanism] = field(default_factory=dict)  # the draws that two users share
    shares: dict[Peer, list[Share]] = field(default_factory=dict)  # the parts of secret draws sent to each peer
    values: dict[Peer, int] = field(default_factory=dict)  # how many values a user has
    totals: list[LinearForm] = field(default_factory=list)  # all that the curator recorded
    undelivered: list[LinearForm] = field(default_factory=list)  # sent to curator or bootstrap, and recorded by neither
    published: tuple[LinearForm, ...] | None = None
    finals: dict[Peer, LinearForm] = field(default_factory=dict)
    models: dict[tuple[Peer, int], LinearForm] = field(default_factory=dict)
    rebuilt: set[Peer] = field(default_factory=set)
    unknown: set[Peer] = field(default_factory=set)
    sent: list[LinearForm] = field(default_factory=list)  # all that users sent of values, to whomever
    find_noise: Callable[[], dict[Peer, Noise]] = dict

    def mechanism(self, source: Source) -> Mechanism:
        """Return the mechanism of a draw, as it was recorded."""
        return self.pairs[source] if source.kind == PAIR else self.draws[source.peer][source.number]

    def known_to(self, peers: Iterable[Peer]) -> set[Source]:
        """Return the secret draws of others that some peers together hold enough parts of."""
        indices: dict[Source, set[int]] = {}
        thresholds: dict[Source, int] = {}
        for share in (one for peer in peers for one in self.shares.get(peer, ())):
            indices.setdefault(share.source, set()).add(share.place)
            thresholds[share.source] = min(share.threshold, thresholds.get(share.source, share.threshold))
        return {source for source, held in indices.items() if len(held) >= thresholds[source]}

    @cached_property
    def told(self) -> list[LinearForm]:
        """Return all forms that were sent, received or seen by roles, each once."""
        received = (form for forms in self.received.values() for form in forms)
        return list({id(form): form for form in (*self.sent, *received, *self.seen_by_roles)}.values())

    @cached_property
    def ordered(self) -> list[LinearForm]:
        """Return all forms that those are made of, each after its parents."""
        return in_order(self.told)

    @property
    def seen_by_roles(self) -> list[LinearForm]:
        """Return what curator and bootstrap may have seen of values, beside what is published."""
        return [*self.totals, *self.undelivered]

    @cached_property
    def noise(self) -> dict[Peer, Noise]:
        """Return which recorded draws protect each user's contributions, where its ledger is at hand."""
        return self.find_noise()

    @property
    def own_noise(self) -> dict[Peer, list[Recorded]]:
        """Return the draws that protect each contribution that was seen."""
        return {user: noise.own for user, noise in sorted(self.noise.items())}

    def noise_among(self, randomized: Mapping[Source, Recorded], unit: float) -> dict[Peer, Noise]:
        """Return the noise of all users, from all forms that were sent or seen."""
        found = noise_of(self.told, self.ordered, self.draws, randomized, unit)
        return {user: found.get(user, Noise()) for user in self.received}


def replay(run: RunPlan, views: dict[Peer, Contents]) -> Transcript:
    """Return the transcript of a run from ledgers or skeletons that `auditor.verify` found consistent."""
    whole = {peer: contents for peer, contents in sorted(views.items()) if contents.records}  # in one order, always
    replayed = _Replay(run, whole)
    replayed.run_all()
    transcript = Transcript(rebuilt=replayed.absent.rebuilt, unknown=replayed.unknown)
    taken: dict[Peer, int] = {}
    collector = run.collector()
    if collector is not None and CURATOR in whole:
        taken, transcript.totals, transcript.published = with_collector(
            run, collector, whole[CURATOR], replayed.form_of
        )
    elif CURATOR in whole:
        taken, transcript.totals, transcript.published = with_curator(run, whole[CURATOR], replayed.form_of)
    elif collector is not None:
        transcript.published = collected_by(run, collector, whole, replayed.outbox)
    else:
        transcript.published = without_curator(run, replayed.outbox)
    transcript.undelivered = replayed.undelivered(taken)
    underway, randomized = replayed.underway(), dict(replayed.absent.randomized)
    for user, state in replayed.users.items():
        randomized |= state.randomized
        transcript.received[user] = [*state.received, *underway[user]]
        transcript.values[user] = state.values
        transcript.draws[user] = state.draws
        transcript.models |= {(user, visit): form for visit, form in state.models.items()}
        if state.final is not None:
            transcript.finals[user] = state.final
    transcript.draws |= {user: drawn for user, drawn in replayed.absent.draws.items() if user not in transcript.draws}
    transcript.shares = shares_by_receiver(replayed.outbox)
    transcript.pairs = replayed.pairs()
    transcript.sent = [one.value for sent in replayed.outbox.values() for one in sent if tells(one.value)]
    transcript.find_noise = partial(transcript.noise_among, randomized, run.plan.unit)
    return transcript


def shares_by_receiver(links: Mapping[tuple[Peer, Peer], Sequence[Message]]) -> dict[Peer, list[Share]]:
    """Return the parts of secret draws that were sent to each peer, whether or not they arrived."""
    found: dict[Peer, list[Share]] = {}
    for (_, to), messages in links.items():
        for message in messages:
            several = message.value if isinstance(message.value, list) else [message.value]
            found.setdefault(to, []).extend(one for one in several if isinstance(one, Share))
    return found


class _Replay:
    """Replays of all users side by side: one that waits for a message goes on when its sender has sent it."""

    def __init__(self, run: RunPlan, views: dict[Peer, Contents]) -> None:
        self.users: dict[Peer, Player] = {}
        self._findings: list[Finding] = []
        for peer in filter(is_user, views):
            try:
                self.users[peer] = Player(run, peer, views[peer])
            except NotFollowed as error:
                self._findings += error.findings
        self.absent: Absent = run.protocol.analysis().absent(run, views)
        self._messages = run.protocol.messages
        self.unknown: set[Peer] = set()
        self.outbox: dict[tuple[Peer, Peer], list[Message]] = {}  # on each link, with forms as values
        self._ended: set[Peer] = set()
        self._waiting: dict[Peer, dict[Peer, set[Peer]]] = {}  # sender -> receiver -> who waits for that
        self._ready = deque(self.users)
        self._unknowns = 0
        self._hops: dict[tuple[Peer, int], LinearForm] = {}  # reports by their holder and the hop that they came by

    def run_all(self) -> None:
        failed: set[Peer] = set()
        while self._ready:
            user = self._ready.popleft()
            try:
                self._advance(self.users[user])
            except NotFollowed as error:  # whoever waits for more of it is not replayed further
                self._findings += error.findings
                failed.add(user)
        stuck = [user for user in self.users if user not in self._ended and user not in failed]
        if self._findings:
            raise NotFollowed(self._findings, stuck)
        if stuck:
            raise not_followed(stuck[0], self.users[stuck[0]].cursor, "received before it was sent")

    def pairs(self) -> dict[Source, Mechanism]:
        """Return the draws that two users share; both must have made the same."""
        found: dict[Source, Mechanism] = {}
        for user, state in self.users.items():
            for source, drawn in state.pairs.items():
                if found.setdefault(source, drawn) != drawn:
                    raise not_followed(user, None, "a draw that it shares is not that of the other end")
        return self.absent.pairs | found  # what an end at hand recorded counts, and not what is taken of an absent one

    def underway(self) -> dict[Peer, list[LinearForm]]:
        """Return by user what was sent to it beyond what its ledger says that it received."""
        found: dict[Peer, list[LinearForm]] = {user: [] for user in self.users}
        for (sender, to), messages in self.outbox.items():
            if to in found:
                left = messages[self.users[to].taken.get(sender, 0) :]
                found[to] += [message.value for message in left if tells(message.value)]
        return found

    def undelivered(self, taken: Mapping[Peer, int]) -> list[LinearForm]:
        """Return what was sent to roles, beyond the first `taken` messages of each user to the curator."""
        left = [
            message
            for (sender, to), messages in self.outbox.items()
            if not is_user(to)
            for message in messages[taken.get(sender, 0) if to == CURATOR else 0 :]
        ]
        return [message.value for message in left if tells(message.value)]

    def _advance(self, state: Player) -> None:
        """Replay one user until it needs a message whose form is not known, or until its records end."""
        while state.cursor < len(state.records):
            record = state.records[state.cursor]
            try:
                if record.kind == RECEIVED:
                    if not self._receive(state, record):
                        return
                elif record.kind == REFUSED:
                    if not self._refused(state, record):
                        return
                elif record.kind in (OPENED, CLOSED):
                    state.cursor += 1
                else:
                    self._run(state, state.event(None))
            except CutShort:
                state.cursor = len(state.records)
        self._end(state)

    def _end(self, state: Player) -> None:
        self._ended.add(state.user)
        if state.user in self.absent.users:  # what it did beyond its records goes on from there
            self.absent.draws[state.user] = state.draws
            self.absent.contributions[state.user] = state.contributions
            self.absent.values[state.user] = state.values
        for waiting in self._waiting.pop(state.user, {}).values():
            self._ready.extend(sorted(waiting))

    def _receive(self, state: Player, record: Record) -> bool:
        """Replay the receipt of a message; return False if its form is not known yet."""
        sender = record.body.sender
        value = None
        if is_user(sender):
            found = self.form_of(sender, state.user, state.taken.get(sender, 0), record)
            if isinstance(found, Link):
                self._waiting.setdefault(found.sender, {}).setdefault(found.receiver, set()).add(state.user)
                return False
            value = found
            state.taken[sender] = state.taken.get(sender, 0) + 1
            if tells(value):
                state.received.append(value)
        self._run(state, state.event(value))
        return True

    def _refused(self, state: Player, record: Record) -> bool:
        """Replay a refusal; what was refused was seen all the same. Return False if its form is not known yet."""
        sender = record.body.sender
        if is_user(sender):
            number, sent = state.taken.get(sender, 0), self.outbox.get((sender, state.user), ())
            if number >= len(sent) and sender in self.users and sender not in self._ended:
                self._waiting.setdefault(sender, {}).setdefault(state.user, set()).add(state.user)
                return False
            value = sent[number].value if number < len(sent) else None
            if number >= len(sent) and carries_value(record):
                value = self._unknown(sender)
            state.taken[sender] = number + 1
            if tells(value):
                state.received.append(value)
        self._run(state, state.event(None))
        return True

    def form_of(self, sender: Peer, to: Peer, number: int, record: Record) -> Any:
        """Return the form or shares of a link's message of that number, or the `Link` to wait for; None without value.

        `record` is the receiver's, which tells of a sender whose ledger ends early whether there was a value.
        """
        sent = self.outbox.get((sender, to), ())
        if number < len(sent):
            return sent[number].value
        if sender in self.users and sender not in self._ended:
            return Link(sender, to)
        public = public_message(record)
        known = self._messages.get(public.type)
        if known is not None and known.before is not None:  # passed on as it came, by whoever it was
            came = self._hops.get((sender, known.named(known.before, public)))
            return self._unknown(sender) if came is None else came
        if known is not None and known.custody:
            return self._rebuilt(sender, public)
        filler = known is not None and known.value is Value.FILLER
        if not carries_value(record) or filler:
            return None
        value = self.absent.sent(sender, to, public) if sender in self.absent.users and number == len(sent) else None
        if value is None:
            return self._unknown(sender)
        self.outbox.setdefault((sender, to), []).append(Message(public.type, public.fields, value))
        return value

    def _rebuilt(self, sender: Peer, public: Message) -> LinearForm | Link:
        """Return the form of what a user sent that its own records do not have."""
        came = self.absent.origin(sender, public) if sender in self.absent.users else None
        before = ZERO_FORM
        if came is not None and came.sender is not None:
            sent = self.outbox.get((came.sender, sender), ())
            if came.number < len(sent):
                before = sent[came.number].value
            elif came.sender not in self._ended:
                return Link(came.sender, sender)
            else:
                came = None
        if came is not None:
            return self.absent.form(sender, public, came, before)
        return self._unknown(sender)

    def _unknown(self, sender: Peer) -> LinearForm:
        self.unknown.add(sender)
        self._unknowns += 1
        return LinearForm.of(Source(UNKNOWN, sender, self._unknowns))

    def _run(self, state: Player, event: Event) -> None:
        for to, message in state.run_event(event):
            self.outbox.setdefault((state.user, to), []).append(message)
            known = self._messages.get(message.type)
            if known is not None and known.custody and known.before is not None:
                self._hops[to, known.named(known.item, message)] = message.value
            self._ready.extend(sorted(self._waiting.get(state.user, {}).pop(to, ())))
