"""Claims about histograms: the leak of each user's randomized reports to observers of sums of many.

Between two of its visits an observer sees how often each category was reported, but not by whom: a shuffle of the
reports in that gap and of the uniform elements put in there. `Reports` finds the users in each gap of a view,
`privacy.shuffle.several` the joint leak of a user's gaps; the ends hold for any data of the others.

If something lost was sent again and both copies went on, the common part of the copies is a gap of its own: that
discloses at least as much to an observer of both. A published sum of several totals is one gap. The members of a view
know what they reported and drew themselves, so it protects nobody and is left out.

Everything is given the realised path. That is public on a ring; on a random walk the observer is assumed to know it.
An observer of all messages sees every report by itself: against the network the local ceiling stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from p2pdp.auditor.claims import claim_of, members_of, views_of
from p2pdp.auditor.context import PUBLIC_ROUTE, AccountResult, AuditContext, refused, unlike_plan
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.core.values import LinearForm, Source
from p2pdp.mechanisms import randomized_response
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.privacy.shuffle.several import Kind, kinds_of, lower_epsilon, upper_epsilons
from p2pdp.replay.rows import Layout, RowTerms, stretches
from p2pdp.replay.transcript import Transcript

_SCHEDULE: Final = "the ring's schedule is public"
_ALL_SEEN: Final = "whoever sees all messages sees each report by itself: the local ceiling stands"


class _Pair(NamedTuple):
    """The numbers of a user's gaps of each kind for an observer; `exact` counts those with a known lower end."""

    user: int
    observer: Name
    kinds: Counter[Kind]
    exact: Counter[Kind]


def blanket_account(context: AuditContext) -> AccountResult:
    run = context.run
    if run.plan.noise.name != "randomized_response":
        return AccountResult()
    reason = unlike_plan(context)
    if reason is not None:
        return refused((Observer.NODE, Observer.CURATOR, Observer.PUBLIC, Observer.NETWORK), Method.SHUFFLE, reason)
    reports = Reports(context.transcript, run.n)
    roles = {Observer.CURATOR: reports.curator, Observer.PUBLIC: reports.public}
    views, refusals = views_of(context, Method.SHUFFLE, reports.nodes, roles, reports.curator)
    refusals.insert(0, Refusal(Observer.NETWORK, Method.SHUFFLE, _ALL_SEEN))
    pairs: dict[Observer, list[_Pair]] = {}
    for observer, seen in views.items():
        for name, view in seen:
            members = context.colluders if name == Observer.POOLED else members_of(name)
            if len(members) < run.n:
                pairs.setdefault(observer, []).extend(_pairs(run.n, name, members, view))
    return _finding(context, pairs, refusals)


def _pairs(n: int, name: Name, members: Sequence[Peer], view: ReportView) -> list[_Pair]:
    found = {user: _Pair(user, name, Counter(), Counter()) for user in range(n) if user not in members}
    for gap in view.gaps:
        total = int(gap.reports.sum())
        for user in np.nonzero(gap.reports)[0].tolist():
            count = int(gap.reports[user])
            found[user].kinds.update(kinds_of(count, total - count, gap.dummies))
            if count == 1 and view.exact:
                found[user].exact[Kind(total - 1, gap.dummies)] += 1
    return list(found.values())


def _finding(context: AuditContext, pairs: dict[Observer, list[_Pair]], refusals: list[Refusal]) -> AccountResult:
    run, noise = context.run, context.run.plan.noise
    epsilon_0 = randomized_response.epsilon_of(noise.scale, noise.categories)
    flat = [pair for several in pairs.values() for pair in several]
    found = upper_epsilons(epsilon_0, noise.categories, [pair.kinds for pair in flat], context.delta)
    matrix = np.full((run.n, run.n), np.nan)
    claims, start = [], 0
    for observer, several in pairs.items():
        epsilons = found[start : start + len(several)]
        start += len(several)
        worst = several[int(np.argmax(epsilons))]
        lower = lower_epsilon(epsilon_0, noise.categories, worst.exact, context.delta)
        claims.append(_claim(context, observer, epsilons, worst, lower))
        if observer == Observer.NODE:
            observers = [pair.observer for pair in several]
            matrix[[pair.user for pair in several], np.array(observers, dtype=np.int64)] = epsilons
    return AccountResult(claims=claims, refusals=refusals, epsilon=matrix if Observer.NODE in pairs else None)


def _claim(context: AuditContext, observer: Observer, epsilons: Floats, worst: _Pair, lower: float) -> Claim:
    route = _SCHEDULE if context.run.plan.order == "ring" else PUBLIC_ROUTE
    some = f"of the worst pair at least epsilon {lower:.6g} is told for some values of the others"
    return claim_of(
        context.run.protected,
        observer,
        Method.SHUFFLE,
        Conditioning.PUBLIC,
        context.delta,
        (worst.user, worst.observer),
        (route, *context.assumptions, *((some,) if lower > 0.0 else ())),
        epsilon=(float(epsilons.max()), float(np.mean(epsilons)) * ROUNDED_UP),
    )


