"""The local ceiling before a run: what holds against everybody, whoever is late or put out and whatever the route."""

from __future__ import annotations

from dataclasses import replace

from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.local import local_account
from p2pdp.core.claims import Conditioning
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.contributions import Noise
from p2pdp.replay.transcript import Transcript


def local_beforehand(run: RunPlan, delta: float, contributions: int) -> Finding:
    """Return the claim of users who contribute so often, each time under the noise that the plan says."""
    own = {user: Noise([run.plan.protection] * contributions) for user in range(run.n)}
    found = local_account(Ground(run, {}, Transcript(find_noise=lambda: own), (), delta, ()))
    found.claims = [replace(claim, conditioning=Conditioning.A_PRIORI) for claim in found.claims]
    return found
