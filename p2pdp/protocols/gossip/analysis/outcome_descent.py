"""The outcome of learning by gossip, read from its ledgers: each user's model, the same without noise, and scores.

If every message arrived, the weights of each round follow from graph and meetings, and the models without noise are
computed from them. If somebody was late or gone, a replay over linear forms determines the gradients in the model at
which each gradient was taken, and those without noise are computed one after the other in that order.

Models are scored beside local, central and no privacy. The baselines take the same number of steps, with the same rates
and rows, along the mean of all users' gradients: local privacy with every gradient noised, central privacy with noise
on the mean. Scores are given only where the launcher has the data. If nothing is published they are the mean of the
scores of users' own models, of which on large runs some are scored, evenly spread over the users' numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from p2pdp.assembly.curves import Curve, Look, look_of, looked_at
from p2pdp.assembly.linear import finals_of
from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.assembly.pools import NONE, RUN, Pool, Scored
from p2pdp.core.arrays import Floats
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer
from p2pdp.core.values import GRADIENT, PAIR, LinearForm
from p2pdp.ledger.records import RECEIVED, SENT, Contents, Record, public_message, whole_message
from p2pdp.mechanisms.grid import Grid
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Rows
from p2pdp.protocols.gossip.analysis.fast import SPECTRUM_MAX, mixed_noise
from p2pdp.protocols.gossip.analysis.outcome import matrices_of, truth_of_finals, was_skipped
from p2pdp.protocols.gossip.plan import EXCHANGE, RoundState
from p2pdp.protocols.gossip.sgd import LAST, GossipSgdPlan, learn, weight_of
from p2pdp.protocols.learning import noise_bound
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.transcript import Transcript
from p2pdp.tasks.descending import Population

_REPLAYED_MAX: Final = 300  # most users for which the truth of irregular runs is computed


def gather(run: RunPlan, recorded: Recorded, found: Outcome) -> None:
    """Add the users' models to an outcome, and the course from which the same without noise can be computed."""
    found.finals = finals_of(recorded.views)
    found.counted = {user: {0: run.plan.gradients} for user in range(run.n)}
    if len(found.finals) == run.n and run.graph is not None and not was_skipped(recorded.views):
        found.course = matrices_of(run, recorded.views)
    elif run.n <= _REPLAYED_MAX:
        found.course = recorded.transcript
    found.curve = _curve_of_records(run, recorded.views, found)