REPORT: Final = "report"
_DUMMIES: Final = "uniform_counts"


@dataclass(frozen=True, slots=True)
class ReportGap:
    """The reports of each user in this gap, and the uniform elements that no member of the view knows."""

    reports: Ints
    dummies: int


@dataclass(frozen=True, slots=True)
class ReportView:
    """The gaps of a view; `exact` if they disclose no more than what is seen."""

    gaps: list[ReportGap]
    exact: bool


class Reports:
    """The reports of a transcript, laid out once to answer for any set of observers."""

    def __init__(self, transcript: Transcript, users: int) -> None:
        self._transcript = transcript
        self._users = users
        self._layout = Layout()
        self._received = {peer: self._placed(forms) for peer, forms in transcript.received.items()}
        self._totals = self._placed(transcript.seen_by_roles)
        self._published = self._placed(list(transcript.published or ()))
        self._tabulate()

    def _placed(self, forms: Iterable[LinearForm]) -> list[dict[tuple[int, int], float]]:
        return [self._layout.place(form) for form in forms]

    def _tabulate(self) -> None:
        """Tabulate all terms of all chains, in order: number and owner of their source, and its weight."""
        owners, reports, dummies, names, offsets = [], [], [], [], [0]
        numbers: dict[Source, int] = {}
        for chain in range(self._layout.chains):
            sources = self._layout.chain(chain).sources
            for source in sources:
                owners.append(source.peer)
                reports.append(source.kind == REPORT)
                drawn = self._transcript.draws[source.peer][source.number] if source.kind == "draw" else None
                dummies.append(int(drawn.scale) if drawn is not None and drawn.name == _DUMMIES else -1)
                names.append(numbers.setdefault(source, len(numbers)))
            offsets.append(offsets[-1] + len(sources))
        self._owner = np.array(owners, dtype=np.int64)
        self._is_report = np.array(reports, dtype=np.bool_)
        self._dummies = np.array(dummies, dtype=np.int64)  # -1 for what is neither a report nor uniform elements
        self._name = np.array(names, dtype=np.int64)
        self._offset = np.array(offsets, dtype=np.int64)

    def nodes(self, members: Sequence[Peer]) -> ReportView | None:
        """Return the view of a user, or of users who pool what they saw, know and drew; None if it is unknown."""
        placed = [form for member in members for form in self._received[member]]
        return self._view([*placed, *self._published], members)

    def curator(self, members: Sequence[Peer] = ()) -> ReportView | None:
        """Return the curator's view, or what it and users who pool with it saw, know and drew."""
        placed = [form for member in members for form in self._received[member]]
        return self._view([*placed, *self._totals, *self._published], members)

    def public(self) -> ReportView | None:
        return self._view(self._published, ())

    def _view(self, placed: Iterable[dict[tuple[int, int], float]], members: Sequence[Peer]) -> ReportView | None:
        if self._transcript.published is None:  # it belongs to every view, and is unknown
            return None
        terms = stretches(placed)
        at = self._offset[terms.chain] + terms.place
        foreign = ~np.isin(self._owner[at], np.array(members, dtype=np.int64))
        at, row = at[foreign], terms.row[foreign]
        if np.any(~self._is_report[at] & (self._dummies[at] < 0)) or np.any(terms.weight[foreign] != 1.0):
            return None
        gap, at, exact = self._gaps(terms, row, at)
        own = self._is_report[at]
        count = int(gap.max(initial=-1)) + 1
        cells = np.bincount(gap[own] * self._users + self._owner[at[own]], minlength=count * self._users)
        dummies = np.bincount(gap[~own], weights=self._dummies[at[~own]], minlength=count)
        reports = cells.reshape(count, self._users)
        return ReportView([ReportGap(reports[one], int(dummies[one])) for one in range(count)], exact)

    def _gaps(self, terms: RowTerms, row: Ints, at: Ints) -> tuple[Ints, Ints, bool]:
        """Return the gap of each source, and its place: rows, or the set of rows that it is in where these overlap."""
        names, first, times = np.unique(self._name[at], return_index=True, return_counts=True)
        if np.all(times == 1):
            return row, at, True
        rows_of: dict[int, set[int]] = {}
        for name, one in zip(self._name[at].tolist(), row.tolist(), strict=True):
            rows_of.setdefault(name, set()).add(one)
        gaps: dict[frozenset[int], int] = {}
        found = [gaps.setdefault(frozenset(rows_of[name]), len(gaps)) for name in names.tolist()]
        return np.array(found, dtype=np.int64), at[first], len(gaps) <= terms.rows
