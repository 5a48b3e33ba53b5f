"""What the rounding of models adds to claims about a walk that learns: `privacy/descent_rounding.py` for a run.

The scale of a user's dithers is that of its recorded draw. Whoever sent a model and drew no dither may have told
anything by its last bits, so claims by iteration are refused then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.audit.ground import Ground, sensitivity_of
from p2pdp.core.arrays import Floats
from p2pdp.core.draws import DITHER
from p2pdp.core.ids import is_user
from p2pdp.privacy.descent_rounding import Steps
from p2pdp.protocols.learning import OWN, ROWS_MAX
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.sgd import SgdPlan

NO_DITHER: Final = "user {}: its models carry no dither, so that their last bits may tell anything"
_SAID: Final = (
    "float rounding moves models and gradients by at most {:.1e} deviations of their noise in all; twice that is added"
)
_OWN: Final = (
    "the objective's own code computes gradients to within {:.1e} and projections to within {:.1e}, and leaves all "
    "numbers of a model within {:.6g}"
)


@dataclass(frozen=True)
class Rounding:
    """`nu` as in the accounting, what it rests on, and mu of all of a user's noised gradients, for each user."""

    nu: float
    said: tuple[str, ...]
    ceilings: Floats


def rounding_of(ground: Ground) -> Rounding | str:
    """Of what is recorded or, of a schedule, foreseen; or why there is no bound."""
    run, transcript = ground.run, ground.transcript
    plan: SgdPlan = run.plan
    ceilings = np.full(run.n, math.inf)
    if plan.noise.name == "none":
        return Rounding(0.0, (), ceilings)
    one, squares = steps_of(run), 0.0
    assert plan.dither is not None
    for user, drawn in transcript.draws.items():
        taken = sum(1 for mechanism in drawn if mechanism.name != DITHER)
        if not is_user(user) or not taken:
            continue
        scale = min((mechanism.scale for mechanism in drawn if mechanism.name == DITHER), default=0.0)
        noise = transcript.noise.get(user)
        if scale == 0.0 and noise is not None and (noise.own or noise.others) and user not in transcript.rebuilt:
            return NO_DITHER.format(user)
        squares += taken * one.square((scale or plan.dither.scale) * plan.fine)
    if transcript.unknown:  # of whom it cannot be told which steps they took
        return _rounding(run, squares + plan.length * one.square(plan.dither.scale * plan.fine), ceilings)
    for user, noise in transcript.noise.items():
        ceilings[user] = ratio_of(run) * math.sqrt(len(noise.own))
    return _rounding(run, squares, ceilings)


def foreseen(run: RunPlan) -> Rounding:
    """Of a run in which nobody is put out."""
    plan: SgdPlan = run.plan
    unlimited = np.full(run.n, math.inf)
    if plan.dither is None:
        return Rounding(0.0, (), unlimited)
    return _rounding(run, plan.length * steps_of(run).square(plan.dither.scale * plan.fine), unlimited)


def ratio_of(run: RunPlan) -> float:
    """How far one contribution can be moved, in standard deviations of its noise; infinite without any."""
    plan = run.plan
    return sensitivity_of(run) / plan.noise.scale if plan.noise.name == "gaussian" else math.inf


def steps_of(run: RunPlan) -> Steps:
    """The caller owes a plan with noise, and an objective whose slope has a bound."""
    plan: SgdPlan = run.plan
    descent = plan.descent
    return Steps(
        dimension=descent.dimension,
        fine=plan.fine,
        coarse=descent.step,
        range_=plan.model_range,
        rate=plan.rate,
        clip=descent.clip,
        sigma=plan.noise.scale * descent.step,
        smoothness=descent.guarantees.smoothness or 0.0,
        regularization=descent.regularization,
        radius=descent.radius,
        rows=min(descent.batch or ROWS_MAX, ROWS_MAX),
        own=run.spec.task.kind == OWN,
    )


def _rounding(run: RunPlan, squares: float, ceilings: Floats) -> Rounding:
    nu = math.sqrt(squares)
    said = [_SAID.format(nu)]
    if run.spec.task.kind == OWN:
        one = steps_of(run)
        said.append(_OWN.format(one.floats, one.received, one.range_))
    return Rounding(nu, tuple(said), ceilings)
