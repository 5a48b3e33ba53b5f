"""Claims about network shuffling: how well walks hide the owner of a report (`privacy/shuffle/overlap.py`).

The view of the curator consists of the reports that each user handed in, the graph, and the times at which users were
late, but no route. The overlap of the laws of two users' reports is computed for the timing that the run had, never
for the routes: given these nothing is hidden. Everybody else sees the published estimate, which is made of all
reports alike, as after a perfect shuffle; a relay also sees sealed reports, which reveal nothing beyond the seal.
`single` hands over a part of what `all` does, so the curator's bound holds for it as it is.

The theorems of [LTT22] need the same law for every user; they are shown for comparison, and bound nothing.

The timing of a run follows from its marks. A report that is sent in round r is passed on in round r + 1, or, if it came
late, in the round after the one that its holder had reached by then. That time depends on clocks and links, not on
data, so claims may rest on it. All that a neighbour sent in a round is held together, from its mark on. Reports for a
user whose mark of the round before is missing stay with their holder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from p2pdp.auditor.claims import claim_of, spread_of, told_by_skeletons
from p2pdp.auditor.context import AccountResult, AuditContext, graph_of, refused, unlike_plan
from p2pdp.core.arrays import Each, Floats
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import OPENED_REPORT
from p2pdp.ledger.records import OWN, RECEIVED, REFUSED, SENT, Contents, public_message
from p2pdp.mechanisms.reporting.categories import KaryReports
from p2pdp.privacy.shuffle.overlap import overlapped
from p2pdp.privacy.shuffle.published import epsilon_all, epsilon_single, load
from p2pdp.protocols.shuffle.plan import MARK, RELAY, Hop, Round, ShufflePlan
from p2pdp.replay.visits import put_out
from p2pdp.topology.graphs import Graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from p2pdp.topology.report_walks.overlap import (
    is_afforded,
    least_overlap,
    least_overlaps,
    overlap_least,
    overlaps_of_laws,
)

_LAWS_N: Final = 1024  # most users for which all laws are computed
_EACH_N: Final = 128  # most users for which the others' overlaps are counted one by one


def shuffle_account(context: AuditContext) -> AccountResult:
    plan = context.run.plan
    reason = unlike_plan(context)
    if reason is not None:
        return refused((Observer.CURATOR, Observer.PUBLIC, Observer.NODE), Method.SHUFFLE, reason)
    found = AccountResult(refusals=not_hidden(plan))
    if not found.refusals:
        _curator(context, plan, found)
        _others(context, plan, found)
    return found


def _curator(context: AuditContext, plan: ShufflePlan, found: AccountResult) -> None:
    reason, graph, timing = _hidden(context, plan)
    reason = told_by_skeletons(context) or reason
    if reason is not None or graph is None:
        found.refusals.append(
            Refusal(Observer.CURATOR, Method.SHUFFLE, reason or "some users' ledgers are not at hand")
        )
        return
    rows, how = _overlaps(graph, plan, timing, context.each)
    of_each = of_reports(plan, rows)
    ends = context.each(len(of_each), lambda user: np.array(enclosed(plan, of_each[user], context.delta)))
    lowers, uppers = np.array(ends).T
    worst = int(np.argmax(uppers))
    assumptions = [how, PERMUTED, SEALED]
    if not plan.single:
        assumptions.append(f"at least {lowers[worst]:.6g} for some data of the others, if walks were fully mixed")
    if timing.times:
        assumptions.append(f"{timing.times} times somebody was late, which the laws take into account")
    found.claims.append(
        claim_of_reports(
            context, Observer.CURATOR, Method.SHUFFLE, Conditioning.VIEW, uppers, (worst, Observer.CURATOR), assumptions
        )
    )
    if plan.rows is None:  # the paper is about one report of each user
        found.claims.append(printed(context, plan, graph, Conditioning.VIEW))


def _hidden(context: AuditContext, plan: ShufflePlan) -> tuple[str | None, Graph | None, Timing]:
    """Return the graph and the timing, or the reason why routes do not follow the law of the walk."""
    graph = graph_of(context.views, context.run.n)
    timing = timing_of(context.views, plan.rounds)
    missing = {user for user in context.incomplete if is_user(user)}
    out = put_out(context.views) | missing | context.transcript.rebuilt
    if out:  # also one whose ledger is whole, since it came back and closed it
        who = f"user {min(out)} was put out"
        told = "what it held went another way, and its neighbours told bootstrap of the hops to it and from it"
        return f"{who}: {told}", graph, timing
    if any(record.kind == REFUSED for contents in context.views.values() for record in contents.records):
        return (
            "somebody refused a message, so a report may be missing among those that the curator opened",
            graph,
            timing,
        )
    if plan.slots is not None and timing.most_on_edge >= plan.slots:
        return "an edge had no room for more in some round, so walks were not independent", graph, timing
    if timing.times and graph is not None and graph.n > _LAWS_N:
        return f"somebody was late, and the laws of more than {_LAWS_N} reports are not computed", graph, timing
    return None, graph, timing


def _overlaps(graph: Graph, plan: ShufflePlan, timing: Timing, each: Each) -> tuple[list[Floats], str]:
    """Return the overlaps of each user with the others, or one row for all users."""
    n, complete = graph.n, 2 * graph.edge_count == graph.n * (graph.n - 1)
    if n > _LAWS_N or (complete and not timing.times):
        if complete or not is_afforded(graph, plan.rounds):
            kappa, how = overlap_least(graph, plan.stay, plan.rounds)
        else:
            kappa, how = least_overlap(walk_matrix(graph, plan.stay), plan.rounds, each), "exact"
        return [np.full(n - 1, kappa)], f"any two walks overlap by {kappa:.4g} ({how})"
    laws = laws_with(graph, plan.stay, plan.rounds, timing) if timing.times else None
    if laws is None:
        laws = all_laws(walk_matrix(graph, plan.stay), plan.rounds)
    how = "any two walks overlap by {:.4g} at least (exact)"
    if plan.reports > _EACH_N or categories_of(plan) not in (None, 2):  # blankets of more values take long
        least = least_overlaps(laws, plan.rounds)
        return [np.full(n - 1, kappa) for kappa in least.tolist()], how.format(least.min())
    kappas = overlaps_of_laws(laws, plan.rounds)
    rows = [np.delete(kappas[user], user) for user in range(n)]
    return rows, how.format(min((float(row.min()) for row in rows if len(row)), default=1.0))


def of_reports(plan: ShufflePlan, rows: Sequence[Floats]) -> list[Floats]:
    """Return the overlaps of one report of each user with all other reports, from those of users with the others.

    Other reports of the same user begin where it does, so their laws are the same as its own.
    """
    if plan.rows is None:
        return list(rows)
    if len(rows) == 1:  # alike for all users: whoever has fewest reports of its own is hidden least
        least, (kappa, *_) = min(plan.rows), rows[0] if len(rows[0]) else (1.0,)
        return [np.concatenate([np.ones(least - 1), np.full(plan.reports - least, kappa)])]
    found = []
    for user, row in enumerate(rows):
        others = np.delete(np.array(plan.rows), user)
        found.append(np.concatenate([np.ones(plan.rows[user] - 1), np.repeat(row, others)]))
    if plan.reports > _EACH_N:
        found = [np.full(len(row), row.min()) for row in found if len(row)]
    return found


def _others(context: AuditContext, plan: ShufflePlan, found: AccountResult) -> None:
    """Add the claims for observers of the published estimate, who know only their own reports besides."""
    arrived = _arrived(context)
    if arrived is None:
        for observer in (Observer.NODE, Observer.PUBLIC):
            found.refusals.append(
                Refusal(observer, Method.SHUFFLE, "what was published cannot be told: the curator's ledger")
            )
        return
    colluders = sum(plan.reports_of(user) for user in context.colluders)
    kinds = [(Observer.NODE, own_most(plan))] if context.run.n > 1 else []
    if colluders:
        kinds.append((Observer.COALITION, colluders))
    if plan.slots is not None:
        kinds.append((Observer.NETWORK, 0))
    else:
        found.refusals.append(Refusal(Observer.NETWORK, Method.SHUFFLE, NO_COVER))
    user = next((one for one in range(context.run.n) if one not in context.colluders), 0)
    names: dict[Observer, Name] = {
        Observer.NODE: knowing(plan, user),
        Observer.COALITION: tuple(context.colluders),
    }
    assumptions = [PUBLISHED, f"{arrived} reports of users are in it", SEALED]
    for observer, known in (*kinds, (Observer.PUBLIC, 0)):
        upper = np.array([among(plan, arrived - 1 - known, context.delta)])
        worst = (user, names.get(observer, observer))
        covered = [COVERED] if observer == Observer.NETWORK else []
        found.claims.append(
            claim_of_reports(
                context, observer, Method.SHUFFLE, Conditioning.PUBLIC, upper, worst, [*assumptions, *covered]
            )
        )
    if colluders:
        found.refusals.append(Refusal(Observer.POOLED, Method.SHUFFLE, WITH_CURATOR))


def knowing(plan: ShufflePlan, user: Peer) -> Peer:
    """Return the other user that has most reports of its own."""
    others = [(user + 1 + place) % plan.n for place in range(plan.n - 1)] or [user]
    return max(others, key=plan.reports_of)


def own_most(plan: ShufflePlan) -> int:
    """Return how many reports one user knows to be its own, at most."""
    return 1 if plan.rows is None else max(plan.rows)


def _arrived(context: AuditContext) -> int | None:
    """Return the number of the users' own reports that were handed in; dummies do not count."""
    if CURATOR not in context.views:
        return None
    records = (record for record in context.views[CURATOR].records if record.kind == OWN)
    handed_in = sum(public_message(record).type == OPENED_REPORT for record in records)
    dummies = sum(source.kind == "dummy" for form in context.transcript.totals for source in form.expand())
    return handed_in - dummies


