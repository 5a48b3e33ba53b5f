"""Claims about network shuffling: what walks hide of whose report is whose (`accounting/network_shuffle_overlap.py`).

The curator sees which reports each user handed in, the graph, and when users were late, and knows no route: that is its
view. By how much the laws of two users' reports overlap is worked out for the timing that the run had, never for
the routes: given these nothing is hidden. Everybody else sees the published estimate, which is made of all reports
alike, as after a perfect shuffle; a relay sees sealed reports besides, which tell it nothing that the seal does not.
`single` hands over a part of what `all` does, so the curator's bound holds for it as it is.

The theorems of `papers/003` need the same law for every user; they are shown beside this, and bound nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from p2pdp.accounting.network_shuffle import epsilon_all, epsilon_single, load
from p2pdp.accounting.network_shuffle_overlap import overlapped
from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.relay_timing import Timing, graph_of, laws_with, timing_of
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.ids import CURATOR, is_user
from p2pdp.core.messages import REPORT
from p2pdp.ledger.messages import public_message
from p2pdp.ledger.records import RECEIVED
from p2pdp.mechanisms.category_reports import KaryReports
from p2pdp.protocols.shuffling_plan import ShufflePlan
from p2pdp.topology.graphs import Graph
from p2pdp.topology.walk_matrix import all_laws, walk_matrix
from p2pdp.topology.walk_overlap import overlap_least, overlaps_of_laws

SHUFFLE: Final = "shuffle"
_LAWS_N: Final = 1024  # users for whom all laws are worked out
_EACH_N: Final = 128  # users for whom the others' overlaps are counted one by one
_PERMUTED: Final = "every holder permutes its reports, and the observer saw no report on its way"
_SEALED: Final = "whoever cannot open a sealed report learns nothing of it, nor whether two are alike"
_PUBLISHED: Final = "the published estimate is made of all reports alike"
_NOT_PURE: Final = "reports have no pure epsilon, and the bounds for hidden reports need one"
_NO_COVER: Final = "it sees every route: [shuffle] cover = true hides them"
_WITH_CURATOR: Final = (
    "together with the curator they know a report that one of them held in round 1: the local ceiling stands"
)

Floats = npt.NDArray[np.float64]


def shuffle_account(ground: Ground) -> Finding:
    plan = ground.run.plan
    if not isinstance(plan, ShufflePlan):
        return Finding()
    epsilon_0 = plan.randomizer.epsilon
    if epsilon_0 is None or not math.isfinite(epsilon_0):
        what = _NOT_PURE if epsilon_0 is None else "reports are not randomized: nothing protects them but the seal"
        return Finding(refusals=[Refusal(observer, SHUFFLE, what) for observer in ("curator", "public", "node")])
    found = Finding()
    _curator(ground, plan, epsilon_0, found)
    _others(ground, plan, epsilon_0, found)
    return found


def _curator(ground: Ground, plan: ShufflePlan, epsilon_0: float, found: Finding) -> None:
    reason, graph, timing = _hidden(ground, plan)
    if reason is not None or graph is None:
        found.refusals.append(Refusal("curator", SHUFFLE, reason or "some users' ledgers are not at hand"))
        return
    rows, how = _overlaps(graph, plan, timing)
    lowers, uppers = np.array([_enclosed(plan, epsilon_0, row, ground.delta) for row in rows]).T
    worst = int(np.argmax(uppers))
    said = [how, _PERMUTED, _SEALED]
    if not plan.single:
        said.append(f"at least {lowers[worst]:.6g} for some data of the others, if walks were fully mixed")
    if timing.late:
        said.append(f"{len(timing.late)} times somebody was late, which the laws take into account")
    found.claims.append(
        _claim(ground, "curator", SHUFFLE, "view", uppers, ("curator", worst), said)  # what it saw, and no route
    )
    _published(ground, plan, epsilon_0, graph, found)


def _hidden(ground: Ground, plan: ShufflePlan) -> tuple[str | None, Graph | None, Timing]:
    """Why routes cannot be taken to be what the walk's law says; the graph and the timing where they can."""
    graph = graph_of(ground.views, ground.run.n)
    timing = timing_of(ground.views, plan.rounds)
    out = sorted(user for user in ground.incomplete if is_user(user))
    if ground.transcript.rebuilt or out:
        who = min([*out, *ground.transcript.rebuilt])
        return f"user {who} was put out, and what it held went another way", graph, timing
    if timing.torn:
        return (
            "some reports of a round came in time and others of it late: their laws cannot be told apart",
            graph,
            timing,
        )
    if plan.slots is not None and timing.most_on_edge >= plan.slots:
        return "an edge had no room for more in some round, so walks were not independent", graph, timing
    return None, graph, timing


