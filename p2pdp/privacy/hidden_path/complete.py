"""Bounds what an observer of walks on the complete graph, who does not see their paths, learns of each user's value.

Conditioning `view`: given the observer's visits, whom it passed the tokens to and from whom it had them, and how many
of the steps in between were moves from one user to another, which shows in when messages arrive. The next holder is
uniform over all n users, so given the visits gaps are independent, and `moves.py` has the law of how often
user u contributes in each. What such a gap tells is said in `losses.py`; the losses of gaps add up.

The upper ends hold whatever the others' values are; the lower ends are what is told where all others hold the same
value. Both are for users with one value each, and noise N(0, sigma^2) with every contribution. [CB20,
Theorem 3] bounds the same by advanced composition and a tail bound on the number of visits.

Work is shared: gaps that are alike for a user are one part; of each observer the sum over all gaps is formed once, and
corrected for each user who is at an end of some of the gaps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from p2pdp.core.arrays import Each, Floats, one_by_one
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.mechanisms.rounding import inside
from p2pdp.privacy.hidden_path.curves import Curves, Ends, Part, law_cut
from p2pdp.privacy.hidden_path.gaps import Gap, Stretch
from p2pdp.privacy.hidden_path.moves import HIDDEN, OTHER, OWN, Slots, canonical, law, most_told


class Kind(NamedTuple):
    """A gap as one user is in it: how many contributions its noise is of, and its stretches."""

    length: int
    stretches: tuple[Slots, ...]


def complete_graph(
    n: int,
    gaps: Sequence[Sequence[Gap]],
    mu_upper: float,
    mu_lower: float,
    delta: float,
    *,
    all_lower: bool = False,
    alike: bool = True,
    each: Each = one_by_one,
) -> Ends:
    """Return upper ends for all pairs [user, observer], NaN for u = v; `gaps` has an entry for each observer.

    Lower ends take twice the time: without `all_lower` there is that of the pair with the largest upper end, else NaN.
    `mu_upper` and `mu_lower` enclose the sensitivity of one contribution over the standard deviation of its noise.
    `alike` says that contributions of any two users are no farther apart than that; else hiding protects less.
    `each` computes what all observers learn.
    """
    check(n, len(gaps), mu_upper, mu_lower, delta)
    counted = [_counted(n, seen) for seen in gaps]
    bases, changes = [base for base, _ in counted], [changed for _, changed in counted]
    occurs: Counter[Kind] = Counter()
    observers: Counter[Kind] = Counter()
    for base, changed in zip(bases, changes, strict=True):
        occurs.update({kind: count * (n - 1) for kind, count in base.items()})
        for change in changed.values():
            occurs.update(change)
        observers.update(set(base).union(*changed.values()))
    kinds, listed = {kind: place for place, kind in enumerate(occurs)}, list(occurs)
    sizes = [base.total() for base in bases if base]
    if not sizes:  # nobody saw anything, or there is nobody else
        return Ends(*(np.where(np.eye(n, dtype=bool), np.nan, 0.0) for _ in Ends._fields))
    cut = law_cut(delta, max(sizes))
    laws = each(len(listed), lambda place: _law(n, listed[place], cut, alike=alike), meanwhile=None)  # soon done
    parts = [_part(kind, found, mu_upper, mu_lower) for kind, found in zip(listed, laws, strict=True)]
    times = np.array([float(count) for count in occurs.values()])
    once = [kinds[kind] for kind, count in observers.items() if count == 1]
    curves = Curves(parts, times, min(sizes), max(sizes), delta, lower=all_lower, once=once, each=each)

    def row(observer: int) -> Floats:
        """Return upper ends, lower ends and variations of all users against one observer."""
        base, changed = bases[observer], changes[observer]
        same: dict[frozenset[tuple[int, int]], list[int]] = {}
        nothing = frozenset[tuple[int, int]]()
        for user in range(n):
            if user != observer:
                change = changed.get(user)
                entries = frozenset((kinds[kind], count) for kind, count in change.items()) if change else nothing
                same.setdefault(entries, []).append(user)
        found = curves.epsilons({kinds[kind]: count for kind, count in base.items()}, list(same))
        ends_of = np.full((len(Ends._fields), n), np.nan)
        for place, members in enumerate(same.values()):
            ends_of[:, members] = np.array([values[place] for values in found])[:, None]
        return ends_of.reshape(-1)

    rows = np.array(each(n, row)).reshape(n, len(Ends._fields), n)
    ends = Ends(*(np.ascontiguousarray(rows[:, place].T) for place in range(len(Ends._fields))))
    if all_lower:
        return ends
    user, observer = divmod(int(np.nanargmax(ends.upper)), n)
    ends.lower[user, observer] = _lower_end(n, gaps[observer], user, mu_lower, delta)
    return ends


def _lower_end(n: int, gaps: Sequence[Gap], user: Peer, mu: float, delta: float) -> float:
    """Return the lower end of one user against the observer whose gaps these are."""
    kinds = Counter(_kind(n, gap, user) for gap in gaps)
    parts = [part(n, kind, mu, mu, law_cut(delta, kinds.total())) for kind in kinds]
    if not parts:
        return 0.0
    curves = Curves(parts, np.array(list(kinds.values()), dtype=np.float64), len(gaps), len(gaps), delta)
    return float(curves.epsilons(dict(enumerate(kinds.values())), [()]).lower[0])


def check(n: int, observers: int, mu_upper: float, mu_lower: float, delta: float) -> None:
    check_terms(mu_upper, mu_lower, delta)
    if observers != n:
        raise UsageError(f"{n} users have gaps of {n} observers, not of {observers}.")


def check_terms(mu_upper: float, mu_lower: float, delta: float) -> None:
    inside("delta", delta)
    if not 0.0 <= mu_lower <= mu_upper < math.inf:
        raise UsageError("The two ends of mu must be finite numbers of at least 0, the lower one first.")


def part(n: int, kind: Kind, mu_upper: float, mu_lower: float, cut: float, *, alike: bool = True) -> Part:
    return _part(kind, _law(n, kind, cut, alike=alike), mu_upper, mu_lower)


def _law(n: int, kind: Kind, cut: float, *, alike: bool) -> Floats:
    """Return the law of a user's contributions in such a gap, and behind it the share of its part."""
    return np.append(law(n, kind.stretches, cut), most_told(n, kind.stretches) if alike else 1.0)