PERMUTED: Final = "every holder permutes its reports, and the observer saw no report on its way"
SEALED: Final = "whoever cannot open a sealed report learns nothing of it, nor whether two are alike"
PUBLISHED: Final = "the published estimate is made of all reports alike"
COVERED: Final = "whoever watches the wires sees as many frames of one size on each edge in each round"
NO_COVER: Final = "it sees every route: [shuffle] cover = true hides them"
WITH_CURATOR: Final = (
    "together with the curator they know a report that one of them held in round 1: the local ceiling stands"
)
_NOT_PURE: Final = "reports have no pure epsilon, and the bounds for hidden reports need one"
_BARE: Final = "reports are not randomized: nothing protects them but the seal"
_ONE_LAW: Final = "it assumes identically distributed reports, which finitely many rounds do not ensure"


def not_hidden(plan: ShufflePlan) -> list[Refusal]:
    """Return by observer the reason why nothing is claimed of hidden reports; empty if claims are possible."""
    epsilon_0 = plan.randomizer.epsilon
    if epsilon_0 is not None and math.isfinite(epsilon_0):
        return []
    reason = _NOT_PURE if epsilon_0 is None else _BARE
    return [
        Refusal(observer, Method.SHUFFLE, reason) for observer in (Observer.CURATOR, Observer.PUBLIC, Observer.NODE)
    ]


