"""Gossip machines in a world of their own: links in order, any interleaving, late and gone users, no cryptography."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from p2pdp.core import messages
from p2pdp.core.draws import DITHER, Mechanism
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.step import Message, Step
from p2pdp.crypto.pair_coins import PairCoins
from p2pdp.mechanisms import dither
from p2pdp.protocols.gossip.gossiping import Gossip
from p2pdp.protocols.gossip.plan import SKIPPED, AveragingPlan, GossipPlan, check_gossip
from p2pdp.topology.gossip_rounds import acceleration
from p2pdp.topology.graphs import Graph, graph_of_edges
from p2pdp.topology.spectra import spectrum_ends
from p2pdp.topology.weights import largest_degree, sparse_weights
from tests.support.machine_links import MachineLinks
from tests.support.pairs import PairDraws

PATIENCE_S = 10.0
NO_NOISE = Mechanism("none", 0.0)


def plan_of(graph: Graph, rounds: int, *, accelerated: bool = False, **more: Any) -> GossipPlan:
    weights = more.pop("weights", "metropolis")
    gap = spectrum_ends(sparse_weights(graph, weights)).gap
    terms: dict[str, Any] = {
        "noise": NO_NOISE,
        "message_noise": None,
        "shape": (),
        "grid_exponent": 0,
        "publish": "none",
        "patience_s": PATIENCE_S,
    }
    return GossipPlan(
        n=graph.n,
        rounds=rounds,
        weights=weights,
        degree_max=max(1, largest_degree(graph)),
        gamma=more.pop("gamma", acceleration(gap) if accelerated else 1.0),
        gap=gap,
        **(terms | more),
    )


def room(plan: AveragingPlan) -> float:
    """How far dithers carry a result off: each comes in with a weight of 1 at most, and at most one a round."""
    return 12.0 * dither.SCALE * plan.fine * (plan.length + 2.0) ** 0.5 if plan.dither is not None else 1e-12


class Value:
    def __init__(self, value: Any) -> None:
        self._value = value

    def contribution(self, visit: int) -> Any:
        assert visit == 0
        return self._value


class Noise(PairDraws):
    """Draws that are known beforehand."""

    def __init__(self, seed: int, coins: PairCoins | None = None, user: Peer = 0, pair_seed: int = 0) -> None:
        super().__init__(pair_seed, user)
        self._random = np.random.default_rng(seed)
        self._coins = coins
        self.drawn: list[int] = []

    def noise(self, mechanism: Mechanism, shape: tuple[int, ...]) -> Any:
        if mechanism.name == DITHER:
            return np.arange(4)  # a seed
        value = round(self._random.normal() * mechanism.scale)
        self.drawn.append(value)
        return value

    def choice(self, options: int) -> int:
        raise AssertionError("gossip makes no choices")

    def meet(self, number: int, coin: float) -> list[Peer]:
        assert self._coins is not None
        return self._coins.neighbours_in(number, coin)


def coins_of(seed: int, n: int) -> list[PairCoins]:
    """What pairs share."""
    secrets = [[f"{seed} {sorted((one, other))}".encode() for other in range(n)] for one in range(n)]
    return [PairCoins({peer: secrets[one][peer] for peer in range(n) if peer != one}) for one in range(n)]


@dataclass
class GossipWorld(MachineLinks):
    """Gossip machines, and what each user came to."""

    plan: GossipPlan
    values: Any = None
    final: dict[Peer, Any] = field(default_factory=dict)
    finished: dict[Peer, Any] = field(default_factory=dict)
    skips: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        coins = coins_of(self.seed, self.graph.n)
        self.draws = [Noise(self.seed * 1000 + user, coins[user], user, self.seed) for user in range(self.graph.n)]
        self.machines = [
            Gossip(self.plan, user, self.graph.neighbours[user], Value(self.values[user]))
            for user in range(self.graph.n)
        ]

    def sent(self, user: Peer, to: Peer, message: Message) -> None:
        if to == CURATOR:
            assert user not in self.finished
            self.finished[user] = message.value
        elif to == user:
            assert message.type == messages.FINAL
            assert user not in self.final
            self.final[user] = message.value
            assert self.machines[user].receive(user, message, self.now_s, self.draws[user]) == Step()
        else:
            assert check_gossip(self.plan, message) is None
            self.skips += message.type == SKIPPED
            self.post(user, to, message)

    def run(self, most: int = 200) -> None:
        """Delivers and lets time pass until everybody who is in has ended."""
        for _ in range(most):
            self.deliver_all()
            if len(self.final) == self.graph.n - len(self.out):
                return
            self.pass_time(PATIENCE_S / 2)
        raise AssertionError("gossip does not end")


def met_in(coins: list[PairCoins], number: int, coin: float) -> Graph:
    pairs = [(user, peer) for user, one in enumerate(coins) for peer in one.neighbours_in(number, coin)]
    return graph_of_edges(len(coins), pairs)


def shared(plan: AveragingPlan, graph: Graph, seed: int, number: int = 0) -> Any:
    """The noise of pairs in each user's contribution, in data units."""
    found = np.zeros((graph.n, *plan.shape))
    for low, high in graph.edges() if plan.pair_noise is not None else ():
        assert plan.pair_noise is not None
        drawn = PairDraws(seed, low).pair(high, number, plan.pair_noise, plan.shape) * plan.step
        found[low] += drawn
        found[high] -= drawn
    return found


def expected(plan: GossipPlan, graph: Graph, values: Any, seed: int = 0) -> Any:
    """What undisturbed rounds give, by dense matrix products."""
    coins = coins_of(seed, graph.n)
    matrix = sparse_weights(graph, plan.weights).toarray()
    before, now = np.asarray(values, dtype=float), np.asarray(values, dtype=float)
    for number in range(1, plan.rounds + 1):
        if plan.coin is not None:
            matrix = sparse_weights(met_in(coins, number, plan.coin), plan.weights).toarray()
        moved = matrix @ now
        if number > 1:
            moved = plan.gamma * moved + (1 - plan.gamma) * before
        before, now = now, moved
    return now
