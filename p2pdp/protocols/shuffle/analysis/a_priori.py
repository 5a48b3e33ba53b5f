"""A-priori claims about network shuffling for each kind of observer, from the facts that bootstrap signed.

The curator's bound is that of `privacy/shuffle/overlap.py` with the least overlap for every pair, if nobody
is late: lateness changes the laws, and an audit works with those that the run had. Everybody else sees the published
estimate. For `all` it is made of every user's report. For `single` it is made of the chosen reports; the choice does
not depend on data, so given it u's report is one of N, or not there at all. N is n minus the number of users who hold
nothing in the end; each of n independent walks changes that number by one at most, so it exceeds its mean by s with a
probability of exp(-2 s^2 / n) at most (McDiarmid 1989), which is subtracted from delta.

Where the unit is a record, every row is a report: the curator's bound counts the other rows of the same user as hidden
like it, and whoever has reports of its own knows all of these.

The local ceiling of reports holds for each report seen alone, without the others among which it is hidden.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from p2pdp.auditor.context import AccountResult, AuditContext, refused, unlike_plan
from p2pdp.auditor.local import ceiling_of, not_told
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.account import (
    COVERED,
    NO_COVER,
    PERMUTED,
    PUBLISHED,
    SEALED,
    WITH_CURATOR,
    among,
    claim_of_reports,
    enclosed,
    knowing,
    not_hidden,
    of_reports,
    own_most,
    printed,
)
from p2pdp.protocols.shuffle.plan import ShufflePlan
from p2pdp.replay.contributions import Noise
from p2pdp.replay.transcript import Transcript
from p2pdp.topology.report_walks.matrix import LAWS_MAX

NOBODY_LATE: Final = "nobody is so late that a round ends without its reports"
_ROOM: Final = "no edge is asked to carry more reports in a round than cover leaves room for"
_CUT: Final = 1e-2  # share of delta


def shuffle_a_priori(run: RunPlan, delta: float, colluders: Sequence[Peer], nobody_out: str) -> AccountResult:
    """Return claims for each kind of observer; all but the local ceiling assume `nobody_out`."""
    plan: ShufflePlan = run.plan
    own = {user: Noise([plan.randomizer.mechanisms] * plan.reports_of(user)) for user in range(run.n)}
    context = AuditContext(run, {}, Transcript(find_noise=lambda: own), (), delta, colluders)
    found = local_account_of_reports(context)
    found.claims = [replace(claim, conditioning=Conditioning.A_PRIORI) for claim in found.claims]
    refusals = not_hidden(plan)
    if not refusals:
        curator = _curator(context, plan, nobody_out)
        found.claims += [curator, *(_least(claim, curator) for claim in _others(context, plan, nobody_out))]
        if run.graph is not None and plan.rows is None and not run.by_record:
            found.claims.append(printed(context, plan, run.graph, Conditioning.A_PRIORI))
        refusals += [Refusal(Observer.NETWORK, Method.SHUFFLE, NO_COVER)] if plan.slots is None else []
        refusals += [Refusal(Observer.POOLED, Method.SHUFFLE, WITH_CURATOR)] if colluders else []
    found.refusals += refusals
    return found


def _curator(context: AuditContext, plan: ShufflePlan, nobody_out: str) -> Claim:
    (overlaps,) = of_reports(plan, [np.full(plan.n - 1, plan.overlap)])
    upper = enclosed(plan, overlaps, context.delta)[1]
    assumptions = [nobody_out, NOBODY_LATE, f"any two walks overlap by {plan.overlap:.4g} at least", PERMUTED, SEALED]
    if plan.slots is not None:
        assumptions.append(_ROOM)
    return claim_of_reports(
        context,
        Observer.CURATOR,
        Method.SHUFFLE,
        Conditioning.A_PRIORI,
        np.array([upper]),
        (0, Observer.CURATOR),
        assumptions,
    )


def _others(context: AuditContext, plan: ShufflePlan, nobody_out: str) -> list[Claim]:
    """Return the claims for observers of the published estimate, who know only their own reports besides."""
    reports, delta = reports_least(plan, context.delta)
    outside = next((user for user in range(plan.n) if user not in context.colluders), 0)
    kinds: list[tuple[Observer, int, Name]] = [(Observer.PUBLIC, 0, Observer.PUBLIC)]
    if plan.n > 1:
        kinds.append((Observer.NODE, own_most(plan), knowing(plan, outside)))
    if context.colluders:
        known = sum(plan.reports_of(user) for user in context.colluders)
        kinds.append((Observer.COALITION, known, tuple(context.colluders)))
    if plan.slots is not None:
        kinds.append((Observer.NETWORK, 0, Observer.NETWORK))
    assumptions = [nobody_out, PUBLISHED, f"{reports} reports of users are in it at least", SEALED]
    if plan.single:
        assumptions.append(NOBODY_LATE)
    return [
        claim_of_reports(
            context,
            observer,
            Method.SHUFFLE,
            Conditioning.A_PRIORI,
            np.array([among(plan, reports - 1 - known, delta)]),
            (outside, whom),
            [*assumptions, COVERED] if observer == Observer.NETWORK else assumptions,
        )
        for observer, known, whom in kinds
    ]


def _least(claim: Claim, curator: Claim) -> Claim:
    """Return the claim of smaller epsilon: the published estimate is a function of the curator's view."""
    if claim.observer != Observer.PUBLIC or claim.epsilon_max is None or curator.epsilon_max is None:
        return claim
    if claim.epsilon_max <= curator.epsilon_max:
        return claim
    return replace(curator, observer=Observer.PUBLIC, worst_pair=claim.worst_pair)


