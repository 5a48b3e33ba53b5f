"""Pairwise sums in memory: real machines of users, curator and bootstrap; chance decides what comes next.

Messages of one link come in order, those of different links in any. A user may vanish at any moment, with what it sent
still under way, or only seem to: then its own machine goes on until it hears that it is out.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from random import Random
from typing import Any

from p2pdp.core.events import Event, Received, Started, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import ALIVE, BLOCKED, SILENT
from p2pdp.core.step import Message, Step
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.decision import SURVIVORS, Deciding, Survivors
from p2pdp.protocols.pairwise.plan import PAIR_KEY, SEEDS, Gone, Owners
from p2pdp.protocols.participant import Participant
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.services.bootstrap import Bootstrap
from p2pdp.services.curator import Curator
from tests.support.walk_world import SeededDraws

PATIENCE_S = 4.0
READY_S = 1000.0


def pairwise(
    n: int, graph: str = '"complete"', terms: str = "", *, noise: str = "", data: str = "", privacy: str = ""
) -> str:
    """A spec; `graph` is a kind with what belongs to it."""
    return (
        f'[run]\nprotocol = "pairwise.sum"\nnodes = {n}\nseed = 3\n[graph]\nkind = {graph}\n[pairwise]\n{terms}\n'
        f"[noise]\n{noise or GAUSSIAN}\n{data or NUMBERS}\n[privacy]\n{privacy}\n"
    )


GAUSSIAN = 'mechanism = "gaussian"\nsigma = 1.0'
NUMBERS = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]'
COUNTS = '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 3'


def planned(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, load_data(spec, spec.run.nodes).dimensions, sampler="seeded")


class SmallWorld:
    def __init__(self, text: str, seed: int) -> None:
        self.run, self.chance = planned(text), Random(seed)  # noqa: S311 - nothing is kept secret with it
        run, n = self.run, self.run.n
        assert run.graph is not None
        neighbours = run.graph.neighbours.__getitem__
        data = load_data(run.spec, n)
        self.inputs = {user: run.protocol.inputs(run.plan, data.user(user))[0] for user in range(n)}
        self.bootstrap = Bootstrap(
            n,
            neighbours,
            (),
            needed=run.plan.needed,
            patience_s=PATIENCE_S,
            ready_timeout_s=READY_S,
            sign_exclusion=lambda _: bytes(64),
            deciding=Deciding(
                lambda _: bytes(64),
                partial(run.plan.hides, neighbours=neighbours),
                partial(run.plan.recoverable, neighbours=neighbours),
            ),
        )
        publish = partial(run.protocol.publish, run.plan)
        self.curator = Curator(n, None, publish, PATIENCE_S, collector=run.collector())
        self.users = {
            user: Participant(user, run.machine(user, neighbours(user), self.inputs[user]), run.protocol.messages)
            for user in range(n)
        }
        self.machines: dict[Peer, Any] = {BOOTSTRAP: self.bootstrap, CURATOR: self.curator, **self.users}
        self.draws = {peer: SeededDraws(peer + 5) for peer in self.machines}
        for user in range(n):
            self.draws[user].user = user  # whose secrets it shares
        self.links: dict[tuple[Peer, Peer], deque[Message]] = {}
        self.sent: list[tuple[Peer, Peer, Message]] = []
        self.faults: list[tuple[Peer, str]] = []
        self.blocked: list[Peer] = []
        self.gone: set[Peer] = set()
        self.now_s = 0.0
        for peer in self.machines:
            self.happens(peer, Started())

    def happens(self, peer: Peer, event: Event) -> None:
        self._carry_out(peer, tell(self.machines[peer], event, self.now_s, self.draws[peer]))

    def _carry_out(self, peer: Peer, step: Step) -> None:
        self.faults += [(peer, fault.kind) for fault in step.faults]
        self.blocked += [output.fields[0] for output in step.outputs if output.type == BLOCKED]
        for send in step.sends:
            assert send.to != peer
            assert self.run.check(send.message) is None
            self.sent.append((peer, send.to, send.message))
            self.links.setdefault((peer, send.to), deque()).append(send.message)

    def deliver(self) -> bool:
        """Deliver the next message of any link; return whether there was one."""
        waiting = [link for link, queue in self.links.items() if queue]
        if not waiting:
            return False
        sender, to = self.chance.choice(waiting)
        message = self.links[sender, to].popleft()
        if message.type != ALIVE and to not in self.gone and not getattr(self.machines[to], "excluded_myself", False):
            self.happens(to, Received(sender, message))
        return True

    def vanish(self, user: Peer, *, seems: bool = False) -> None:
        """Let a user be silent: for good, with some of what it sent lost, or only as it seems to bootstrap.

        Nobody is alive to bootstrap who was silent once.
        """
        if not seems:
            self.gone.add(user)
            for (sender, _), queue in self.links.items():
                kept = self.chance.randrange(len(queue) + 1) if sender == user else len(queue)
                while len(queue) > kept:
                    queue.pop()
        if user in self.bootstrap.watched:
            self.happens(BOOTSTRAP, Received(BOOTSTRAP, Message(SILENT, (user,))))

    def time_passes(self) -> None:
        self.now_s += PATIENCE_S
        self._carry_out(BOOTSTRAP, self.bootstrap.wake(self.now_s, self.draws[BOOTSTRAP]))

    def play(self, vanishing: int, *, seems: bool = False) -> None:
        """Deliver everything, and let so many users vanish at any moments of it."""
        while True:
            silent = vanishing and self.chance.random() < 0.03
            if silent:
                self.vanish(self.chance.choice(sorted(self.users.keys() - self.gone)), seems=seems)
                vanishing -= 1
            if self.chance.random() < 0.01:
                self.time_passes()
            if not self.deliver():
                for user in sorted(self.gone & self.bootstrap.watched - set(self.blocked)):
                    self.happens(BOOTSTRAP, Received(BOOTSTRAP, Message(SILENT, (user,))))
                if not self.bootstrap._probes and self.bootstrap._ready_by_s is None:
                    return
                self.now_s += READY_S if self.bootstrap._ready_by_s is not None else 0.0
                self.time_passes()

    # What came of it

    @property
    def survivors(self) -> list[Peer] | None:
        decisions = [message for sender, _, message in self.sent if sender == BOOTSTRAP and message.type == SURVIVORS]
        assert len({tuple(message.fields[0]) for message in decisions}) <= 1, "there is one decision"
        if not decisions:
            return None
        return sorted(set(range(self.run.n)) - set(Survivors(*decisions[0].fields).absent))

    def expected(self, users: list[Peer]) -> Any:
        """The sum of these users' values, each with its own first draw."""
        total: Any = 0
        for user in users:
            noise = 0 if self.run.plan.noise.name == "none" else self.draws[user].drawn[0][1]
            total = total + self.inputs[user].contribution(0) + noise
        return total

    def revealed(self) -> tuple[set[tuple[Peer, Peer]], set[tuple[Peer, Peer]]]:
        """The pairs of users of whom the first revealed the key shared with the second, or its part of its key."""
        pairs, parts = set(), set()
        for sender, to, message in self.sent:
            if message.type == PAIR_KEY:
                pairs.add((sender, Gone(*message.fields).peer))
            if message.type == SEEDS:
                parts |= {(sender, owner) for owner in Owners(*message.fields).users}
            assert to == CURATOR or message.type not in (PAIR_KEY, SEEDS)
        return pairs, parts

    @property
    def ended(self) -> set[Peer]:
        """Users who have the result."""
        return {user for user, one in self.users.items() if one.result is not None}
