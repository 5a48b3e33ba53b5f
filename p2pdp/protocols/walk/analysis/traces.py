"""What descent along the realised path tells each observer, from traces: who took which step between two looks.

A token's form in a replay of `walk.sgd` is a trace of what went into it (`tasks/inputs.py`), so what an observer
received are moments of a path that is known step by step. A published mean of several models counts as if each of them
were published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from p2pdp.audit.exact import Leaks
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.ids import Peer
from p2pdp.core.values import GRADIENT, LinearForm
from p2pdp.privacy.iteration.path import exposures
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.replay.rows import Layout, Prefix
from p2pdp.replay.transcript import UNKNOWN, Transcript


@dataclass(frozen=True)
class _Chain:
    """Steps along one chain: who took them, each user's how manieth it was, and how many of both are in a prefix."""

    users: Ints
    numbers: Ints
    steps: Ints
    unknown: Ints


class TraceAuditor:
    """Lays a transcript out once and then answers for any set of observers; see `pair_claims.PairLeaks`."""

    def __init__(self, transcript: Transcript, plan: SgdPlan) -> None:
        self._plan = plan
        self._published_at_all = transcript.published is not None
        layout = Layout()

        def placed(forms: Iterable[LinearForm]) -> list[Prefix]:
            return [prefix for form in forms for prefix in layout.place(form)]

        self._received = {peer: placed(forms) for peer, forms in transcript.received.items()}
        self._totals = placed(transcript.seen_by_roles)
        self._published = placed(transcript.published or ())
        self._chains = [_chain(layout, number) for number in range(layout.chains)]
        everything = [(chain.users, chain.numbers) for chain in self._chains]
        self._once = not everything or _all_differ(*(np.concatenate(parts) for parts in zip(*everything, strict=True)))
        self._rates = np.array(plan.rates)
        scale = plan.noise.scale if plan.noise.name == "gaussian" else 0.0
        self._variance = scale**2

    def nodes(self, members: Sequence[Peer]) -> Leaks:
        return self._leaks([prefix for member in members for prefix in self._received[member]], members)

    def curator(self) -> Leaks:
        return self._leaks(self._totals, ())

    def public(self) -> Leaks:
        return self._leaks([], ())

    def network(self) -> Leaks:
        """Whoever sees all messages sees all steps but those of users who pass a token to themselves."""
        return self._leaks([*self._totals, *(prefix for seen in self._received.values() for prefix in seen)], ())

    def _leaks(self, seen: Iterable[Prefix], members: Sequence[Peer]) -> Leaks:
        if not self._published_at_all:  # it belongs to every view, and what it was cannot be told
            return Leaks(None)
        ends: dict[int, set[int]] = {}
        for at, end in [*seen, *self._published]:
            ends.setdefault(at, set()).add(end)
        users, numbers, rates, sizes = [], [], [], []
        for at, places in sorted(ends.items()):
            chain = self._chains[at]
            cuts = np.unique(chain.steps[[0, *sorted(places)]])
            if chain.unknown[max(places)]:
                return Leaks(None)
            users.append(chain.users[: cuts[-1]])
            numbers.append(chain.numbers[: cuts[-1]])
            rates.append(self._rates[: cuts[-1]])
            sizes += np.diff(cuts).tolist()
        if not users:
            return Leaks(self._values(np.zeros(self._plan.n), members))
        who = np.concatenate(users)
        if not self._once and not _all_differ(who, np.concatenate(numbers)):
            return Leaks(None)  # two copies of a token share noise, which the account of one path does not cover
        gap = np.repeat(np.arange(len(sizes)), sizes)
        foreign = ~np.isin(who, np.array(members, dtype=np.int64))
        found = exposures(gap[foreign], who[foreign], np.concatenate(rates)[foreign], self._plan.n)
        return Leaks(self._values(found, members))

    def _values(self, found: Floats, members: Sequence[Peer]) -> Floats:
        values = np.where(found > 0.0, np.inf, 0.0) if self._variance == 0.0 else found / self._variance
        values[list(members)] = np.nan
        return values


def _all_differ(users: Ints, numbers: Ints) -> bool:
    names = users * (int(numbers.max(initial=0)) + 1) + numbers
    return len(np.unique(names)) == len(names)


def _chain(layout: Layout, number: int) -> _Chain:
    sources = layout.chain(number).sources
    steps = np.concatenate([[0], np.cumsum([source.kind == GRADIENT for source in sources])]).astype(np.int64)
    unknown = np.concatenate([[0], np.cumsum([source.kind == UNKNOWN for source in sources])]).astype(np.int64)
    taken = [source for source in sources if source.kind == GRADIENT]
    users = np.array([source.peer for source in taken], dtype=np.int64)
    return _Chain(users, np.array([source.number for source in taken], dtype=np.int64), steps, unknown)