def reports_least(plan: ShufflePlan, delta: float) -> tuple[int, float]:
    """Return a lower bound on the number of users' reports in the result, and the part of delta that is left.

    For many users the expected number of dummies is that of mixed walks. With an overlap of kappa every place is
    reached with kappa times its chance at rest, which leaves (1 - kappa) n more of them empty at most.
    """
    if not plan.single:
        return plan.reports, delta
    mixed = 0.0 if plan.n <= LAWS_MAX // 4 else (1.0 - plan.overlap) * plan.n
    slack = math.sqrt(-math.log(_CUT * delta) * plan.n / 2.0)
    return max(0, math.floor(plan.n - plan.dummies[0] - mixed - slack)), delta * (1.0 - _CUT)


def local_account_of_reports(context: AuditContext) -> AccountResult:
    refusal = not_told(context)
    if refusal is not None:
        return refusal
    reason = unlike_plan(context)
    if reason is not None:
        return refused((Observer.NETWORK,), Method.LOCAL, reason)
    plan: ShufflePlan = context.run.plan
    randomizer, delta = plan.randomizer, context.delta
    counts = [_of_one(plan, user, len(own)) for user, own in context.transcript.own_noise.items()]
    if isinstance(randomizer, RealReports) and randomizer.epsilon is None:
        mus = [randomizer.mu * math.sqrt(count) for count in counts]
        return ceiling_of(context, [gaussian.epsilon_of(delta, mu) for mu in mus], mus)
    return ceiling_of(context, [epsilon_of_report(randomizer, delta) * count for count in counts], None)


def _of_one(plan: ShufflePlan, user: Peer, made: int) -> int:
    """Return how many of the reports that a user made are of one unit; any that are too many are of one row."""
    return made if plan.rows is None else min(made, max(1, made - plan.rows[user] + 1))


def epsilon_of_report(randomizer: Randomizer, delta: float) -> float:
    """Return the local epsilon of one report, as seen by an observer of that report alone."""
    if isinstance(randomizer, RealReports) and randomizer.epsilon is None:
        return gaussian.epsilon_of(delta, randomizer.mu)
    assert randomizer.epsilon is not None
    return randomizer.epsilon
