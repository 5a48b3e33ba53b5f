"""Claims about network shuffling: what walks hide of whose report is whose (`privacy/shuffle/overlap.py`).

The curator sees which reports each user handed in, the graph, and when users were late, and knows no route: that is its
view. By how much the laws of two users' reports overlap is worked out for the timing that the run had, never for
the routes: given these nothing is hidden. Everybody else sees the published estimate, which is made of all reports
alike, as after a perfect shuffle; a relay sees sealed reports besides, which tell it nothing that the seal does not.
`single` hands over a part of what `all` does, so the curator's bound holds for it as it is.

The theorems of [LTT22] need the same law for every user; they are shown beside this, and bound nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.handed_in import told_by_skeletons
from p2pdp.audit.neighbours import graph_of
from p2pdp.audit.recorded import refused, unlike_plan
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.ids import CURATOR, is_user
from p2pdp.core.messages import OPENED_REPORT
from p2pdp.ledger.records import OWN, public_message
from p2pdp.protocols.shuffle.analysis.claims import (
    COVERED,
    NO_COVER,
    PERMUTED,
    PUBLISHED,
    SEALED,
    WITH_CURATOR,
    among,
    categories_of,
    claim_of_reports,
    enclosed,
    not_hidden,
    printed,
)
from p2pdp.protocols.shuffle.analysis.relay_timing import Timing, laws_with, timing_of
from p2pdp.protocols.shuffle.plan import ShufflePlan
from p2pdp.replay.visits import put_out
from p2pdp.topology.graphs import Graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from p2pdp.topology.report_walks.overlap import overlap_least, overlaps_of_laws

_LAWS_N: Final = 1024  # users for whom all laws are worked out
_EACH_N: Final = 128  # users for whom the others' overlaps are counted one by one


def shuffle_account(ground: Ground) -> Finding:
    plan = ground.run.plan
    if not isinstance(plan, ShufflePlan):
        return Finding()
    reason = unlike_plan(ground)
    if reason is not None:
        return refused((Observer.CURATOR, Observer.PUBLIC, Observer.NODE), Method.SHUFFLE, reason)
    found = Finding(refusals=not_hidden(plan))
    if not found.refusals:
        _curator(ground, plan, found)
        _others(ground, plan, found)
    return found


def _curator(ground: Ground, plan: ShufflePlan, found: Finding) -> None:
    reason, graph, timing = _hidden(ground, plan)
    reason = told_by_skeletons(ground) or reason
    if reason is not None or graph is None:
        found.refusals.append(
            Refusal(Observer.CURATOR, Method.SHUFFLE, reason or "some users' ledgers are not at hand")
        )
        return
    rows, how = _overlaps(graph, plan, timing)
    lowers, uppers = np.array([enclosed(plan, row, ground.delta) for row in rows]).T
    worst = int(np.argmax(uppers))
    said = [how, PERMUTED, SEALED]
    if not plan.single:
        said.append(f"at least {lowers[worst]:.6g} for some data of the others, if walks were fully mixed")
    if timing.times:
        said.append(f"{timing.times} times somebody was late, which the laws take into account")
    found.claims.append(
        claim_of_reports(
            ground, Observer.CURATOR, Method.SHUFFLE, Conditioning.VIEW, uppers, (worst, Observer.CURATOR), said
        )
    )
    found.claims.append(printed(ground, plan, graph, Conditioning.VIEW))


def _hidden(ground: Ground, plan: ShufflePlan) -> tuple[str | None, Graph | None, Timing]:
    """Why routes cannot be taken to be what the walk's law says; the graph and the timing where they can."""
    graph = graph_of(ground.views, ground.run.n)
    timing = timing_of(ground.views, plan.rounds)
    missing = {user for user in ground.incomplete if is_user(user)}
    out = put_out(ground.views) | missing | ground.transcript.rebuilt
    if out:  # also one whose ledger is whole, since it came back and closed it
        who = f"user {min(out)} was put out"
        told = "what it held went another way, and its neighbours told bootstrap of the hops to it and from it"
        return f"{who}: {told}", graph, timing
    if plan.slots is not None and timing.most_on_edge >= plan.slots:
        return "an edge had no room for more in some round, so walks were not independent", graph, timing
    return None, graph, timing


def _overlaps(graph: Graph, plan: ShufflePlan, timing: Timing) -> tuple[list[Floats], str]:
    """For each user its overlaps with the others, or one row for all of them."""
    n = graph.n
    if n > _LAWS_N or (graph.edge_count == n * (n - 1) // 2 and not timing.times):
        kappa, how = overlap_least(graph, plan.stay, plan.rounds)
        return [np.full(n - 1, kappa)], f"any two walks overlap by {kappa:.4g} ({how})"
    laws = laws_with(graph, plan.stay, plan.rounds, timing) if timing.times else None
    if laws is None:
        laws = all_laws(walk_matrix(graph, plan.stay), plan.rounds)
    kappas = overlaps_of_laws(laws, plan.rounds)
    rows = [np.delete(kappas[user], user) for user in range(n)]
    least = min((float(row.min()) for row in rows if len(row)), default=1.0)
    if n > _EACH_N or categories_of(plan) not in (None, 2):  # blankets of more values take their time
        rows = [np.full(n - 1, float(row.min())) for row in rows]
    return rows, f"any two walks overlap by {least:.4g} at least (exact)"


def _others(ground: Ground, plan: ShufflePlan, found: Finding) -> None:
    """Who sees nothing but the published estimate, and its own reports."""
    arrived = _arrived(ground)
    if arrived is None:
        for observer in (Observer.NODE, Observer.PUBLIC):
            found.refusals.append(
                Refusal(observer, Method.SHUFFLE, "what was published cannot be told: the curator's ledger")
            )
        return
    colluders = len(ground.colluders)
    kinds = [(Observer.NODE, 1)] if ground.run.n > 1 else []
    if colluders:
        kinds.append((Observer.COALITION, colluders))
    if plan.slots is not None:
        kinds.append((Observer.NETWORK, 0))
    else:
        found.refusals.append(Refusal(Observer.NETWORK, Method.SHUFFLE, NO_COVER))
    user = next((one for one in range(ground.run.n) if one not in ground.colluders), 0)
    names: dict[Observer, Name] = {
        Observer.NODE: (user + 1) % ground.run.n,
        Observer.COALITION: tuple(ground.colluders),
    }
    said = [PUBLISHED, f"{arrived} reports of users are in it", SEALED]
    for observer, known in (*kinds, (Observer.PUBLIC, 0)):
        upper = np.array([among(plan, arrived - 1 - known, ground.delta)])
        worst = (user, names.get(observer, observer))
        covered = [COVERED] if observer == Observer.NETWORK else []
        found.claims.append(
            claim_of_reports(ground, observer, Method.SHUFFLE, Conditioning.PUBLIC, upper, worst, [*said, *covered])
        )
    if colluders:
        found.refusals.append(Refusal(Observer.COALITION, f"{Method.SHUFFLE} with the curator", WITH_CURATOR))


def _arrived(ground: Ground) -> int | None:
    """How many of the users' own reports were handed in; dummies are none."""
    if CURATOR not in ground.views:
        return None
    records = (record for record in ground.views[CURATOR].records if record.kind == OWN)
    handed_in = sum(public_message(record).type == OPENED_REPORT for record in records)
    dummies = sum(source.kind == "dummy" for form in ground.transcript.totals for source in form.expand())
    return handed_in - dummies
