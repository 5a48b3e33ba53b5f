"""The curator's attack: what it can read out of its own view of a pairwise sum.

It takes off every mask whose key it was told. With uniform masks it reads the noised sum of each set of users that are
connected by masks it does not know; in a run that kept to the protocol these are all survivors, or the components that
vanished users left of them. With Gaussian masks it reads each survivor's value behind its own noise and pair noise.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from p2pdp.core.draws import UNIFORM
from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.records import RECEIVED, Contents, whole_message
from p2pdp.protocols.defaults import Read
from p2pdp.protocols.pairwise.masking import wrapped
from p2pdp.protocols.pairwise.plan import MASKED, PAIR_KEY, SEEDS, Around, Gone, Owners, PairwisePlan
from p2pdp.protocols.pairwise.sharing import combined, unfolded


def read_by_curator(plan: PairwisePlan, contents: Contents) -> list[Read]:
    """Return the sums, in steps of the grid; a place is the user whose value it is."""
    told = _Told(plan, contents)
    opened = {user: value for user in told.masked if (value := told.opened(user)) is not None}
    if plan.mask != UNIFORM:
        return [((user,), value, [(0, user)]) for user, value in sorted(opened.items())]
    parts = {user: {user} for user in opened}
    hidden: set[Peer] = set()
    for user in opened:
        for peer in told.unknown(user):
            if peer not in opened:
                hidden.add(user)
            elif parts[peer] is not parts[user]:
                parts[user] |= parts[peer]
                for other in parts[peer]:
                    parts[other] = parts[user]
    found = {tuple(sorted(part)) for part in parts.values() if not part & hidden}
    return [(users, _total(opened, users), [(0, user) for user in users]) for users in sorted(found)]


def _total(opened: dict[Peer, Any], users: tuple[Peer, ...]) -> Any:
    total = opened[users[0]]
    for user in users[1:]:
        total = total + opened[user]
    return wrapped(total)


class _Told:
    """All that users told the curator, whatever its machine made of it."""

    def __init__(self, plan: PairwisePlan, contents: Contents) -> None:
        self._plan = plan
        self.masked: dict[Peer, Any] = {}
        self._around: dict[Peer, tuple[Peer, ...]] = {}
        self._parts: defaultdict[Peer, dict[Peer, Any]] = defaultdict(dict)  # whose mask -> by whom
        self._pair_keys: dict[frozenset[Peer], Any] = {}
        for record in contents.records:
            if record.kind == RECEIVED and is_user(record.body.sender):
                self._take(record.body.sender, whole_message(record))

    def _take(self, sender: Peer, message: Any) -> None:
        if message.type == MASKED:
            self.masked[sender] = message.value
            self._around[sender] = tuple(Around(*message.fields).neighbours)
        elif message.type == PAIR_KEY:
            self._pair_keys[frozenset((sender, Gone(*message.fields).peer))] = message.value
        elif message.type == SEEDS:
            for owner, key in zip(Owners(*message.fields).users, message.value, strict=True):
                self._parts[owner][sender] = key

    def unknown(self, user: Peer) -> list[Peer]:
        """Return the neighbours with whom the user shares a mask that is not known."""
        return [peer for peer in self._around[user] if frozenset((user, peer)) not in self._pair_keys]

    def opened(self, user: Peer) -> Any:
        """Return the user's value without the masks that are known; None while its own one is not."""
        plan, value, parts = self._plan, self.masked[user], self._parts[user]
        if plan.settles:
            threshold = plan.threshold(len(self._around[user]))
            if user in parts:
                key = parts[user]
            elif len(parts) >= threshold:
                key = combined(parts, threshold)
            else:
                return None
            value = value - unfolded(key, UNIFORM, plan.shape)
        for peer in self._around[user]:
            key = self._pair_keys.get(frozenset((user, peer)))
            if key is not None:
                mask = unfolded(key, plan.mask, plan.shape)
                value = value - mask if user < peer else value + mask
        return wrapped(value)