def _curve_of_records(run: RunPlan, views: Mapping[Peer, Contents], found: Outcome) -> Curve | None:
    """Return the curve of users' models, made of what they sent and received in the last rounds before each place.

    A user's own state is taken as it was sent, with the noise on messages. If somebody was late or gone, its weights
    do not follow from the graph, and what was sent is looked at instead.
    """
    plan: GossipSgdPlan = run.plan
    look = look_of(run, plan.gradients)
    if look is None:
        return None
    models: dict[int, list[Floats]] = {}
    regular = found.course is not None and not isinstance(found.course, Transcript)
    for user in looked_at(run.n):
        sent, received = _exchanged(views[user].records if user in views else (), plan, look)
        for number in (one for one in sent if one % plan.block == 0):
            own, gamma = sent[number], plan.gamma_at(number)
            weights: Any = found.course[number - 1] if regular else None
            flows = [weights[user, peer] * (value - own) for peer, value in received.get(number, ()) if regular]
            state = sum(flows, start=own)
            if gamma != 1.0 and number - 1 in sent:
                state = gamma * state + (1.0 - gamma) * sent[number - 1]
            models.setdefault(number // plan.block, []).append(state)
    for gradients, each in models.items():
        look.at(gradients, np.array(each))
    if plan.averaging == LAST:
        look.at(plan.gradients, np.array([found.finals[user] for user in looked_at(run.n) if user in found.finals]))
    return look.curve()


def _exchanged(
    records: Iterable[Record], plan: GossipSgdPlan, look: Look
) -> tuple[dict[int, Floats], dict[int, list[tuple[Peer, Floats]]]]:
    """Return what a user sent, and received from whom, in the last two rounds before each place, by round."""
    sent: dict[int, Floats] = {}
    received: dict[int, list[tuple[Peer, Floats]]] = {}
    for record in records:
        if record.kind not in (SENT, RECEIVED) or public_message(record).type != EXCHANGE:
            continue
        number = RoundState(*public_message(record).fields).round
        if -number % plan.block > 1 or not look.wants(-(-number // plan.block)):
            continue
        value = np.asarray(whole_message(record).value)
        if record.kind == SENT:
            sent[number] = value
        else:
            received.setdefault(number, []).append((record.body.sender, value))
    return sent, received


def estimate_of(run: RunPlan, found: Outcome) -> Estimate:
    """Return the mean of the published models; its error is an upper bound, if one is known."""
    estimate = run.protocol.estimate(run.plan, found.published, len(found.finals))
    bound = None if isinstance(found.course, Transcript) else noise_upper(run)
    return Estimate(estimate.value, None if bound is None else [bound] * run.plan.shape[0])


def noise_upper(run: RunPlan, sigma: float | None = None) -> float | None:
    """Return an upper bound on the root mean square effect of noise on the models, over users and numbers.

    The models of all users together are one point. A step that contracts at each user contracts that point; a round of
    gossip does, for weights are symmetric, and acceleration keeps to polynomials of them that are nowhere above 1.
    Noise of pairs counts as what gossip leaves of it before the next step. Return None where that is not so, as for
    accelerated gossip on graphs that change, or if messages carry noise.
    """
    plan: GossipSgdPlan = run.plan
    if plan.message_noise is not None or (plan.gamma != 1.0 and plan.coin is not None):
        return None
    noise = plan.noise
    if sigma is not None:
        scale = sigma / Grid(plan.grid_exponent).step
        noise = type(noise)("gaussian", scale) if sigma else type(noise)("none", 0.0)
    elif plan.pair_noise is not None:
        if run.graph is None or run.n > SPECTRUM_MAX:
            return None
        noise = type(noise)("gaussian", noise.scale * mixed_noise(run))
    rates = [plan.rate_at(step) for step in range(1, plan.gradients + 1)]
    weights = [weight_of(plan, step) for step in range(1, plan.gradients + 1)]
    ends = [noise_bound(plan.descent, noise, rates[:count]) for count in range(1, plan.gradients + 1)]
    known = [0.0 if end is None else end for end in ends]
    return None if None in ends else float(np.average(known, weights=weights))


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """Return the mean of the models of the same exchanges without noise; None if that is unknown."""
    if found.truth is None and found.course is not None:
        found.truth = truth_of_finals(run, _without_noise(run, found.course, rows))
    return found.truth


def _without_noise(run: RunPlan, course: Any, rows: Callable[[Peer], Any]) -> dict[Peer, Floats]:
    plan: GossipSgdPlan = run.plan
    if not isinstance(course, Transcript):
        population = Population(plan.descent, [rows(user) for user in range(run.n)])
        return dict(enumerate(learn(plan, population, course, lambda _: None)[:, 0]))
    values = _Values(plan.shape[0])
    inputs = {user: run.protocol.inputs(plan, rows(user))[0] for user in course.finals}
    inputs |= {user: run.protocol.inputs(plan, rows(user))[0] for user, _ in course.models if user not in inputs}
    ordered = sorted(course.models.items(), key=lambda one: (one[1].depth, one[0]))
    for (user, visit), form in ordered:  # deeper forms are made of gradients at less deep ones
        model = values.of(form)
        if model is not None:
            gradient: Any = inputs[user]
            values.gradients[user, visit] = gradient.gradient(model, visit)
    found = {user: values.of(form) for user, form in course.finals.items()}
    return {} if any(value is None for value in found.values()) else {u: v for u, v in found.items() if v is not None}


class _Values:
    """The values of forms without noise, each computed once."""

    def __init__(self, dimension: int) -> None:
        self.gradients: dict[tuple[Peer, int], Floats] = {}
        self._zero = np.zeros(dimension)
        self._known: dict[int, Floats | None] = {}
        self._kept: list[LinearForm] = []  # keeps ids from being reused

    def of(self, form: LinearForm) -> Floats | None:
        """Return a form's value; None if it depends on an unknown one."""
        pending = [form]
        while pending:
            top = pending[-1]
            unknown = [parent for parent, _ in top.parents if id(parent) not in self._known]
            if unknown and id(top) not in self._known:
                pending += unknown
                continue
            pending.pop()
            if id(top) not in self._known:
                self._known[id(top)] = self._sum(top)
                self._kept.append(top)
        return self._known[id(form)]

    def _sum(self, form: LinearForm) -> Floats | None:
        total = self._zero
        for parent, weight in form.parents:
            value = self._known[id(parent)]
            if value is None:
                return None
            total = total + value * weight
        for source, weight in form.terms:
            if source.kind == GRADIENT and (source.peer, source.number) in self.gradients:
                total = total + self.gradients[source.peer, source.number] * weight
            elif source.kind not in ("draw", PAIR):
                return None
        return total


_LOCAL: Final = "local"
_SCORED_MAX: Final = 256  # users' own models

Sigmas = Mapping[str, float | None]


def gossip_baselines_of(run: RunPlan, sigmas: Sigmas) -> dict[str, dict[str, Any]]:
    """Return the baselines that are known without any data: noise, and its largest effect on a model."""
    baselines: dict[str, dict[str, Any]] = {}
    for name, sigma in [*sigmas.items(), (NONE, 0.0)]:
        baselines[name] = {"standard_error": None if sigma is None else _error(run, name, sigma), "sigma": sigma}
    return baselines


def gossip_scored(run: RunPlan, found: Outcome, rows: Rows, truth: Number, sigmas: Sigmas, seed: int) -> Scored:
    """Return the scores of the learned models, and baselines with theirs."""
    users = [rows(user) for user in range(run.n)]
    pool, population = Pool(run, users), Population(run.plan.descent, users)
    baselines = gossip_baselines_of(run, sigmas)
    curves = {RUN: found.curve}
    for name in baselines:
        sigma = baselines[name]["sigma"]
        if sigma is None:
            baselines[name] |= pool.unknown
            continue
        look = look_of(run, run.plan.gradients)
        if look is None and name == NONE and truth is not None:
            model = np.array(truth)
        else:
            model = _model_of_mean(run, population, _of_mean(run, name, sigma), seed, look)
        baselines[name] |= pool.scores(np.array(truth) if name == NONE and truth is not None else model)
        curves[name] = None if look is None else look.curve()
    return Scored({"score_name": pool.score_name, **_own(run, found, pool)}, baselines, curves)


def _own(run: RunPlan, found: Outcome, pool: Pool) -> dict[str, float | None]:
    if found.published is not None:
        return pool.scores(found.published.reshape(-1, run.plan.shape[0]).mean(axis=0))
    users = sorted(found.finals)
    if not users:
        return pool.unknown
    chosen = np.unique(np.linspace(0, len(users) - 1, min(len(users), _SCORED_MAX)).astype(np.int64)).tolist()
    each = [pool.scores(found.finals[users[at]]) for at in chosen]
    means: dict[str, float | None] = {}
    for name in pool.unknown:
        known = [value for scores in each if (value := scores[name]) is not None]
        means[name] = sum(known) / len(known) if len(known) == len(each) else None
    return means


def _of_mean(run: RunPlan, name: str, sigma: float) -> float:
    """Return the standard deviation of the noise on the mean gradient."""
    return sigma / math.sqrt(run.n) if name == _LOCAL else sigma


def _model_of_mean(run: RunPlan, population: Population, sigma: float, seed: int, look: Look | None = None) -> Floats:
    """Return the model that steps along the mean of all users' gradients lead to."""
    plan: GossipSgdPlan = run.plan
    sampler, unit = SeededSampler(seed, "baselines"), Mechanism("gaussian", 2.0**30)
    drawn = np.array(sampler.batch(unit, plan.shape, plan.gradients)) / unit.scale * sigma
    model, total, who = plan.descent.start(), np.zeros(plan.shape[0]), np.arange(run.n)
    for visit in range(plan.gradients):
        rate = plan.rate_at(visit + 1)
        gradients = population.contributions(np.tile(model, (run.n, 1)), who, np.full(run.n, visit))
        model = model * (1.0 - rate * plan.descent.regularization) - (gradients.mean(axis=0) + drawn[visit]) * rate
        total = total + model * weight_of(plan, visit + 1)
        if look is not None:
            look.at(visit + 1, model[None])
    return np.asarray(total / sum(weight_of(plan, visit + 1) for visit in range(plan.gradients)))


def _error(run: RunPlan, name: str, sigma: float) -> list[float] | None:
    plan: GossipSgdPlan = run.plan
    scale = math.ldexp(_of_mean(run, name, sigma), -plan.grid_exponent)
    noise = Mechanism("gaussian", scale) if sigma else Mechanism("none", 0.0)
    bound = noise_bound(plan.descent, noise, [plan.rate_at(step) for step in range(1, plan.gradients + 1)])
    return None if bound is None else [bound] * plan.descent.dimension
