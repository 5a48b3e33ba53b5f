"""What can be claimed about the broker of a run that has one: what can be claimed about whoever watches the network.

A broker passes on every frame and so sees who sends to whom, when and how much, and opens none: a claim about
whoever watches the network, and a refusal, holds for it in the same words. What rests on a hidden route is refused,
unless cover hides the route from the wires too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p2pdp.core.claims import Claim, Observer, Refusal
from p2pdp.core.spec import Spec
from p2pdp.transports.registry import transport_kind


def has_broker(spec: Spec) -> bool:
    """Return whether somebody carries every message of such a run."""
    return transport_kind(spec.run.transport).has_broker


def claims_with_broker(spec: Spec, claims: Sequence[Claim]) -> list[Claim]:
    """Each claim about the network is followed by the one about the broker."""
    if not has_broker(spec):
        return list(claims)
    return [
        one for claim in claims for one in ((claim, _same(claim)) if claim.observer == Observer.NETWORK else (claim,))
    ]


def refusals_with_broker(spec: Spec, refusals: Sequence[Refusal]) -> list[Refusal]:
    if not has_broker(spec):
        return list(refusals)
    known = {refusal.method for refusal in refusals if refusal.observer == Observer.BROKER}
    return [
        one
        for refusal in refusals
        for one in (
            (refusal, replace(refusal, observer=Observer.BROKER))
            if refusal.observer == Observer.NETWORK and refusal.method not in known
            else (refusal,)
        )
    ]


def _same(claim: Claim) -> Claim:
    pair = claim.worst_pair
    return replace(claim, observer=Observer.BROKER, worst_pair=None if pair is None else (pair[0], Observer.BROKER))
