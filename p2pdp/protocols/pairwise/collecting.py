"""The curator's part of pairwise sums: it takes masks off the sum of the survivors' values, and off no single one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2pdp.core.draws import UNIFORM
from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm
from p2pdp.protocols.pairwise.masking import CONTRADICTION, wrapped
from p2pdp.protocols.pairwise.plan import MASKED, PAIR_KEY, SEEDS, Around, Gone, Owners, PairwisePlan
from p2pdp.protocols.pairwise.sharing import combined, unfolded

_UNEXPECTED = "unexpected_message"


class MaskCollector:
    """Masked values, keys of shared masks, and keys of own masks or parts of them, as they come."""

    def __init__(self, plan: PairwisePlan) -> None:
        self._plan = plan
        self._absent: set[Peer] = set()  # excluded before the decision
        self._masked: dict[Peer, Any] = {}
        self._around: dict[Peer, frozenset[Peer]] = {}
        self._pair_keys: dict[tuple[Peer, Peer], Any] = {}  # who revealed it, and who is absent
        self._keys: dict[Peer, dict[Peer, Any]] = {}  # whose mask -> by whom: by itself whole, by others in parts
        self._lacking: set[Peer] = set(range(plan.n))  # users who are in, whose masked value is missing
        self._unrevealed: set[tuple[Peer, Peer]] = set()  # like the pair keys, those still to come
        self._masks: set[Peer] | None = None  # once it is decided: survivors whose own mask cannot be taken off yet

    def __repr__(self) -> str:
        return f"MaskCollector({len(self._masked)} values)"

    def take(self, sender: Peer, message: Message) -> str | None:
        if message.type == MASKED:
            return self._take_masked(sender, message)
        if sender not in self._masked:
            return _UNEXPECTED
        if message.type == PAIR_KEY:
            return self._take_pair_key(sender, Gone(*message.fields).peer, message.value)
        if message.type == SEEDS:
            return self._take_seeds(sender, Owners(*message.fields).users, message.value)
        return _UNEXPECTED

    def excluded(self, user: Peer) -> None:
        if self._masks is not None:
            return  # what it sent before stays of use
        self._absent.add(user)
        self._lacking.discard(user)
        self._unrevealed = {(one, gone) for one, gone in self._unrevealed if one != user}
        if self._plan.settles:
            due = {(one, user) for one, around in self._around.items() if user in around and one not in self._absent}
            self._unrevealed |= due - self._pair_keys.keys()

    @property
    def waits_for(self) -> set[Peer]:
        if self._masks is not None or not self._masked:
            return set()
        return self._lacking | {user for user, _ in self._unrevealed}

    @property
    def collected(self) -> list[Peer] | None:
        if self._lacking or self._unrevealed or self._masks is not None:
            return None
        return sorted(self._absent)

    def decided(self, absent: Sequence[Peer]) -> str | None:
        if self._masks is not None or list(absent) != self.collected:
            return CONTRADICTION
        survivors = self._masked.keys() - self._absent
        self._masks = {user for user in survivors if not self._opens(user)} if self._plan.settles else set()
        return None

    @property
    def complete(self) -> bool:
        return self._masks is not None and not self._masks

    def result(self) -> Any:
        """Return the sum of the survivors' noised values."""
        values = [self._unmasked(user) for user in sorted(self._masked.keys() - self._absent)]
        while len(values) > 1:  # two by two: of forms no partial sum has many parts
            values = [sum(values[at + 1 : at + 2], start=values[at]) for at in range(0, len(values), 2)]
        return wrapped(values[0])

    def _unmasked(self, user: Peer) -> Any:
        """Return a survivor's value without its own mask and those that it shares with absent users."""
        plan, value = self._plan, self._masked[user]
        if plan.settles:
            value = value - unfolded(self._key_of(user), UNIFORM, plan.shape)
            for peer in sorted(self._around[user] & self._absent):
                mask = unfolded(self._pair_keys[user, peer], plan.mask, plan.shape)
                value = value - mask if user < peer else value + mask
        return value

    def _take_masked(self, sender: Peer, message: Message) -> str | None:
        if sender not in self._lacking:
            return _UNEXPECTED
        around = frozenset(Around(*message.fields).neighbours)
        if sender in around:
            return "malformed"
        self._lacking.discard(sender)
        self._masked[sender] = message.value
        self._around[sender] = around
        if self._plan.settles:
            self._unrevealed |= {(sender, gone) for gone in around & self._absent}
        return None

    def _take_pair_key(self, sender: Peer, gone: Peer, key: Any) -> str | None:
        if self._masks is not None or gone not in self._around[sender] or (sender, gone) in self._pair_keys:
            return _UNEXPECTED
        self._pair_keys[sender, gone] = key
        self._unrevealed.discard((sender, gone))
        return None

    def _take_seeds(self, sender: Peer, owners: Sequence[Peer], keys: Any) -> str | None:
        if owners[0] != sender or not self._around[sender].issuperset(owners[1:]):
            return "malformed"
        if sender in self._keys.get(sender, ()):
            return _UNEXPECTED
        each = [keys] * len(owners) if isinstance(keys, LinearForm) else keys  # of a ledger that is not at hand
        for owner, key in zip(owners, each, strict=True):
            self._keys.setdefault(owner, {})[sender] = key
            if self._masks is not None and owner in self._masks and self._opens(owner):
                self._masks.discard(owner)
        return None

    def _opens(self, user: Peer) -> bool:
        keys = self._keys.get(user, {})
        return user in keys or len(keys) >= self._plan.threshold(len(self._around[user]))

    def _key_of(self, user: Peer) -> Any:
        keys = self._keys[user]
        return keys[user] if user in keys else combined(keys, self._plan.threshold(len(self._around[user])))
