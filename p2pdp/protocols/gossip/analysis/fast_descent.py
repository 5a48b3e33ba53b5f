"""Learning by gossip without peers, frames and ledgers: a product with sparse weights a round.

Guarantee: on the same draws models are those of the machines but for rounding and the dithers of messages
(`protocols/gossip/learning_together.py`), in runs in which nobody is gone or late. Noise of gradients is drawn from the
streams that the simulated world draws it from; noise on messages and the coins of a changing graph have streams of
their own. The truth is what the same rounds come to without any noise. `messages` counts exchanges and what is
published.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from p2pdp.assembly.outcome import Outcome
from p2pdp.core.arrays import Floats
from p2pdp.core.values import snapped
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.gossip.analysis.fast import changing_rounds, edges_of
from p2pdp.protocols.gossip.analysis.outcome_descent import truth_of_finals
from p2pdp.protocols.gossip.learning_together import Extra, learn
from p2pdp.protocols.gossip.sgd import GossipSgdPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.sim.trials import Trials
from p2pdp.tasks.descending import Population
from p2pdp.topology.weights import sparse_weights


def fast_gossip_descents(trials: Trials) -> Iterator[Outcome]:
    """Learners' examples come from files, so all trials share them; a graph that changes is in no seed's plan."""
    population = Population(trials.run.plan.descent, [trials.rows(user) for user in range(trials.run.n)])
    for number in range(trials.count):
        trials.started(number)
        run = trials.run if trials.run.plan.coin is not None else trials.again(number)[0]
        yield fast_gossip_descent(run, population, trials.seed + number)


def fast_gossip_descent(run: RunPlan, population: Population, seed: int) -> Outcome:
    """One trial; `population` are the users' examples, for trials to share."""
    plan: GossipSgdPlan = run.plan
    noise = _drawn(plan, seed)
    extra = _message_noise(plan, SeededSampler(seed, "fast/messages"))
    sent = 0

    def counted() -> Iterator[Any]:
        nonlocal sent
        for matrix in matrices_of(run, seed):
            sent += len(edges_of(matrix)[0])
            yield matrix

    # The first column is noised, the second is not.
    models = learn(plan, population, counted(), lambda visit: noise[:, visit], columns=2, extra=extra)
    told = [user for user in range(run.n) if plan.publishes(user)]
    found = Outcome(counted={user: {0: plan.gradients} for user in range(run.n)}, messages=sent + len(told))
    found.finals = dict(enumerate(models[:, 0]))
    found.published = run.protocol.publish(plan, [found.finals[user] for user in told])
    found.truth = truth_of_finals(run, dict(enumerate(models[:, 1])))
    return found


def matrices_of(run: RunPlan, seed: int) -> Iterator[Any]:
    """The weights of each round."""
    plan: GossipSgdPlan = run.plan
    if plan.coin is not None:
        yield from changing_rounds(plan, plan.coin, seed)
        return
    assert run.graph is not None
    matrix = sparse_weights(run.graph, plan.weights)
    for _ in range(plan.rounds):
        yield matrix


def _drawn(plan: GossipSgdPlan, seed: int) -> Floats:
    """Of each user's gradients, in data units: [user, gradient, column, number]."""
    found = np.zeros((plan.n, plan.gradients, 2, plan.shape[0]))
    if plan.noise.name != "none":
        for user in range(plan.n):
            drawn = SeededSampler(seed, f"draws/{user}/1").batch(plan.noise, plan.shape, plan.gradients)
            found[user, :, 0] = np.array(drawn) * plan.step
    return found


def _message_noise(plan: GossipSgdPlan, sampler: SeededSampler) -> Extra | None:
    mechanism = plan.message_noise
    if mechanism is None:
        return None

    def extra(matrix: Any, sent: Floats) -> Floats:
        """Draws are taken ordered by receiver, then by sender."""
        to, sender, weights = edges_of(matrix)
        drawn = np.array(sampler.batch(mechanism, plan.shape, len(to))) if len(to) else np.zeros((0, *plan.shape))
        off = snapped(sent, plan.step)[sender, 0] - sent[sender, 0] + drawn * plan.step
        added = np.zeros_like(sent)
        for part in range(sent.shape[2]):
            added[:, 0, part] = np.bincount(to, weights * off[:, part], plan.n)
        return added

    return extra