def _overlaps(graph: Graph, plan: ShufflePlan, timing: Timing) -> tuple[list[Floats], str]:
    """For each user its overlaps with the others, or one row for all of them."""
    n = graph.n
    if n > _LAWS_N or (graph.edge_count == n * (n - 1) // 2 and not timing.late):
        kappa, how = overlap_least(graph, plan.stay, plan.rounds)
        return [np.full(n - 1, kappa)], f"any two walks overlap by {kappa:.4g} ({how})"
    laws = laws_with(graph, plan.stay, plan.rounds, timing) if timing.late else None
    if laws is None:
        laws = all_laws(walk_matrix(graph, plan.stay), plan.rounds)
    kappas = overlaps_of_laws(laws, plan.rounds)
    rows = [np.delete(kappas[user], user) for user in range(n)]
    least = min((float(row.min()) for row in rows if len(row)), default=1.0)
    if n > _EACH_N or _categories(plan) not in (None, 2):  # blankets of more values take their time
        rows = [np.full(n - 1, float(row.min())) for row in rows]
    return rows, f"any two walks overlap by {least:.4g} at least (exact)"


def _enclosed(plan: ShufflePlan, epsilon_0: float, kappas: Floats, delta: float) -> tuple[float, float]:
    return overlapped(epsilon_0, kappas, delta, _categories(plan))


def _categories(plan: ShufflePlan) -> int | None:
    """Of randomized response, which has bounds of its own."""
    return plan.randomizer.outputs if isinstance(plan.randomizer, KaryReports) else None


def _others(ground: Ground, plan: ShufflePlan, epsilon_0: float, found: Finding) -> None:
    """Who sees nothing but the published estimate, and its own reports."""
    arrived = _arrived(ground)
    if arrived is None:
        for observer in ("node", "public"):
            found.refusals.append(Refusal(observer, SHUFFLE, "what was published cannot be told: the curator's ledger"))
        return
    colluders = len(ground.colluders)
    kinds = [("node", 1), ("coalition", colluders)] if colluders else [("node", 1)]
    if plan.slots is not None:
        kinds.append(("network", 0))
    else:
        found.refusals.append(Refusal("network", SHUFFLE, _NO_COVER))
    for observer, known in (*kinds, ("public", 0)):
        others = np.ones(max(0, arrived - 1 - known))
        upper = np.array([_enclosed(plan, epsilon_0, others, ground.delta)[1] if len(others) else epsilon_0])
        whom: int | str | tuple[int, ...]
        user = next((one for one in range(ground.run.n) if one not in ground.colluders), 0)
        whom = tuple(ground.colluders) if observer == "coalition" else observer
        if observer == "node":
            whom = (user + 1) % ground.run.n
        said = [_PUBLISHED, f"{arrived} reports of users are in it", _SEALED]
        found.claims.append(_claim(ground, observer, SHUFFLE, "public", upper, (whom, user), said))
    if colluders:
        found.refusals.append(Refusal("coalition", f"{SHUFFLE} with the curator", _WITH_CURATOR))


def _arrived(ground: Ground) -> int | None:
    """How many of the users' own reports were handed in; dummies are none."""
    if CURATOR not in ground.views:
        return None
    records = (record for record in ground.views[CURATOR].records if record.kind == RECEIVED)
    handed_in = sum(public_message(record).type == REPORT for record in records)
    dummies = sum(source.kind == "dummy" for form in ground.transcript.totals for source in form.expand())
    return handed_in - dummies


def _published(ground: Ground, plan: ShufflePlan, epsilon_0: float, graph: Graph, found: Finding) -> None:
    """Theorem 5.3 or 5.5, with half of delta for the loads, and S that of mixed walks."""
    half = ground.delta / 2.0
    degrees = np.array([graph.degree(user) for user in range(graph.n)], dtype=np.float64)
    law = degrees / degrees.sum() if degrees.sum() else np.ones(1)
    sum_p2 = float(law @ law)
    if plan.single:
        name, epsilon = "published:theorem-5.5", epsilon_single(epsilon_0, sum_p2, ground.delta)
    else:
        e1 = load(graph.n, sum_p2, half, 1.0, corrected=False)
        name, epsilon = "published:theorem-5.3", epsilon_all(epsilon_0, e1, half)
    said = ["it takes all users' reports to have the same law, which a walk of finitely many rounds does not give"]
    found.claims.append(_claim(ground, "curator", name, "view", np.array([epsilon]), ("curator", 0), said, bound=False))


def _claim(
    ground: Ground,
    observer: str,
    method: str,
    conditioning: str,
    epsilons: Floats,
    worst: tuple[int | str | tuple[int, ...], int],
    said: Sequence[str],
    *,
    bound: bool = True,
) -> Claim:
    whom, user = worst
    most = float(epsilons.max())
    return Claim(
        observer=observer,
        unit="user",
        relation="replace",
        delta=ground.delta,
        method=method,
        conditioning=conditioning,
        epsilon_max=most,
        epsilon_mean=min(most, float(epsilons.mean())),
        mu_max=None,
        mu_mean=None,
        worst_pair=(user, whom),
        bound=bound,
        violated_pairs=None,
        assumptions=(*ground.assumptions, *said),
    )
