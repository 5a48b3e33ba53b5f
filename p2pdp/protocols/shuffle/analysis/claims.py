"""What claims about network shuffling are made of, before a run and after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from p2pdp.audit.claims import claim_of, spread_of
from p2pdp.audit.ground import Ground
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.mechanisms.reporting.categories import KaryReports
from p2pdp.privacy.shuffle.overlap import overlapped
from p2pdp.privacy.shuffle.published import epsilon_all, epsilon_single, load
from p2pdp.protocols.shuffle.plan import ShufflePlan
from p2pdp.topology.graphs import Graph

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
_ONE_LAW: Final = "it takes all users' reports to have the same law, which a walk of finitely many rounds does not give"


def not_hidden(plan: ShufflePlan) -> list[Refusal]:
    """Why nothing is claimed of hidden reports, by observer; empty where something can be."""
    epsilon_0 = plan.randomizer.epsilon
    if epsilon_0 is not None and math.isfinite(epsilon_0):
        return []
    reason = _NOT_PURE if epsilon_0 is None else _BARE
    return [
        Refusal(observer, Method.SHUFFLE, reason) for observer in (Observer.CURATOR, Observer.PUBLIC, Observer.NODE)
    ]


def categories_of(plan: ShufflePlan) -> int | None:
    """Of randomized response, which has bounds of its own."""
    return plan.randomizer.outputs if isinstance(plan.randomizer, KaryReports) else None


def enclosed(plan: ShufflePlan, kappas: Floats, delta: float) -> tuple[float, float]:
    """[lower, upper] epsilon of one report, by its overlap with each of the others; the lower end if all arrive."""
    assert plan.randomizer.epsilon is not None
    return overlapped(plan.randomizer.epsilon, kappas, delta, categories_of(plan))


def among(plan: ShufflePlan, others: int, delta: float) -> float:
    """The upper end for one report among so many others that nobody can tell apart."""
    assert plan.randomizer.epsilon is not None
    return enclosed(plan, np.ones(others), delta)[1] if others > 0 else plan.randomizer.epsilon


def printed(ground: Ground, plan: ShufflePlan, graph: Graph, conditioning: Conditioning) -> Claim:
    """Theorem 5.3 or 5.5, with half of delta for the loads, and S that of mixed walks."""
    assert plan.randomizer.epsilon is not None
    half = ground.delta / 2.0
    degrees = np.array([graph.degree(user) for user in range(graph.n)], dtype=np.float64)
    law = degrees / degrees.sum() if degrees.sum() else np.ones(1)
    sum_p2 = float(law @ law)
    if plan.single:
        name, epsilon = "published:theorem-5.5", epsilon_single(plan.randomizer.epsilon, sum_p2, ground.delta)
    else:
        e1 = load(graph.n, sum_p2, half, 1.0, corrected=False)
        name, epsilon = "published:theorem-5.3", epsilon_all(plan.randomizer.epsilon, e1, half)
    return claim_of_reports(
        ground,
        Observer.CURATOR,
        name,
        conditioning,
        np.array([epsilon]),
        (0, Observer.CURATOR),
        [_ONE_LAW],
        bound=False,
    )


def claim_of_reports(
    ground: Ground,
    observer: Observer,
    method: str,
    conditioning: Conditioning,
    epsilons: Floats,
    worst: tuple[int, Name] | None,
    said: Sequence[str],
    *,
    bound: bool = True,
) -> Claim:
    """`epsilons` are those of all users, or one that holds for each."""
    assumptions = (*ground.assumptions, *said)
    epsilon = spread_of(epsilons)
    return claim_of(observer, method, conditioning, ground.delta, worst, assumptions, epsilon=epsilon, bound=bound)
