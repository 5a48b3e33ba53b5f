"""Claims about histograms: what each user's randomized reports told whoever saw only sums of many.

Between two of its visits an observer sees how often each category was reported, not by whom: a shuffle of the reports
in that gap and of the uniform elements put in there. `replay.reports` says who was in which gap,
`accounting.blanket_losses` what a user's gaps tell together; the ends hold for any data of the others.

All is given the realised path. That is public on a ring; on a random walk the observer is taken to know it.
Whoever sees all messages sees every report by itself: against the network the local ceiling stands.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from p2pdp.accounting.linear.view import ROUNDED_UP
from p2pdp.accounting.shuffle.several import Kind, kinds_of, lower_epsilon, upper_epsilons
from p2pdp.audit.claims import claim_of, members_of, views_of
from p2pdp.audit.ground import PUBLIC_ROUTE, Finding, Ground
from p2pdp.audit.recorded import refused, unlike_plan
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.mechanisms import randomized_response
from p2pdp.protocols.walk.walking import WalkPlan
from p2pdp.replay.reports import Reports, ReportView

_SCHEDULE: Final = "the ring's schedule is public"
_ALL_SEEN: Final = "whoever sees all messages sees each report by itself: the local ceiling stands"


class _Pair(NamedTuple):
    """How often a user has which kind of gap for an observer; in `exact` those for which a lower end is known."""

    user: int
    observer: Name
    kinds: Counter[Kind]
    exact: Counter[Kind]


def blanket_account(ground: Ground) -> Finding:
    run = ground.run
    if not isinstance(run.plan, WalkPlan) or run.plan.noise.name != "randomized_response":
        return Finding()
    reason = unlike_plan(ground)
    if reason is not None:
        return refused((Observer.NODE, Observer.CURATOR, Observer.PUBLIC, Observer.NETWORK), Method.SHUFFLE, reason)
    reports = Reports(ground.transcript, run.n)
    roles = {Observer.CURATOR: reports.curator, Observer.PUBLIC: reports.public}
    views, refusals = views_of(ground, Method.SHUFFLE, reports.nodes, roles)
    refusals.insert(0, Refusal(Observer.NETWORK, Method.SHUFFLE, _ALL_SEEN))
    pairs: dict[Observer, list[_Pair]] = {}
    for observer, seen in views.items():
        for name, view in seen:
            if len(members_of(name)) < run.n:
                pairs.setdefault(observer, []).extend(_pairs(run.n, name, view))
    return _finding(ground, pairs, refusals)


def _pairs(n: int, name: Name, view: ReportView) -> list[_Pair]:
    members = members_of(name)
    found = {user: _Pair(user, name, Counter(), Counter()) for user in range(n) if user not in members}
    for gap in view.gaps:
        total = int(gap.reports.sum())
        for user in np.nonzero(gap.reports)[0].tolist():
            count = int(gap.reports[user])
            found[user].kinds.update(kinds_of(count, total - count, gap.dummies))
            if count == 1 and view.exact:
                found[user].exact[Kind(total - 1, gap.dummies)] += 1
    return list(found.values())


def _finding(ground: Ground, pairs: dict[Observer, list[_Pair]], refusals: list[Refusal]) -> Finding:
    run, noise = ground.run, ground.run.plan.noise
    epsilon_0 = randomized_response.epsilon_of(noise.scale, noise.categories)
    flat = [pair for several in pairs.values() for pair in several]
    found = upper_epsilons(epsilon_0, noise.categories, [pair.kinds for pair in flat], ground.delta)
    matrix = np.full((run.n, run.n), np.nan)
    claims, start = [], 0
    for observer, several in pairs.items():
        epsilons = found[start : start + len(several)]
        start += len(several)
        worst = several[int(np.argmax(epsilons))]
        lower = lower_epsilon(epsilon_0, noise.categories, worst.exact, ground.delta)
        claims.append(_claim(ground, observer, epsilons, worst, lower))
        if observer == Observer.NODE:
            observers = [pair.observer for pair in several]
            matrix[[pair.user for pair in several], np.array(observers, dtype=np.int64)] = epsilons
    return Finding(claims=claims, refusals=refusals, epsilon=matrix if Observer.NODE in pairs else None)


def _claim(ground: Ground, observer: Observer, epsilons: Floats, worst: _Pair, lower: float) -> Claim:
    route = _SCHEDULE if ground.run.plan.order == "ring" else PUBLIC_ROUTE
    some = f"of the worst pair at least epsilon {lower:.6g} is told for some values of the others"
    return claim_of(
        observer,
        Method.SHUFFLE,
        Conditioning.PUBLIC,
        ground.delta,
        (worst.user, worst.observer),
        (route, *ground.assumptions, *((some,) if lower > 0.0 else ())),
        epsilon=(float(epsilons.max()), float(np.mean(epsilons)) * ROUNDED_UP),
    )