def categories_of(plan: ShufflePlan) -> int | None:
    """Return the number of categories of randomized response, which has bounds of its own; else None."""
    return plan.randomizer.outputs if isinstance(plan.randomizer, KaryReports) else None


def enclosed(plan: ShufflePlan, kappas: Floats, delta: float) -> tuple[float, float]:
    """Return [lower, upper] epsilon of one report by its overlap with each other; the lower end holds if all arrive."""
    assert plan.randomizer.epsilon is not None
    return overlapped(plan.randomizer.epsilon, kappas, delta, categories_of(plan))


def among(plan: ShufflePlan, others: int, delta: float) -> float:
    """Return the upper epsilon for one report among `others` reports that are indistinguishable from it."""
    assert plan.randomizer.epsilon is not None
    return enclosed(plan, np.ones(others), delta)[1] if others > 0 else plan.randomizer.epsilon


def printed(context: AuditContext, plan: ShufflePlan, graph: Graph, conditioning: Conditioning) -> Claim:
    """Return the epsilon of Theorem 5.3 or 5.5, with half of delta for the loads, and S that of mixed walks."""
    assert plan.randomizer.epsilon is not None
    half = context.delta / 2.0
    degrees = np.array([graph.degree(user) for user in range(graph.n)], dtype=np.float64)
    law = degrees / degrees.sum() if degrees.sum() else np.ones(1)
    sum_p2 = float(law @ law)
    if plan.single:
        name, epsilon = "published:theorem-5.5", epsilon_single(plan.randomizer.epsilon, sum_p2, context.delta)
    else:
        e1 = load(graph.n, sum_p2, half, 1.0, corrected=False)
        name, epsilon = "published:theorem-5.3", epsilon_all(plan.randomizer.epsilon, e1, half)
    return claim_of_reports(
        context,
        Observer.CURATOR,
        name,
        conditioning,
        np.array([epsilon]),
        (0, Observer.CURATOR),
        [_ONE_LAW],
        bound=False,
    )


