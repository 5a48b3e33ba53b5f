"""What descent by a random walk on the complete graph tells whoever does not know who took which step, for any loss.

The observer is taken to see every model, which is more than it sees, but of the path only what its own visits tell:
whom it had a token from and passed it to. All other steps were taken by somebody drawn uniformly in secret
(`accounting/sampled_steps.py`). So these claims need no contraction, where those by iteration refuse; which are
less depends on noise and numbers, and both hold a priori.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from p2pdp.accounting.a_priori import binomial_visits, cut_of
from p2pdp.accounting.sampled_steps import RATIO_MAX, SampledSteps
from p2pdp.audit.beforehand_walks import A_PRIORI
from p2pdp.audit.ground import Ground, sensitivity_of
from p2pdp.audit.hidden_path import HIDDEN_PATH, OWN_VIEW
from p2pdp.core.claims import Claim, Refusal
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk_sgd import SgdPlan

Floats = npt.NDArray[np.float64]

_SECRET: Final = (
    "the observer sees all models, and of the path its own neighbours in it, user 0's first step and no more"
)
_STATELESS: Final = "a user's gradient depends on nothing but the model and its examples"
_KEPT: Final = 1.0 - 1e-5  # of delta, beside what the laws of visits and of neighbours leave out
_KNOWN_MAX: Final = 24  # steps that may be known to be one user's


def secret_steps(ground: Ground, observer: str, *, assumed: tuple[str, ...]) -> Claim | Refusal:
    """`node`, who knows its neighbours on the path; `curator`, who knows who sent it each total; or `public`."""
    run, plan = ground.run, ground.run.plan
    reason = why_not_secret(run)
    if reason is not None:
        return Refusal(observer, HIDDEN_PATH, reason)
    node = observer == "node"
    others = run.n - 1 if node else run.n
    chances = _chances(run, observer, ground.delta)
    if chances is None:
        return Refusal(observer, HIDDEN_PATH, "an observer is next to a user on the path too often for it to hide much")
    steps = SampledSteps(ratio_of(run), others, plan.length, ground.delta * _KEPT)
    rest = steps.averaged(chances)
    first = rest if plan.tokens > 1 else steps.averaged([0.0, *chances])
    name: int | str = 1 if node else observer
    return Claim(
        observer=observer,
        unit="user",
        relation="replace",
        delta=ground.delta,
        method=HIDDEN_PATH,
        conditioning=A_PRIORI,
        epsilon_max=max(first, rest),
        epsilon_mean=min(max(first, rest), (first + (run.n - 1) * rest) / run.n),
        mu_max=None,
        mu_mean=None,
        worst_pair=(0, name),
        bound=True,
        violated_pairs=None,
        assumptions=(*([OWN_VIEW] if node else []), _SECRET, _STATELESS, *assumed, *ground.assumptions),
    )


def why_not_secret(run: RunPlan) -> str | None:
    """Why nothing is claimed from who took a step being secret."""
    plan: SgdPlan = run.plan
    if plan.order != "complete" or run.n == 1:
        return "who takes a step is drawn uniformly from all others on the complete graph only"
    if plan.descent.batch is not None:
        return "batches depend on how often a user was visited, and so on the path that is to be hidden"
    if not ratio_of(run) <= RATIO_MAX:
        return f"gradients may move more than {RATIO_MAX:g} times as far as their noise reaches"
    return None


def ratio_of(run: RunPlan) -> float:
    """How far one contribution can be moved, in standard deviations of its noise; infinite without any."""
    plan = run.plan
    return sensitivity_of(run) / plan.noise.scale if plan.noise.name == "gaussian" else float("inf")


def _chances(run: RunPlan, observer: str, delta: float) -> list[float] | None:
    """Of 0, 1, ... known steps of one user, its own start left out; None where there may be too many."""
    plan: SgdPlan = run.plan
    if observer == "public":
        return [1.0]
    if observer == "curator":
        return _binomial(np.array([float(plan.tokens)]), np.ones(1), 1.0 / run.n, cut_of(delta))
    law = binomial_visits(plan.length, 1.0 / run.n, 0, delta)
    begun = 2.0 if plan.tokens == 1 else float(plan.tokens)  # what user 0 knows of a walk that it begins
    return _binomial(2.0 * law.counts + begun, law.masses, 1.0 / (run.n - 1), cut_of(delta))


def _binomial(trials: Floats, masses: Floats, chance: float, cut: float) -> list[float] | None:
    """The law of how many of so many neighbours are the one user, but for `cut`; None if they are too many."""
    from scipy.stats import binom

    found: list[float] = []
    while len(found) <= _KNOWN_MAX:
        found.append(float(masses @ binom.pmf(len(found), trials, chance)))
        if float(masses @ binom.sf(len(found) - 1, trials, chance)) <= cut:
            return found
    return None