def _part(kind: Kind, found: Floats, mu_upper: float, mu_lower: float) -> Part:
    root = math.sqrt(kind.length)
    return Part(found[:-1], mu_upper / root, mu_lower / root, float(found[-1]))


def _kind(n: int, gap: Gap, user: Peer | None) -> Kind:
    """Return a gap as this user is in it, or as one who is at no end of it, if `user` is None."""
    slots = sorted(canonical(n, _slots(stretch, user)) for stretch in gap)
    return Kind(sum(stretch.length for stretch in gap), tuple(slots))


def _slots(stretch: Stretch, user: Peer | None) -> Slots:
    if stretch.moves is None:
        raise UsageError("On the complete graph it must be known how often a token moved in each stretch.")
    silent = stretch.origin is not None
    begin = stretch.origin if silent else stretch.first
    first, last = (HIDDEN if one is None else OWN if one == user else OTHER for one in (begin, stretch.last))
    alike = begin is not None and begin == stretch.last
    return Slots(stretch.length + silent, stretch.moves + 1, first, last, alike, silent, stretch.until)


def _ends(gap: Gap) -> set[Peer]:
    return {one for stretch in gap for one in (*stretch.known, stretch.origin) if one is not None}


def _counted(n: int, gaps: Sequence[Gap]) -> tuple[Counter[Kind], dict[int, Counter[Kind]]]:
    """Return the kinds of the gaps of an observer; and for each user at an end of some, which it has more, and less."""
    base: Counter[Kind] = Counter()
    changes: dict[int, Counter[Kind]] = {}
    for gap in gaps:
        common = _kind(n, gap, None)
        base[common] += 1
        for user in _ends(gap):
            change = changes.setdefault(user, Counter())
            change[_kind(n, gap, user)] += 1
            change[common] -= 1
    return base, changes
