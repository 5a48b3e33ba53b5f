"""What accounts of a run stand on, and what they give.

An account is a function of a `Ground` that gives a `Finding`: claims of one method and one conditioning, or the
reasons why there are none. Accounts of different conditioning stand beside each other and are never minimized
across. `audit/auditor.py` lists them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.transcript import Transcript

NOBODY_OUT = "all users take part to the end"
PUBLIC_ROUTE = "the observer knows the realised path, schedule and graph"
NOT_AT_HAND = "its ledger is not whole or not at hand"
PASSED_THROUGH = "what it saw passed through users whose ledgers are not at hand"
_HYPOTHETICAL = "hypothetical: noise and routing came from a seed"
_FAST = "the fast sampler's floating-point noise is treated as ideal"


def sensitivity_of(run: RunPlan) -> float:
    """How far replacing one value of a user can move a contribution, in grid units, rounded up."""
    own: float | None = run.plan.sensitivity
    if own is not None:
        return own
    if run.spec.data.clip is None:  # a category, which moves one count to another
        return math.nextafter(math.sqrt(2.0), 2.0)
    return Grid(run.plan.grid_exponent).sensitivity(Bounds(*run.spec.data.clip), run.dimensions)


@dataclass(frozen=True)
class Ground:
    """A verified run. Observers in `incomplete` are refused by name, for their rows are not all here."""

    run: RunPlan
    views: Mapping[Peer, Contents]
    transcript: Transcript
    incomplete: Sequence[Peer]
    delta: float
    colluders: Sequence[Peer]

    @cached_property
    def sensitivity(self) -> float:
        return sensitivity_of(self.run)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What every claim of this run rests on, whatever its method."""
        listed = []
        if self.run.plan.noise.name in ("gaussian", "laplace"):
            bits = math.log2(self.run.plan.noise.scale)
            listed.append(f"discrete noise with sigma = 2^{bits:.1f} grid steps is treated as continuous")
        if self.run.sampler == "seeded":
            listed.append(_HYPOTHETICAL)
        elif self.run.sampler == "fast":
            listed.append(_FAST)
        rebuilt = sorted(self.transcript.rebuilt)
        listed += [f"user {user}, whose ledger is not whole, followed the protocol" for user in rebuilt]
        return tuple(listed)

    def is_at_hand(self, user: Peer) -> bool:
        """Whether all that a user saw is here."""
        return user not in self.incomplete and user in self.transcript.received


@dataclass
class Finding:
    """What one account says. The matrices are [user, observer], NaN where nothing is said; coalitions [user]."""

    claims: list[Claim] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    mu: Floats | None = None
    leak: Floats | None = None
    epsilon: Floats | None = None  # of each pair, in the conditioning of the account's claims
    mu_coalition: Floats | None = None
    leak_coalition: Floats | None = None
    epsilon_coalition: Floats | None = None  # with all that the claim adds
    published: Floats | None = None  # the leak of each pair as a paper prints it
    variation: Floats | None = None  # total variation of each pair, beside `epsilon`

    def add(self, said: Iterable[Claim | Refusal]) -> None:
        for one in said:
            if isinstance(one, Claim):
                self.claims.append(one)
            else:
                self.refusals.append(one)
