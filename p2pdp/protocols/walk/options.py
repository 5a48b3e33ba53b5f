"""The section `[walk]`, and the common parts of all walks: order, length, limits and their costs.

The limit on a user's contributions to a random walk is enforced by its own node, whatever its peers send. Guarantee: a
user of a run in which everybody follows the protocol, and nobody is excluded, is visited more often than that with
probability `CHANCE` at most. So results do not change, and a user's contribution is bounded although peers may send it
tokens as often as they like.

On the complete graph visits are binomial; beyond the mean the terms of that law fall at least as fast as a geometric
series from the first one on. On another graph the returns to a user take independent times R. For any z in (0, 1),
P(R_1 + ... + R_m <= t) <= z^-t E[z^R]^m (Markov), where E[z^R] = 1 - 1/G(z), and G(z) generates the chances to be at
the user again after 0, 1, 2, ... moves; it follows from the eigenvalues of the walk. For several tokens, each way in
which m returns can be spread over them is counted on its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.claims import Unit
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.readers import HOPS, LAPS, TOKENS, one_of
from p2pdp.core.spec import Spec
from p2pdp.protocols.contract import NO_FACTS, Estimate, Fact, ProtocolDefaults, Work
from p2pdp.protocols.options import Options, Rules
from p2pdp.protocols.walk.walking import visits_bytes
from p2pdp.topology.graphs import Graph

if TYPE_CHECKING:
    from p2pdp.protocols.run_plan import RunPlan

VISITS_MAX: Final = "visits_max"
CONTRIBUTIONS_MAX: Final = 1_000_000_000
RING_MAX: Final = 50_000
WALK_MAX: Final = 1_000_000
TOKENS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class WalkPart:
    """The values of `[walk]`."""

    order: str
    laps: int | None = None
    hops: int | None = None
    tokens: int = 1


def on_ring(spec: Spec) -> bool:
    """Return whether tokens go round a ring."""
    return bool(spec.options.order == "ring")


def at_random(spec: Spec) -> bool:
    """Return whether each holder draws the next one."""
    return bool(spec.options.order == "random")


def answers(spec: Spec) -> bool:
    """Return whether users answer at random in which category they are."""
    return spec.run.protocol == "walk.histogram" and spec.privacy.unit == Unit.USER


def contributions(spec: Spec) -> int:
    """Return the number of contributions of all users to all tokens."""
    walk = spec.options
    steps = walk.laps * spec.run.nodes if walk.laps is not None else walk.hops or 0
    return int(steps * walk.tokens)


OPTIONS: Final = Options(
    section="walk",
    part=WalkPart,
    readers={"order": one_of("ring", "random"), "laps": LAPS, "hops": HOPS, "tokens": TOKENS},
    rules=Rules(
        only={
            "walk.laps": (on_ring, 'a random walk has hops; only order "ring" has laps.'),
            "walk.hops": (at_random, 'a ring has laps; only order "random" has hops.'),
            "noise.closing": (on_ring, 'only order "ring" has a closing draw.'),
            "noise.share": (
                lambda s: on_ring(s) and s.noise.mechanism == "gaussian",
                'only order "ring" with gaussian noise can share a draw among users.',
            ),
        },
        needed={
            "walk.laps": (on_ring, 'order "ring" needs it.'),
            "walk.hops": (at_random, 'order "random" needs it.'),
        },
        possible=(
            (
                "graph.kind",
                lambda s: not on_ring(s) or s.graph.kind == "ring",
                lambda s: f'[walk] order "ring" needs kind "ring", not "{s.graph.kind}".',
            ),
            (
                "noise.mechanism",
                lambda s: s.noise.mechanism != "randomized_response" or s.privacy.unit == Unit.USER,
                lambda _: (
                    'with [privacy] unit = "record" a user adds the counts of all its rows, which take "gaussian" '
                    "noise: a randomized answer for each row would err far more."
                ),
            ),
            (
                "noise.mechanism",
                lambda s: (
                    s.task.kind != "histogram" or s.noise.mechanism != "gaussian" or s.privacy.unit == Unit.RECORD
                ),
                lambda _: 'counts take gaussian noise with [privacy] unit = "record"; else take "randomized_response".',
            ),
            (
                "graph.kind",
                lambda s: not (at_random(s) and answers(s)) or s.graph.kind == "complete",
                lambda s: f'walk.histogram with [walk] order "random" needs kind "complete", not "{s.graph.kind}".',
            ),
            (
                "walk.tokens",
                lambda s: not on_ring(s) or s.options.tokens <= s.run.nodes,
                lambda s: f"a ring of {s.run.nodes} users has room for one token each at most.",
            ),
            (
                "walk.tokens",
                lambda s: contributions(s) <= CONTRIBUTIONS_MAX,
                lambda s: (
                    f"there are {contributions(s):,} contributions in all, and at most {CONTRIBUTIONS_MAX:,} are made."
                ),
            ),
        ),
    ),
    meaning="Protocols `walk.*` only. A walk makes at most 1,000,000,000 contributions in all.",
    meanings={
        "order": (
            '`"ring"`: the token goes round the ring. `"random"`: it goes to a uniformly drawn user (complete '
            "graph, its holder included) or neighbour (other graphs)."
        ),
        "laps": "How often each token goes round the ring.",
        "hops": "How many contributions each token collects.",
        "tokens": "How many tokens walk at the same time.",
    },
    examples=(WalkPart("ring", laps=1), WalkPart("random", hops=1)),
)


@dataclass(frozen=True, slots=True)
class Course:
    """The order of a walk on `n` users, its steps and tokens, and the limit on a user's contributions."""

    order: str  # ring, complete or graph
    n: int
    steps: int
    tokens: int
    visits_max: int | None  # None if only the number of steps is a limit

    @property
    def fields(self) -> dict[str, Any]:
        """Return these as fields of a plan."""
        return asdict(self)


