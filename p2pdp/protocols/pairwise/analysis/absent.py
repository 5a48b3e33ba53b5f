"""Rebuilds what a user without a ledger sent in a pairwise sum, assuming that it followed the protocol.

Each of its messages has one form only, which its public part, the plan and the graph tell: its value with its noise and
its masks, parts of the key of its own mask, and the keys that it revealed. How many parts tell a key follows from its
neighbours, as the ledgers at hand name them; where some are not, fewer parts are taken to be enough.
"""

from __future__ import annotations

from typing import Any

from p2pdp.core.draws import UNIFORM, Mechanism
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm, Share, Source, pair_source
from p2pdp.ledger.records import Contents
from p2pdp.protocols.pairwise.plan import (
    MASKED,
    PAIR_KEY,
    PAIR_NUMBER,
    SEEDS,
    SHARE,
    Around,
    Gone,
    Owners,
    PairwisePlan,
)
from p2pdp.protocols.pairwise.sharing import mask_key, parts_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.absent import Absent


class AbsentFromSum(Absent):
    def __init__(self, run: RunPlan, views: dict[Peer, Contents]) -> None:
        super().__init__(run, views)
        plan: PairwisePlan = run.plan
        self._plan = plan
        self._around: dict[Peer, set[Peer]] = {user: set() for user in range(run.n)}
        for user in filter(is_user, views):
            near = views[user].records[0].body.neighbours
            for peer in range(run.n) if near is None else near:
                if peer != user and peer in self._around:
                    self._around[peer].add(user)
                    self._around[user].add(peer)
        drawn = [*([] if plan.noise.name == "none" else [plan.noise]), *([UNIFORM] if plan.settles else [])]
        self._whole = {user for user in self.users if user not in views}
        self.draws |= {user: list(drawn) for user in self._whole}

    def sent(self, user: Peer, to: Peer, message: Message) -> Any:
        if user not in self._whole:
            return None
        self.rebuilt.add(user)
        kind = message.type
        if kind == MASKED:
            return self._masked(user, Around(*message.fields).neighbours)
        if kind == PAIR_KEY:
            return Share(pair_source(user, Gone(*message.fields).peer, PAIR_NUMBER))
        if kind == SHARE and self._plan.settles:
            return self._part(user, to)
        if kind == SEEDS and self._plan.settles:
            owners = Owners(*message.fields).users
            return [mask_key(self._seed(user)), *(self._part(owner, user) for owner in owners[1:])]
        return None

    def _masked(self, user: Peer, neighbours: list[Peer]) -> LinearForm:
        terms = [(Source("input", user, 0), 1.0)]
        terms += [(Source("draw", user, number), 1.0) for number in range(len(self.draws[user]))]
        for peer in neighbours:
            source = pair_source(user, peer, PAIR_NUMBER)
            self.pairs[source] = self._plan.mask
            terms.append((source, 1.0 if user < peer else -1.0))
        return LinearForm((), tuple(terms))

    def _part(self, owner: Peer, holder: Peer) -> Any:
        threshold = self._plan.threshold(len(self._around[owner]))
        return parts_of(self._seed(owner), threshold, [holder])[0]

    def _seed(self, user: Peer) -> LinearForm:
        """Return the seed of a user's own mask, its last draw."""
        own: list[Mechanism] = [] if self._plan.noise.name == "none" else [self._plan.noise]
        return LinearForm.of(Source("draw", user, len(own)))
