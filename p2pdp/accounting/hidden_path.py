"""How much each user's one value tells an observer of walks on the complete graph who does not see their paths.

Conditioning `view`: given the observer's visits, whom it passed the tokens to and from whom it had them. The next
holder is uniform over all n users, so given the visits the hidden slots of a gap are independent and uniform over
the n - 1 others, and gaps are independent: in a gap with e slots known to be user u's and h hidden ones, u
contributes e + Bin(h, 1/(n-1)) times. What such a gap tells is said in `hidden_path_losses`; the losses of gaps add up.

The upper ends hold whatever the others' values are; the lower ends are what is told where all others hold the same
value. Both are for users with one value each, and noise N(0, sigma^2) with every contribution. Cyffers and Bellet
(first version, Theorem 3) bound the same by advanced composition and a tail bound on the number of visits.

Work is shared: gaps that are alike for a user are one part; of each observer the sum over all gaps is formed once, and
corrected for each user in the gaps of which the user is a known end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from p2pdp.accounting.hidden_path_curves import Curves, Ends, Part, law_cut
from p2pdp.accounting.hidden_path_gaps import Gap
from p2pdp.accounting.hidden_path_losses import Floats
from p2pdp.core.errors import UsageError


class Kind(NamedTuple):
    """A gap as one user is in it: its length, how many slots are known to be the user's, how many are hidden."""

    length: int
    known: int
    hidden: int


def complete_graph(n: int, gaps: Sequence[Sequence[Gap]], mu_upper: float, mu_lower: float, delta: float) -> Ends:
    """Both ends for all pairs [user, observer], NaN where these are the same; an entry of `gaps` for each observer.

    `mu_upper` and `mu_lower` enclose the sensitivity of one contribution over the standard deviation of its noise.
    """
    check(n, len(gaps), mu_upper, mu_lower, delta)
    ends = Ends(np.full((n, n), np.nan), np.full((n, n), np.nan))
    bases = [Counter(_kind(gap, None) for gap in seen) for seen in gaps]
    changes = [_changes(seen) for seen in gaps]
    occurs: Counter[Kind] = Counter()
    for base, changed in zip(bases, changes, strict=True):
        occurs.update({kind: count * (n - 1) for kind, count in base.items()})
        for change in changed.values():
            occurs.update(change)
    kinds = {kind: place for place, kind in enumerate(occurs)}
    sizes = [base.total() for base in bases if base]
    if not sizes:  # nobody saw anything, or there is nobody else
        return Ends(*(np.where(np.eye(n, dtype=bool), np.nan, 0.0) for _ in ends))
    parts = [part(n, kind, mu_upper, mu_lower, law_cut(delta, max(sizes))) for kind in kinds]
    curves = Curves(parts, np.array([float(count) for count in occurs.values()]), min(sizes), max(sizes), delta)
    for observer, (base, changed) in enumerate(zip(bases, changes, strict=True)):
        others = [user for user in range(n) if user != observer]
        alike: dict[frozenset[tuple[int, int]], list[int]] = {}
        for user in others:
            entries = frozenset((kinds[kind], count) for kind, count in changed.get(user, Counter()).items())
            alike.setdefault(entries, []).append(user)
        found = curves.epsilons({kinds[kind]: count for kind, count in base.items()}, list(alike))
        for place, members in enumerate(alike.values()):
            ends.upper[members, observer] = found.upper[place]
            ends.lower[members, observer] = found.lower[place]
    return ends


def check(n: int, observers: int, mu_upper: float, mu_lower: float, delta: float) -> None:
    check_terms(mu_upper, mu_lower, delta)
    if observers != n:
        raise UsageError(f"{n} users have gaps of {n} observers, not of {observers}.")


def check_terms(mu_upper: float, mu_lower: float, delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise UsageError("delta must be a number between 0 and 1.")
    if not 0.0 <= mu_lower <= mu_upper < math.inf:
        raise UsageError("The two ends of mu must be finite numbers of at least 0, the lower one first.")


def part(n: int, kind: Kind, mu_upper: float, mu_lower: float, cut: float) -> Part:
    """The part of a kind. Where a slot is known to be the user's, hiding the others does not protect this one."""
    root = math.sqrt(kind.length)
    return Part(binomial_law(n, kind, cut), mu_upper / root, mu_lower / root, told=kind.known > 0)


def binomial_law(n: int, kind: Kind, cut: float) -> Floats:
    """How often the user contributes in a gap of this kind. At most `cut` in all is left out of unlikely numbers."""
    if n == 2:  # nobody else could have had the hidden slots
        return np.append(np.zeros(kind.known + kind.hidden), 1.0)
    counts = np.arange(1, kind.hidden + 1)
    logs = np.concatenate(([0.0], np.cumsum(np.log((kind.hidden + 1.0 - counts) / (counts * (n - 2.0))))))
    law = np.exp(logs - logs.max())
    law /= law.sum()
    law[law * len(law) < cut] = 0.0
    return np.append(np.zeros(kind.known), np.trim_zeros(law, "b"))


def _kind(gap: Gap, user: int | None) -> Kind:
    length = sum(stretch.length for stretch in gap)
    known = [one for stretch in gap for one in stretch.known]
    return Kind(length, known.count(user) if user is not None else 0, length - len(known))


def _changes(gaps: Sequence[Gap]) -> dict[int, Counter[Kind]]:
    """For each user who is a known end of some gaps: which kinds it has in their place, and which less."""
    changes: dict[int, Counter[Kind]] = {}
    for gap in gaps:
        for user in {one for stretch in gap for one in stretch.known}:
            change = changes.setdefault(user, Counter())
            change[_kind(gap, user)] += 1
            change[_kind(gap, None)] -= 1
    return changes