def course_of(spec: Spec, n: int, facts: Mapping[str, Fact]) -> Course:
    """Return the course of a walk among `n` users."""
    walk: WalkPart = spec.options
    if on_ring(spec):
        if walk.tokens > n:
            raise UsageError(f"[walk] tokens: a ring of {n} users carries at most {n} tokens")
        return Course("ring", n, (walk.laps or 0) * n, walk.tokens, None)
    hops = walk.hops or 0
    if spec.graph.kind == "complete":
        return Course("complete", n, hops, walk.tokens, complete_limit(n, hops, walk.tokens))
    signed = facts.get(VISITS_MAX)
    return Course("graph", n, hops, walk.tokens, signed if isinstance(signed, int) else None)


class WalkDefaults(ProtocolDefaults):
    """The hooks that all walks share."""

    options = OPTIONS

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        """Return the limit on a user's contributions, if it takes the graph to know it."""
        walk: WalkPart = spec.options
        if walk.hops is None or spec.graph.kind == "complete":
            return NO_FACTS
        return {VISITS_MAX: graph_limit(graph.neighbours, walk.hops, walk.tokens)}

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        walk: WalkPart = spec.options
        return {"hops": walk.hops, "laps": walk.laps, "tokens": walk.tokens}

    def estimate_alone(self, plan: Any, published: Any, survivors: Sequence[Peer] | None) -> Estimate:
        """Return the estimate; of means over rows only where it does not take the route to know how many count."""
        if plan.records is None:
            return super().estimate_alone(plan, published, survivors)
        found: Estimate = self.estimate(plan, published, rows_counted(plan))  # type: ignore[attr-defined]
        return found

    def work(self, spec: Spec, plan: Any) -> Sequence[Work]:
        """Return the sizes that determine the time to compute a walk's costs: a ring's contributions are replayed."""
        made = contributions(spec)
        if on_ring(spec):
            return (Work("[walk] laps", "contributions on a ring", made, RING_MAX),)
        return (
            Work("[walk] hops", "contributions on a random walk", made, WALK_MAX),
            Work("[walk] tokens", "tokens on random walks", spec.options.tokens, TOKENS_MAX),
        )

    def records_bytes(self, run: RunPlan, degree: int) -> int:
        return visits_bytes(run.plan)


def rows_counted(plan: Any) -> int:
    """Return how many rows all contributions are of; 0 where the route decides that."""
    if plan.order == "ring":
        return int(plan.length // plan.n * plan.records.total)
    return int(plan.length * (plan.records.alike or 0))


CHANCE: Final = 1e-9
USERS_MAX: Final = 1000  # above it, graphs other than the complete one have no limit but the number of steps
_DEMANDED: Final = -math.log(CHANCE) + 1e-3  # with room for rounding
_RATES: Final = 400


def complete_limit(n: int, steps: int, tokens: int) -> int:
    """Return the limit if each step's holder is uniform over all n; a single token starts at user 0, who may be any."""
    sure = 1 if tokens == 1 else 0
    trials = steps * tokens - sure
    if n == 1:
        return steps * tokens
    low, high = -1, trials  # more than `low` visits are too likely, more than `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        if _log_tail(trials, 1.0 / n, middle + 1) <= -_DEMANDED:
            high = middle
        else:
            low = middle
    return sure + high


def _log_tail(trials: int, chance: float, count: int) -> float:
    """Return an upper bound on the logarithm of the chance of at least `count` successes; 0 up to the mean."""
    if count <= (trials + 1) * chance:
        return 0.0
    if count > trials:
        return -math.inf
    ways = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    first = ways + count * math.log(chance) + (trials - count) * math.log1p(-chance)
    ratio = (trials - count) * chance / ((count + 1) * (1.0 - chance))
    return first - math.log1p(-ratio)


def graph_limit(neighbours: Sequence[Sequence[int]], steps: int, tokens: int) -> int:
    """Return the limit, the same for all users, if each next holder is uniform over the neighbours."""
    n, most = len(neighbours), steps * tokens
    if n == 1 or n > USERS_MAX or steps == 1:
        return most
    import numpy as np

    degrees = np.array([len(row) for row in neighbours], dtype=np.float64)
    walk = np.zeros((n, n))
    for user, row in enumerate(neighbours):
        walk[user, list(row)] = 1.0 / np.sqrt(degrees[user] * degrees[list(row)])
    values, vectors = np.linalg.eigh(walk)
    rates = np.geomspace(1e-3 / steps, 10.0, _RATES)  # z = exp(-rate)
    generated = vectors**2 @ (1.0 / (1.0 - np.clip(values, -1.0, 1.0)[:, None] * np.exp(-rates)))
    costs = -np.log1p(-1.0 / np.maximum(generated, 1.0 + 1e-12)) * (1.0 - 1e-9)  # the cost of one return, for each user
    returns = np.zeros(costs.shape)
    while True:  # more returns can be spread over the tokens in more ways, which takes more of them
        ways = (tokens - 1) * (1.0 + np.log(1.0 + returns / max(1, tokens - 1)))  # bounds the logarithm of their number
        more = np.minimum(np.ceil((_DEMANDED + tokens * (steps - 1) * rates + ways) / costs), most)
        if np.all(more <= returns):
            break
        returns = more
    return min(most, int(returns.min(axis=1).max()) - 1 + tokens)
