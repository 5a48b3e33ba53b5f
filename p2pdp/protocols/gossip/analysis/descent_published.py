"""The formulas of [CEBM22] for learning by gossip on a run that happened, as claims beside what was told.

[CEBM22, Theorem 6] (of graphs that stay) and [CEBM22, Theorem 11] (of graphs that change) add up, over blocks and
messages, how much of a user's weight is in each message of a block; colluders are one node, as in the paper's section
G. Proposition 1 is for random graphs of each round. None is a bound: messages share their noise, and what a block
leaves in the states of others is sent on in later blocks, which the proofs leave out. With one round a block nothing
at all is printed for users who are no neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.audit.claims import claim_of, kind_of, spread_of, worst_of
from p2pdp.audit.ground import PUBLIC_ROUTE, Ground
from p2pdp.core.arrays import Bools, Floats
from p2pdp.core.claims import Claim, Conditioning
from p2pdp.privacy.linear.layers import Layer, Layers, View
from p2pdp.privacy.linear.published import theorem_1, theorem_4_alpha_most
from p2pdp.privacy.renyi import best_epsilon, renyi_epsilons
from p2pdp.protocols.gossip.sgd import GossipSgdPlan

_ROUNDING: Final = 1e-9
_SHARED: Final = "no bound: messages share their noise, and what earlier blocks left in states is not counted"
_MESSAGE_NOISE: Final = "the formula knows of no noise on messages and leaves it out"


@dataclass(frozen=True, slots=True)
class Seen:
    """Some observers by name, and the exact leak of each user (row) for each, in gradients; None where unknown."""

    names: Sequence[int | tuple[int, ...]]
    exact: Floats | None


def published_claims(ground: Ground, matrices: Sequence[Any], seen: Seen) -> tuple[list[Claim], Floats | None]:
    """Claims, and the leak of each pair by the theorem, indexed like all matrices; None of colluders."""
    plan: GossipSgdPlan = ground.run.plan
    groups = [name if isinstance(name, tuple) else (name,) for name in seen.names]
    leak = printed_leaks(plan, matrices, groups)
    for column, group in enumerate(groups):
        leak[list(group), column] = np.nan
    doubled = (ground.sensitivity / plan.noise.scale) ** 2
    pairs = ~np.isnan(leak)
    epsilons = np.full(leak.shape, np.nan)
    epsilons[pairs] = renyi_epsilons(doubled * leak[pairs], ground.delta)
    name = "theorem-6" if plan.coin is None else "theorem-11"
    claims = [_claim(ground, seen, name, epsilons, None if seen.exact is None else seen.exact > leak + _ROUNDING)]
    if plan.coin is not None:
        claims.append(_claim(ground, seen, "proposition-1", _proposition_1(ground, matrices, groups), None))
    if any(len(group) > 1 for group in groups):
        return claims, None
    matrix = np.full((ground.run.n, ground.run.n), np.nan)
    matrix[:, [group[0] for group in groups]] = leak
    return claims, matrix


def printed_leaks(plan: GossipSgdPlan, matrices: Sequence[Any], groups: Sequence[Sequence[int]]) -> Floats:
    """Equations (8) and (12), of each user (row) for users who pool (column)."""
    found = np.zeros((plan.n, len(groups)))
    nothing = np.zeros(0, dtype=np.int64)
    fixed = all(matrix is matrices[0] for matrix in matrices)
    for block in range(1 if fixed else plan.gradients):
        rounds = matrices[block * plan.block : (block + 1) * plan.block]
        layers = Layers(plan.n, [Layer(matrix, nothing) for matrix in rounds[:-1]])
        views = [View({number: _near(one, group) for number, one in enumerate(rounds)}) for group in groups]
        found += theorem_1(layers, views)
    return found * (plan.gradients if fixed else 1)


def _proposition_1(ground: Ground, matrices: Sequence[Any], groups: Sequence[Sequence[int]]) -> Floats:
    """Epsilon of each user (row): whoever was met in a block tells all of its gradient, all others share the rest."""
    plan: GossipSgdPlan = ground.run.plan
    mu = ground.sensitivity / plan.noise.scale
    most = theorem_4_alpha_most(mu) - 1.0
    found = np.full((plan.n, len(groups)), np.nan)
    for column, group in enumerate(groups):
        total = np.zeros(plan.n)
        for block in range(plan.gradients):
            near = [_near(one, group) for one in matrices[block * plan.block : (block + 1) * plan.block]]
            met = np.zeros(plan.n, dtype=bool)
            met[[user for some in near for user in some]] = True
            others = plan.n - max(len(some) for some in near)
            total += np.where(met, 1.0, min(1.0, sum(len(some) for some in near) / max(1, others)))
        values, places = np.unique(total, return_inverse=True)
        each = [_renyi(2.0 * mu**2 * value, ground.delta, most) for value in values.tolist()]
        found[:, column] = np.array(each)[places]
        found[list(group), column] = np.nan
    return found


def _renyi(doubled: float, delta: float, most: float) -> float:
    return best_epsilon(lambda excess: (1.0 + excess) * doubled / 2.0, delta, excess_most=most)


def _near(matrix: Any, group: Sequence[int]) -> list[int]:
    rows = matrix[list(group)].tocoo()
    found: list[int] = np.setdiff1d(rows.col[rows.data != 0.0], list(group)).tolist()
    return found


def _claim(ground: Ground, seen: Seen, name: str, epsilons: Floats, violated: Bools | None) -> Claim:
    hidden = name == "proposition-1"  # which is about graphs that the observer does not know
    noised = () if ground.run.plan.message_noise is None else (_MESSAGE_NOISE,)
    return claim_of(
        kind_of(seen.names[0]),
        f"published:{name}",
        Conditioning.VIEW if hidden else Conditioning.PUBLIC,
        ground.delta,
        worst_of(epsilons, seen.names),
        (*(() if hidden else (PUBLIC_ROUTE,)), _SHARED, *noised, *ground.assumptions),
        epsilon=spread_of(epsilons),
        bound=False,
        violated_pairs=None if violated is None else int(violated.sum()),
    )
