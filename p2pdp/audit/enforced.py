"""What holds of one user whatever other peers do: all that its own node contributes, each value under its own noise.

On a random walk that is as many contributions as the node makes at most (`walk/walking.py`), elsewhere as many as
the plan says. Everybody else's behaviour only post-processes these, so lateness, exclusions and peers that break the
protocol are covered; claims by a hidden path, by iteration or by shuffling are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p2pdp.audit.estimates import added, cost_of, left_of
from p2pdp.audit.ground import Ground
from p2pdp.core.claims import Claim, Conditioning
from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.contributions import Noise, Recorded
from p2pdp.replay.transcript import Transcript


def enforced_limit(run: RunPlan, delta: float) -> Claim | None:
    """The claim about an observer of all messages of a random walk; None where the plan fixes all contributions."""
    plan = run.plan
    if plan.enforced_max is None:
        return None
    found = spent_in(run, 0, [plan.protection] * plan.enforced_max, delta)
    assert found is not None
    limit = f"the user's own node adds its value at most {plan.enforced_max} times, whatever it is sent"
    return replace(found, conditioning=Conditioning.A_PRIORI, assumptions=(limit, *found.assumptions))


def spent_in(run: RunPlan, user: Peer, made: Sequence[Recorded], delta: float) -> Claim | None:
    """The claim about an observer of all messages, from the recorded draws that protect each of a user's contributions.

    None where the records do not agree with a plan that has to be relied on.
    """
    cost = cost_of(run.spec)
    own = {other: Noise() for other in range(run.n)} | {user: Noise(list(made))}
    ground = Ground(run, {}, Transcript(find_noise=lambda: own), (), left_of(delta, cost), ())
    claim = next(iter(run.protocol.analysis().ceiling(ground).claims), None)
    if claim is None or made:
        return None if claim is None else added(claim, cost)
    return replace(claim, delta=delta, epsilon_max=0.0, epsilon_mean=0.0, mu_max=None, mu_mean=None)
