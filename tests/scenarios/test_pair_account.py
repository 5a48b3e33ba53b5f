"""The linear account of noise that two users share: known answers of [SBR22], masks, and parts of secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.auditor.context import NO_KEYS, AuditContext
from p2pdp.auditor.exact import ExactAuditor, account_of_pairs
from p2pdp.core.draws import UNIFORM, Mechanism
from p2pdp.core.ids import CURATOR
from p2pdp.core.values import LinearForm, Share, Source, pair_source
from p2pdp.replay.transcript import Transcript
from tests.support.runs import quiet, ring


class Masked:
    """Users of a graph who send the curator their value with noise of their own and noise shared with neighbours."""

    def __init__(self, graph: Any, sigma: float, pair: Mechanism, *, seeds: bool = False) -> None:
        self.n = len(graph)
        own = [Mechanism("gaussian", sigma)] + ([UNIFORM] if seeds else [])
        self.transcript = Transcript(
            received={user: [] for user in range(self.n)},
            draws=dict.fromkeys(range(self.n), own),
            pairs={pair_source(*edge, 0): pair for edge in graph.edges},
        )
        self.sent = [self._form(graph, user, seeds=seeds) for user in range(self.n)]
        self.transcript.totals = list(self.sent)
        self.transcript.sent = self.sent
        self.transcript.find_noise = lambda: self.transcript.noise_among({}, 1.0)
        self.publish(range(self.n))

    def _form(self, graph: Any, user: int, *, seeds: bool) -> LinearForm:
        form = LinearForm.of(Source("input", user, 0)) + LinearForm.of(Source("draw", user, 0))
        for peer in sorted(graph[user]):
            form = form + LinearForm.of(pair_source(user, peer, 0)) * (1.0 if user < peer else -1.0)
        return form + LinearForm.of(Source("draw", user, 1)) if seeds else form

    def publish(self, users: Sequence[int], *taken_off: LinearForm) -> None:
        total = sum((self.sent[user] for user in users), LinearForm())
        for form in taken_off:
            total = total - form
        self.transcript.published = (total,)

    def share(self, *shares: Share, to: int = CURATOR) -> None:
        self.transcript.shares.setdefault(to, []).extend(shares)

    def curator(self, members: Sequence[int] = ()) -> Any:
        return ExactAuditor(self.transcript, self.n).curator(members).values

    def largest(self, members: Sequence[int] = ()) -> float:
        return float(np.nanmax(self.curator(members)))


RING, COMPLETE, STAR = nx.cycle_graph(8), nx.complete_graph(8), nx.star_graph(5)


@pytest.mark.parametrize(
    ("graph", "sigma", "pair", "alone", "pooled"),
    [  # accounting.md, section 7
        (RING, 1.0, 3.0, 0.189274966583, 0.295222696572),
        (RING, 0.5, 10.0, 0.506542072055, 0.681829606119),
        (COMPLETE, 1.0, 3.0, 0.13698630137, 0.181818181818),
        (COMPLETE, 0.5, 10.0, 0.50109340831, 0.668054977093),
        (STAR, 1.0, 3.0, 0.247272727273, 1.0),
        (STAR, 0.5, 10.0, 0.674702248959, 4.0),
    ],
)
def test_gaussian_pair_noise_leaks_what_its_closed_form_says(
    graph: Any, sigma: float, pair: float, alone: float, pooled: float
) -> None:
    world = Masked(graph, sigma, Mechanism("gaussian", pair))
    assert world.largest() == pytest.approx(alone, rel=1e-9)
    assert world.largest([0, 1]) == pytest.approx(pooled, rel=1e-9)
    nobody = ExactAuditor(world.transcript, world.n).public().values
    assert nobody is not None
    assert nobody == pytest.approx(np.full(world.n, 1 / (world.n * sigma**2)))


@given(st.integers(0, 2**32), st.integers(2, 9), st.floats(0.3, 3.0), st.floats(0.1, 30.0))
def test_any_graph_and_coalition_agrees_with_the_laplacian(seed: int, n: int, sigma: float, pair: float) -> None:
    graph = nx.gnp_random_graph(n, 0.6, seed=seed)
    members = sorted(np.random.default_rng(seed).choice(n, size=seed % n, replace=False).tolist())
    honest = [user for user in range(n) if user not in members]
    laplacian = nx.laplacian_matrix(graph.subgraph(honest), nodelist=honest).toarray().astype(float)
    expected = np.diag(np.linalg.inv(sigma**2 * np.eye(len(honest)) + pair**2 * laplacian))
    assert Masked(graph, sigma, Mechanism("gaussian", pair)).curator(members)[honest] == pytest.approx(expected)


def test_uniform_masks_tell_the_sum_of_each_honest_component() -> None:
    graph = nx.path_graph(7)
    world = Masked(graph, 2.0, UNIFORM)
    assert world.curator() == pytest.approx(np.full(7, 1 / (7 * 4)))
    pooled = world.curator([2])  # users 0 and 1, and users 3 to 6, are left
    assert pooled[[0, 1]] == pytest.approx(1 / (2 * 4))
    assert pooled[3:] == pytest.approx(1 / (4 * 4))
    assert np.isnan(pooled[2])
    assert world.curator([1, 3])[2] == pytest.approx(1 / 4)
    assert ExactAuditor(world.transcript, 7).network().values == pytest.approx(np.full(7, 1 / (7 * 4)))


def settled(world: Masked, survivors: Sequence[int], graph: Any, *, threshold: int = 2) -> None:
    """Have the curator get the seeds of survivors, and the keys of their pairs with all others."""
    taken = []
    for user in survivors:
        seed = Source("draw", user, 1)
        world.share(*(Share(seed, place, threshold) for place in range(threshold)))
        taken.append(LinearForm.of(seed))
        for peer in graph[user]:
            if peer not in survivors:
                source = pair_source(user, peer, 0)
                world.share(Share(source))
                taken.append(LinearForm.of(source) * (1.0 if user < peer else -1.0))
    world.publish(survivors, *taken)


@pytest.mark.parametrize("pair", [UNIFORM, Mechanism("gaussian", 5.0)])
def test_what_comes_late_stays_hidden_behind_its_own_mask(pair: Mechanism) -> None:
    world = Masked(COMPLETE, 1.0, pair, seeds=True)
    survivors = [0, 1, 2, 3, 4]
    settled(world, survivors, COMPLETE)
    leaks = world.curator()
    assert leaks[5:] == pytest.approx(0.0), "their values are not in the sum"
    among = 1 / 5 if pair == UNIFORM else np.linalg.inv(np.eye(5) + 25.0 * (5 * np.eye(5) - 1))[0, 0]
    assert leaks[:5] == pytest.approx(np.full(5, among))
    world.share(Share(Source("draw", 6, 1), 4, 2))
    assert world.curator()[6] == pytest.approx(0.0), "one part of two tells nothing"
    world.share(Share(Source("draw", 6, 1), 5, 2), to=3)
    assert world.curator()[6] == pytest.approx(0.0), "the other part is with user 3"
    # The two together know its own mask; its pairs with users 5 and 7, whose values stay masked, were not revealed.
    assert world.curator([3])[6] == pytest.approx(0.0 if pair == UNIFORM else 1 / (1 + 2 * 25.0))


def test_a_value_whose_mask_and_pairs_are_all_revealed_has_its_own_noise_left() -> None:
    graph = nx.path_graph(3)
    world = Masked(graph, 0.5, UNIFORM, seeds=True)
    settled(world, [0, 1], graph)
    world.share(Share(Source("draw", 2, 1)))
    assert world.curator()[2] == pytest.approx(1 / 0.25)


def test_the_network_sees_all_parts_that_users_send_each_other() -> None:
    graph = nx.path_graph(3)
    world = Masked(graph, 0.5, UNIFORM, seeds=True)
    settled(world, [0, 1], graph)
    world.share(Share(Source("draw", 2, 1), 1, 2), to=0)
    world.share(Share(Source("draw", 2, 1), 2, 2), to=1)
    network = ExactAuditor(world.transcript, 3).network().values
    assert network is not None
    assert network[2] == pytest.approx(1 / 0.25)
    assert world.curator()[2] == pytest.approx(0.0)


def test_claims_name_that_shared_draws_are_pseudo_random_and_that_the_network_holds_no_keys() -> None:
    world = Masked(nx.path_graph(3), 0.5, UNIFORM)
    context = AuditContext(quiet(ring(3, 1)).plan, {}, world.transcript, (), 1e-5, (1,))
    found = account_of_pairs(context, ExactAuditor(world.transcript, 3), "exact")
    assert len(found.claims) == 6
    assert all(any("computational" in said for said in claim.assumptions) for claim in found.claims)
    assert [claim.observer for claim in found.claims if NO_KEYS in claim.assumptions] == ["network"]
    world.transcript.pairs.clear()
    assert context.shared() == ()
