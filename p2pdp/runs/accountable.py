"""Which runs are too large for their costs to be computed beforehand: `plan` and a node refuse them at once.

The limits are such that what is allowed takes minutes at most on one machine. They are no limits of runs: a local run
may be larger.
"""

from __future__ import annotations

from typing import Any, Final

from p2pdp.core.errors import Refused
from p2pdp.core.spec import Spec
from p2pdp.files.combinations import contributions, learns, ring

USERS_MAX: Final = 200_000
RING_MAX: Final = 50_000  # contributions in all: each is replayed
WALK_MAX: Final = 1_000_000  # contributions in all
TOKENS_MAX: Final = 1_000  # of a random walk
ROUNDS_MAX: Final = 20_000  # of gossip
LEARNING_MAX: Final = 5_000  # rounds of learning by gossip, in all
ACTIVATIONS_MAX: Final = 200_000
RELAYS_MAX: Final = 100_000  # rounds of shuffling


def check_accountable(spec: Spec, plan: Any = None) -> None:
    """`Refused` where computing costs would take too long; with the plan also by what follows from the graph."""
    _check("[run] nodes", "users", spec.run.nodes, USERS_MAX)
    if ring(spec):
        _check("[walk] laps", "contributions on a ring", contributions(spec), RING_MAX)
    elif spec.walk is not None:
        _check("[walk] hops", "contributions on a random walk", contributions(spec), WALK_MAX)
        _check("[walk] tokens", "tokens on random walks", spec.walk.tokens, TOKENS_MAX)
    elif spec.shuffle is not None:
        _check("[shuffle] rounds", "rounds of shuffling", _rounds(spec.shuffle.rounds, plan), RELAYS_MAX)
    elif spec.gossip is not None and spec.gossip.activations is not None:
        _check("[gossip] activations", "activations", spec.gossip.activations, ACTIVATIONS_MAX)
    elif spec.gossip is not None:
        gradients = spec.task.rounds or 1
        rounds = _rounds(spec.gossip.rounds, None) * gradients if plan is None else plan.rounds
        most = LEARNING_MAX if learns(spec) else ROUNDS_MAX
        _check("[gossip] rounds", "rounds of gossip in all", max(rounds, gradients), most)


def _rounds(given: int | str | None, plan: Any) -> int:
    if plan is not None:
        return int(plan.rounds)
    return given if isinstance(given, int) else 0


def _check(name: str, what: str, actual: int, most: int) -> None:
    if actual > most:
        raise Refused(
            f"{name}: this run has {actual:,} {what}, and what a run costs is computed for at most {most:,} of them"
        )
