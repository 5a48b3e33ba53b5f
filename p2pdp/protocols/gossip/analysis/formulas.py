"""The formulas of [CEBM22] for a run that happened, as claims beside the exact ones.

Theorem 1 and Corollary 1 (for users who pool: Theorem 12 and Corollary 3) are printed as bounds for each pair and
are none: `violated_pairs` counts where more is told. Epsilon is what their Rényi divergences convert to at best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.audit.claims import claim_of, kind_of, spread_of, worst_of
from p2pdp.audit.ground import PUBLIC_ROUTE, Ground
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning
from p2pdp.privacy.linear.layers import View
from p2pdp.privacy.linear.published import corollary_1, theorem_1
from p2pdp.privacy.renyi import renyi_epsilons
from p2pdp.protocols.gossip.analysis.views import GossipViews

_ROUNDING: Final = 1e-9
_MESSAGE_NOISE: Final = "the formula knows of no noise on messages and leaves it out"
_SUM: Final = "added up over all users the formula is a bound, which the mean over pairs respects: {:.4g} of local"


@dataclass(frozen=True, slots=True)
class Printed:
    """Some observers, by name, the exact leak of each user (row) for each of them, and what they saw."""

    names: Sequence[int | tuple[int, ...]]
    exact: Floats
    views: Sequence[View]


def printed_claims(
    ground: Ground, views: GossipViews, of: Printed, mu_local: float
) -> tuple[list[Claim], Floats | None]:
    """Claims, and the leak of each pair by Theorem 1, indexed like all matrices; nothing without noise."""
    if mu_local == math.inf:
        return [], None
    pooled = isinstance(of.names[0], tuple)
    formulas = {"theorem-12" if pooled else "theorem-1": theorem_1(views.layers, of.views)}
    if views.regular:
        groups = [name if isinstance(name, tuple) else (name,) for name in of.names]
        rounds = ground.run.plan.rounds
        formulas["corollary-3" if pooled else "corollary-1"] = corollary_1(views.weights, groups, rounds)
    claims = [_claim(ground, views, of, name, leak, mu_local) for name, leak in formulas.items()]
    matrix = np.full((ground.run.n, ground.run.n), np.nan)
    for name, column in zip(of.names, next(iter(formulas.values())).T, strict=True):
        if isinstance(name, int):
            matrix[:, name] = column
            matrix[name, name] = np.nan
    return claims, None if pooled else matrix


def _claim(ground: Ground, views: GossipViews, of: Printed, name: str, leak: Floats, mu_local: float) -> Claim:
    pairs = ~np.isnan(of.exact)
    printed = np.where(pairs, leak, np.nan)
    epsilons = renyi_epsilons(mu_local**2 * printed[pairs], ground.delta)
    said = [PUBLIC_ROUTE, _SUM.format(float(np.mean(printed[pairs])))]
    if views.layers.noises:
        said.append(_MESSAGE_NOISE)
    return claim_of(
        kind_of(of.names[0]),
        f"published:{name}",
        Conditioning.PUBLIC,
        ground.delta,
        worst_of(printed, of.names),
        (*said, *ground.assumptions),
        epsilon=spread_of(epsilons),
        bound=False,
        violated_pairs=int(np.sum(of.exact[pairs] > printed[pairs] * (1.0 + _ROUNDING) + _ROUNDING)),
    )
