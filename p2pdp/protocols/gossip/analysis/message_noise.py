"""What noise on the messages of gossip would buy, and at what price: the trade-off as `plan` shows it.

For a handful of ratios of `message_sigma` to sigma: how much of local differential privacy the worst and the average
pair would lose if nothing were late (`forecast.py`), the worst of those who are no neighbours, and
the standard error of a user's own result. Neighbours always learn most, for a user's first message is
its noised value.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from p2pdp.audit.ground import sensitivity_of
from p2pdp.audit.tradeoff import Tradeoff
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.gossip.analysis.fast import fixed_rounds
from p2pdp.protocols.gossip.analysis.forecast import forecast
from p2pdp.protocols.run_plan import RunPlan

RATIOS: Final = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)


def tradeoff_of(run: RunPlan, delta: float) -> list[Tradeoff] | None:
    """Rising in noise, that of the spec included; None where nothing can be forecast."""
    plan = run.plan
    if run.graph is None or plan.noise.name != "gaussian":
        return None
    ratios = set(RATIOS)
    if plan.message_noise is not None:
        ratios.add(plan.message_noise.scale / plan.noise.scale)
    found = forecast(run, sorted(ratios))
    if isinstance(found, str):
        return None
    chosen = np.zeros((run.n, len(found.observers)))
    chosen[found.observers, np.arange(len(found.observers))] = 1.0
    _, own, fresh = fixed_rounds(run).shares(chosen)
    far = np.ones(chosen.shape, dtype=bool)
    for column, observer in enumerate(found.observers):
        far[[observer, *run.graph.neighbours[observer]], column] = False
    sigma, mu = plan.noise.scale * plan.step, sensitivity_of(run) / plan.noise.scale
    return [
        Tradeoff(
            ratio=ratio,
            message_sigma=ratio * sigma,
            leak_max=float(np.nanmax(leak)),
            leak_far_max=float(leak[far].max()) if far.any() else None,
            leak_mean=float(np.nanmean(leak)),
            epsilon_max=gaussian.epsilon_of(delta, mu * math.sqrt(float(np.nanmax(leak)))),
            epsilon_mean=gaussian.epsilon_of(delta, mu * math.sqrt(float(np.nanmean(leak)))),
            standard_error=sigma * math.sqrt((own + ratio**2 * fresh) / len(found.observers)),
        )
        for ratio, leak in zip(sorted(ratios), found.leaks, strict=True)
    ]
