"""The local ceiling of reports: each seen alone, without the others that hide whose it is."""

from __future__ import annotations

import math

from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.local import ceiling_of, not_told
from p2pdp.audit.recorded import refused, unlike_plan
from p2pdp.core.claims import Method, Observer
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.mechanisms.reporting.reals import RealReports


def local_account_of_reports(ground: Ground) -> Finding:
    refusal = not_told(ground)
    if refusal is not None:
        return refusal
    reason = unlike_plan(ground)
    if reason is not None:
        return refused((Observer.NETWORK,), Method.LOCAL, reason)
    randomizer, delta = ground.run.plan.randomizer, ground.delta
    counts = [len(own) for own in ground.transcript.own_noise.values()]
    if isinstance(randomizer, RealReports) and randomizer.epsilon is None:
        mus = [randomizer.mu * math.sqrt(count) for count in counts]
        return ceiling_of(ground, [gaussian.epsilon_of(delta, mu) for mu in mus], mus)
    return ceiling_of(ground, [epsilon_of_report(randomizer, delta) * count for count in counts], None)


def epsilon_of_report(randomizer: Randomizer, delta: float) -> float:
    """Of one report that everybody sees."""
    if isinstance(randomizer, RealReports) and randomizer.epsilon is None:
        return gaussian.epsilon_of(delta, randomizer.mu)
    assert randomizer.epsilon is not None
    return randomizer.epsilon