def claim_of_reports(
    context: AuditContext,
    observer: Observer,
    method: str,
    conditioning: Conditioning,
    epsilons: Floats,
    worst: tuple[int, Name] | None,
    stated: Sequence[str],
    *,
    bound: bool = True,
) -> Claim:
    """Return a claim; `epsilons` has one value per user, or one that holds for each."""
    assumptions = (*context.assumptions, *stated)
    epsilon = spread_of(epsilons)
    return claim_of(
        context.run.protected,
        observer,
        method,
        conditioning,
        context.delta,
        worst,
        assumptions,
        epsilon=epsilon,
        bound=bound,
    )


@dataclass
class Timing:
    """The deviations of a run's reports from the timing of the plan.

    `late[v, w, r]` is the round in which w passes on what v sent it in round r, where that is not r + 1.
    """

    late: dict[tuple[Peer, Peer, int], int] = field(default_factory=dict)
    passed_over: set[tuple[Peer, Peer, int]] = field(default_factory=set)  # v keeps its reports for w in that round
    most_on_edge: int = 0  # reports that one user sent another in one round

    @property
    def times(self) -> int:
        """Return how often users were late."""
        return len(self.late) + len(self.passed_over)


def timing_of(views: Mapping[Peer, Contents], rounds: int) -> Timing:
    found = Timing()
    for user, contents in views.items():
        if is_user(user):
            _read(found, user, contents, rounds)
    return found


def _read(found: Timing, user: Peer, contents: Contents, rounds: int) -> None:
    reached = 0  # the round whose marks it waits for
    marked: dict[Peer, int] = {}  # the last mark of each neighbour
    sent: dict[tuple[Peer, int], int] = {}
    for record in contents.records:
        if record.kind == SENT and is_user(record.body.receiver):
            message, peer = public_message(record), record.body.receiver
            if message.type == MARK:
                reached = Round(*message.fields).round
                if marked.get(peer, 0) < reached - 1:
                    found.passed_over.add((user, peer, reached))
            elif message.type == RELAY:
                key = peer, Hop(*message.fields).round
                sent[key] = sent.get(key, 0) + 1
        elif record.kind == RECEIVED and is_user(record.body.sender) and public_message(record).type == MARK:
            number, peer = Round(*public_message(record).fields).round, record.body.sender
            marked[peer] = number
            if number < reached:
                found.late[peer, user, number] = min(reached + 1, rounds + 1)
    found.most_on_edge = max(found.most_on_edge, *sent.values(), 0)


def laws_with(graph: Graph, stay: float, rounds: int, timing: Timing) -> Floats:
    """Return the laws of the reports' final places for the timing of the run; row j is that of report j."""
    users = np.eye(graph.n)
    due = {1: users}  # round -> [place, report] of the reports sent on in it
    for number in range(1, rounds + 1):
        here = due.pop(number, None)
        if here is None:
            continue
        for place, peers in enumerate(graph.neighbours):
            mass = here[place]
            if not mass.any():
                continue
            kept = stay if peers else 1.0
            _add(due, number + 1, place, kept * mass)
            for peer in peers:
                kept_here = (place, peer, number) in timing.passed_over
                when = number + 1 if kept_here else timing.late.get((place, peer, number), number + 1)
                _add(due, when, place if kept_here else peer, (1.0 - stay) / len(peers) * mass)
    return np.ascontiguousarray(due.get(rounds + 1, np.zeros_like(users)).T)


def _add(due: dict[int, Floats], number: int, place: int, mass: Floats) -> None:
    if number not in due:
        due[number] = np.zeros((len(mass), len(mass)))
    due[number][place] += mass
