"""How much noise local and central privacy would need in place of a run of descent, at the same epsilon and delta.

Local: everybody sees every noised gradient; accounted for as the run itself is, given the path where that is known,
else over the law of the walk. Central: a trusted curator takes as many steps with users that it draws in secret, and
publishes the model. That has the better of two accounts: by iteration, as of the run, where steps contract, and by the
secret (`privacy/iteration/sampled.py`), which holds for any loss. Sigma is None where no amount is known to be
enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from p2pdp.assembly.pools import CENTRAL, LOCAL
from p2pdp.audit.ground import sensitivity_of
from p2pdp.core.ids import Peer
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.iteration.path import exposures
from p2pdp.privacy.iteration.sampled import RATIO_MAX, SampledSteps
from p2pdp.privacy.iteration.walk import Exposure
from p2pdp.privacy.iteration.walk import epsilon as epsilon_by_iteration
from p2pdp.privacy.visits import gaussian_epsilon
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.a_priori_descent import why_not_in_advance
from p2pdp.protocols.walk.analysis.iteration import why_not
from p2pdp.protocols.walk.analysis.visits import Visits
from p2pdp.protocols.walk.sgd import SgdPlan

_NARROW: Final = 1.0 + 1e-6
_TRIES: Final = 16
_CLOSE: Final = 1.0 + 2e-3
_RATIOS: Final = (1e-9, 1e6)


def sigmas_of(
    run: RunPlan, paths: Sequence[Sequence[tuple[Peer, int]]] | None, epsilon: float | None, delta: float
) -> dict[str, float | None]:
    """In data units, at the headline's epsilon: given the paths where they are known, else in advance."""
    if epsilon is None or not 0.0 < epsilon < math.inf or run.plan.noise.name == "none":
        return {LOCAL: None, CENTRAL: None}
    return sigmas_in_advance(run, epsilon, delta) if paths is None else sigmas_along(run, paths, epsilon, delta)


def sigmas_along(
    run: RunPlan, paths: Sequence[Sequence[tuple[Peer, int]]], epsilon: float, delta: float
) -> dict[str, float | None]:
    """In data units, for whoever is worst off on these paths."""
    plan: SgdPlan = run.plan
    users = np.array([[user for user, _ in path] for path in paths], dtype=np.int64)
    gap = np.repeat(np.arange(len(paths)), plan.steps)
    unit = _unit(run) / gaussian.mu_of_curve(epsilon, delta)
    most = int(np.bincount(users.reshape(-1)).max())
    central = _secret_sigma(run, epsilon, delta)
    if why_not(plan) is None:
        told = exposures(gap, users.reshape(-1), np.tile(plan.rates, len(paths)), run.n)
        central = _least(central, math.sqrt(float(told.max())) * unit)
    return {LOCAL: math.sqrt(most) * unit, CENTRAL: central}


def sigmas_in_advance(run: RunPlan, epsilon: float, delta: float) -> dict[str, float | None]:
    """In data units, for whoever is worst off in the law of a random walk."""
    plan: SgdPlan = run.plan
    laws = dict.fromkeys(Visits(run, delta).all_tokens)

    def local(ratio: float) -> float:
        return max(gaussian_epsilon(law, ratio, delta) for law in laws)

    def central(ratio: float) -> float:
        single = plan.tokens == 1
        exposure = Exposure(run.n, plan.steps - single, starts=single, watched=False)
        return epsilon_by_iteration(ratio, exposure, plan.tokens, delta)

    secret = _secret_sigma(run, epsilon, delta)
    if why_not_in_advance(plan) is None:
        secret = _least(secret, _sigma(run, central, epsilon))
    return {LOCAL: _sigma(run, local, epsilon), CENTRAL: secret}


def _least(one: float | None, other: float) -> float:
    return other if one is None else min(one, other)


def _secret_sigma(run: RunPlan, epsilon: float, delta: float) -> float | None:
    """Guesses follow from each other, for epsilon's mu is nearly proportional to the ratio; the last that is enough."""
    wanted = gaussian.mu_of_curve(epsilon, delta)
    low, high, best = 0.0, RATIO_MAX, 0.0
    ratio = min(wanted / math.sqrt(1.0 + run.plan.length / run.n), high)
    for _ in range(_TRIES):
        found = SampledSteps(ratio, run.n, run.plan.length, delta).known(0)
        if found <= epsilon:
            low = best = ratio
        else:
            high = ratio
        if high <= low * _CLOSE or (best == ratio and (found * _CLOSE >= epsilon or ratio == RATIO_MAX)):
            break
        guess = ratio * wanted / gaussian.mu_of_curve(found, delta) * 0.9995 if 0.0 < found < math.inf else 0.0
        ratio = guess if low < guess < high else (math.sqrt(low * high) if low else high / 2.0)
    return _unit(run) / best if best else None


def _sigma(run: RunPlan, epsilon_of: Callable[[float], float], epsilon: float) -> float:
    """With the largest ratio of sensitivity to noise that stays within epsilon."""
    low, high = _RATIOS
    if epsilon_of(high) <= epsilon:
        return _unit(run) / high
    while high > low * _NARROW:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if epsilon_of(middle) <= epsilon else (low, middle)
    return _unit(run) / low


def _unit(run: RunPlan) -> float:
    return math.ldexp(sensitivity_of(run), run.plan.grid_exponent)
