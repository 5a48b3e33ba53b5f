"""The outlook of a pairwise sum before it runs: who hides whom, noise for the target, and what vanishing users cost."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from p2pdp.auditor.context import sensitivity_of
from p2pdp.core.draws import UNIFORM
from p2pdp.core.errors import Refused
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import COMPONENT_MAX, PairNoise, pair_noise
from p2pdp.protocols.defaults import Fact
from p2pdp.protocols.pairwise.analysis.a_priori import TRIED, opened_share, placed
from p2pdp.protocols.pairwise.plan import PairwisePlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.topology.components import is_complete, taken_out

SLACK: Final = 0.1


def outlook_of(run: RunPlan, delta: float) -> list[Fact]:
    """Return the facts in the order in which they are shown."""
    plan: PairwisePlan = run.plan
    assert run.graph is not None
    gone = run.n - plan.survivors_min
    removed = gone + plan.colluders_max
    found = placed(run.graph, removed, run.spec.run.seed or 0, ())
    facts = [
        Fact("hidden", plan.hidden, f"honest users who hide each other if {plan.survivors_min} are left"),
        Fact("honest_left", found.left, "… all honest users that are left then"),
        Fact("component_min", min(found.smallest), "… smallest component in any random placement"),
        Fact("broken", found.broken, "share of random placements that leave them unconnected"),
    ]
    if plan.settles and plan.colluders_max:
        facts.append(Fact("opened", _opened(run), "share in which colluders could open somebody's late value"))
    facts += [
        Fact("sigma", _in_data(plan, plan.noise.scale), "standard deviation of a user's own noise"),
        Fact("error_least", _error(run, gone, settled=True), f"standard error if {plan.survivors_min} users are left"),
    ]
    if not plan.settles and plan.mask != UNIFORM and gone:
        error = _error(run, gone, settled=False)
        facts.append(Fact("error_unsettled", error, "… with the pair noise of those who vanish in it"))
    mu = _mu(run, delta)
    if mu is None or plan.noise.name == "none":
        return facts
    local = _over(run, math.sqrt(run.n) * sensitivity_of(run) / mu)
    facts.append(Fact("error_gossip", local, "standard error by gossip without pair noise, at that epsilon"))
    return facts + _gaussian_facts(run, mu, removed)


def _opened(run: RunPlan) -> float:
    """Return the share of placements in which colluders open somebody's late value; named ones are where they are."""
    assert run.graph is not None
    named = run.spec.privacy.colluders
    return opened_share(run.graph, run.plan, named, 0 if named else run.plan.colluders_max, run)


def warnings_of(run: RunPlan) -> list[str]:
    """Return what makes a run worse than it need be: a graph that breaks, and masks that hide too little.

    Gaussian masks leave only the local bound where placements matter, and noise in the sum where nobody settles them.
    """
    plan: PairwisePlan = run.plan
    gone, found = run.n - plan.survivors_min, []
    honest = plan.survivors_min - plan.colluders_max
    if plan.hidden < honest:
        found.append(
            f"[graph]: once {gone} users vanish and {plan.colluders_max} collude, only {plan.hidden} of {honest} "
            "honest users hide each other, so everybody adds more noise; give users more neighbours."
        )
    if run.graph is None:
        return found
    if plan.settles and gone and plan.colluders_max and _opened(run) > 0.5:
        found.append(
            "[graph]: colluders may hold enough parts to open what a user sent before it was put out, so the bound for "
            "the curator with colluders is that of the user's own noise; give users more neighbours."
        )
    named = bool(run.spec.privacy.colluders)
    chance = (gone if plan.settles else 0) + (0 if named else plan.colluders_max)
    if plan.mask != UNIFORM and chance and not is_complete(run.graph):
        found.append(
            "[pairwise] masks: what Gaussian masks hide from the curator is a forecast where users may vanish or "
            "collude at random; the only bound is that of local noise, and --target-epsilon finds as much; uniform "
            "masks have a bound of their own."
        )
    if plan.settles or plan.mask == UNIFORM or plan.noise.scale == 0.0:
        return found
    local = _over(run, math.sqrt(run.n * plan.hidden) * plan.noise.scale)
    for count in range(1, gone + 1):
        if _error(run, count, settled=False) > local:
            who = "a single user" if count == 1 else f"{count} users"
            found.append(
                f"[pairwise] settle: with {who} gone, the pair noise that they leave in the sum makes it worse "
                'than local noise would; "shares" takes it out.'
            )
            break
    return found


def _mu(run: RunPlan, delta: float) -> float | None:
    """Return the mu of the target that the spec names, or what own noise comes to among those that hide each other."""
    noise, plan = run.spec.noise, run.plan
    if noise.epsilon is not None:
        return gaussian.mu_of_curve(noise.epsilon, noise.delta or delta)
    if plan.noise.scale == 0.0:
        return None
    return sensitivity_of(run) / float(plan.noise.scale * math.sqrt(plan.hidden))


def _gaussian_facts(run: RunPlan, mu: float, removed: int) -> list[Fact]:
    """Return the noise with which Gaussian masks would do the same, for the worst of the tried placements."""
    plan: PairwisePlan = run.plan
    assert run.graph is not None
    if run.n > COMPONENT_MAX:
        return []
    noises: list[PairNoise] = []
    for number in range(TRIED if removed else 1):
        away = taken_out(range(run.n), removed, run.spec.run.seed or 0, number)
        try:
            noises.append(pair_noise(run.graph, mu, SLACK, away))
        except Refused:
            return []
    typical = [one for one in noises if one.hidden >= plan.hidden] or noises
    sensitivity = _in_data(plan, sensitivity_of(run))
    own, pair = (max(getattr(one, name) for one in typical) * sensitivity for name in ("sigma", "pair_sigma"))
    return [
        Fact("gaussian_sigma", own, "with Gaussian masks instead: own noise for the same epsilon"),
        Fact("gaussian_pair_sigma", pair, "… and [noise] pair_sigma"),
    ]


def _error(run: RunPlan, gone: int, *, settled: bool) -> float:
    """Return the standard error of the estimate once so many users vanished, of one number."""
    plan: PairwisePlan = run.plan
    assert run.graph is not None
    left = run.n - gone
    variance = left * plan.noise.scale**2
    if not settled:
        pairs = 2.0 * run.graph.edge_count * (left / run.n) * (gone / max(1, run.n - 1))
        variance += pairs * plan.mask.scale**2
    return _over(run, math.sqrt(variance), left)


def _over(run: RunPlan, error: float, left: int | None = None) -> float:
    """Return an error of the sum, in steps of the grid, as one of the estimate in data units."""
    divisor = _counted(run.plan, run.n if left is None else left) if run.plan.task == "mean" else 1
    return _in_data(run.plan, error) / divisor


def _counted(plan: PairwisePlan, left: int) -> int:
    """Return by how much a sum is divided if so many users are left; of rows, if those who have fewest are."""
    if plan.records is None or plan.records.rows is None:
        return left
    return sum(sorted(plan.records.rows)[:left])


def _in_data(plan: PairwisePlan, steps: float) -> float:
    return float(np.ldexp(steps, plan.grid_exponent))
