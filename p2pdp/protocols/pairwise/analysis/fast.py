"""Pairwise sums without peers, frames and ledgers.

Guarantee: the result is that of the simulated world on the same seed, in runs in which nobody vanishes: own noise comes
from the streams of that world, and all masks cancel. `messages` counts the parts of keys that users send each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p2pdp.assembly.outcome import Outcome
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.pairwise.masking import wrapped
from p2pdp.protocols.pairwise.plan import PairwisePlan
from p2pdp.sim.trials import Trials


def fast_sums(trials: Trials) -> Iterator[Outcome]:
    for number in range(trials.count):
        trials.started(number)
        run, rows = trials.again(number)
        plan: PairwisePlan = run.plan
        total: Any = 0
        for user in range(run.n):
            total = total + run.protocol.inputs(plan, rows(user))[0].contribution(0)
            if plan.noise.name != "none":
                (drawn,) = SeededSampler(trials.seed + number, f"draws/{user}/1").batch(plan.noise, plan.shape, 1)
                total = total + drawn
        yield Outcome(
            run.protocol.publish(plan, [wrapped(total)]),
            {user: {0: 1} for user in range(run.n)},
            run.exchanges,
            over=True,
            survivors=list(range(run.n)),
        )
