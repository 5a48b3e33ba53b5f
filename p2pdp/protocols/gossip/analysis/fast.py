"""Gossip and learning by gossip without peers, frames and ledgers: products with sparse weights, matchings of pairs.

Guarantee: on the same draws results and models are those of the machines except for rounding and the dithers of
messages (`protocols/gossip/sgd.py`), in runs in which nobody is gone or late. Users' noise, noise of gradients and the
activations are drawn from the streams that the simulated world draws them from, so a seed gives the same here as
there; noise on messages, noise of pairs and the coins of a changing graph have streams of their own.

The standard error of an average is exact. If nothing is published it is that of a user's own result, which takes the
spectrum of the weights (of pairs: all users' weights in all results), more work than everything else together: trials
whose standard error nobody reads leave it out, and so do runs of more than `SPECTRUM_MAX` users, or of more pairs than
would take as long. The truth of a learned model is the result of the same rounds without any noise.

`messages` counts exchanges, and what ends them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from p2pdp.assembly.curves import Look, look_of, looked_at
from p2pdp.assembly.outcome import Outcome
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.draws import Draws, Mechanism
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.values import snapped
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.gossip.analysis.outcome import count_rows, truth_of_finals
from p2pdp.protocols.gossip.analysis.pair_noise import Contributed, drawn_together
from p2pdp.protocols.gossip.analysis.sent import Sent, edges_of
from p2pdp.protocols.gossip.plan import ACTIVATIONS, Activations, AveragingPlan, GossipPlan
from p2pdp.protocols.gossip.sgd import Extra, GossipSgdPlan, learn
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.sim.trials import COMPARED_MAX, Trials
from p2pdp.tasks.descending import Population
from p2pdp.topology.weights import drawn_pairs, meeting_weights, sparse_weights

Noise = Callable[[int], Floats]  # count -> draws on as many messages, one row per message, in data units
Matching = Ints  # pairs that meet at the same time, one row per pair

SPECTRUM_MAX: Final = 4096
_WORK_MAX: Final = 2**31
_COLUMNS: Final = 256  # columns of a dense matrix that are processed at a time


def fast_averages(trials: Trials) -> Iterator[Outcome]:
    """Run the trials; the standard error of the first one stands for all."""
    for number in range(trials.count):
        trials.started(number)
        run, rows = trials.again(number)
        yield fast_average(run, rows, trials.seed + number, with_error=trials.begin + number == 0)


def fast_average(run: RunPlan, rows: Callable[[Peer], Any], seed: int, *, with_error: bool = True) -> Outcome:
    """Run one trial; `with_error` asks for its standard error too."""
    plan: AveragingPlan = run.plan
    states = np.array([_begin(run, rows, user, seed) for user in range(run.n)], dtype=np.float64)
    if plan.pair_noise is not None:
        states = states + drawn_together(run, seed, 1)[:, 0].reshape(states.shape)
    meetings = _exchanges_of(run, seed)
    noise = _message_noise(plan, SeededSampler(seed, "fast/messages"))
    results = meetings.results(states.reshape(run.n, -1), noise).reshape(run.n, *plan.shape)
    publishers = _publishers(run)
    found = Outcome(counted={user: {0: 1} for user in range(run.n)}, messages=meetings.messages)
    found.finals = dict(enumerate(results if plan.shape else results.tolist()))
    found.published = run.protocol.publish(plan, [found.finals[user] for user in publishers])
    if publishers or with_error:
        found.shares, found.deviation = shares_and_error(run, meetings)
    count_rows(run, found)
    return found


_SCHEDULES: Final = 24


def standard_error_of(run: RunPlan) -> float | None:
    """Return the standard error of a run's estimate, or of a user's own result.

    Where chance decides who meets whom, it is the root mean square over schedules of `_SCHEDULES` seeds.
    """
    random = not run.plan.in_rounds or run.plan.coin is not None
    found = []
    for seed in range(_SCHEDULES if random else 1):
        error = shares_and_error(run, _exchanges_of(run, seed))[1]
        if error is None:
            return None
        found.append(error)
    return math.sqrt(math.fsum(error**2 for error in found) / len(found))


def _exchanges_of(run: RunPlan, seed: int) -> Rounds | Pairs:
    plan = run.plan
    if not plan.in_rounds:
        return Pairs(run, _activations(run, seed))
    if plan.coin is not None:
        return Rounds(run, list(changing_rounds(plan, plan.coin, seed)))
    return fixed_rounds(run)


def fixed_rounds(run: RunPlan) -> Rounds:
    assert run.graph is not None
    return Rounds(run, [sparse_weights(run.graph, run.plan.weights)] * run.plan.rounds)


def mixed_noise(run: RunPlan) -> float:
    """Return what is left at a user of the noise of a gradient after one block of rounds, in units of its own noise.

    It is the root mean square over all users, noise of pairs included.
    """
    block = replace(run, plan=replace(run.plan, rounds=run.plan.block))
    return math.sqrt(fixed_rounds(block).of_one_user()[0])


def changing_rounds(plan: GossipPlan, coin: float, seed: int) -> Iterator[Any]:
    """Yield the weights of each round, whose pairs toss coins of a stream of their own."""
    key = int.from_bytes(SeededEntropy(seed, "fast").salt(), "big")
    generator = np.random.Generator(np.random.Philox(key=key))
    for _ in range(plan.rounds):
        yield meeting_weights(plan.n, drawn_pairs(plan.n, coin, generator), plan.weights, plan.degree_max)


def _publishers(run: RunPlan) -> list[Peer]:
    return [user for user in range(run.n) if run.plan.publishes(user)]


def shares_and_error(run: RunPlan, meetings: Rounds | Pairs) -> tuple[Floats | None, float | None]:
    """Return the users' shares in the mean of the published results, if there are any, and the standard error."""
    plan, publishers = run.plan, _publishers(run)
    shares = None
    if publishers:
        of_mean = np.zeros((run.n, 1))
        of_mean[publishers] = 1.0 / len(publishers)
        shares, own, fresh = meetings.shares(of_mean)
        shares = shares[:, 0]
    elif meetings.is_small:
        own, fresh = meetings.of_one_user()
    else:
        return None, None
    variance = own * deviation_of(plan.noise, plan.step) ** 2
    if plan.message_noise is not None:
        variance += fresh * deviation_of(plan.message_noise, plan.step) ** 2
    return shares, math.sqrt(variance)


def _begin(run: RunPlan, rows: Callable[[Peer], Any], user: Peer, seed: int) -> Any:
    """Return a user's value with its first draw, as its machine begins in the simulated world."""
    value = run.protocol.inputs(run.plan, rows(user))[1][0]
    if run.plan.noise.name == "none":
        return value
    (drawn,) = SeededSampler(seed, f"draws/{user}/1").batch(run.plan.noise, run.plan.shape, 1)
    return value + drawn * run.plan.step


def _message_noise(plan: AveragingPlan, sampler: SeededSampler) -> Noise | None:
    mechanism = plan.message_noise
    if mechanism is None:
        return None
    return lambda count: np.array(sampler.batch(mechanism, plan.shape, count)).reshape(count, -1) * plan.step


def deviation_of(mechanism: Mechanism, step: float) -> float:
    """Return the standard deviation of one draw, in data units."""
    return mechanism.scale * step * (math.sqrt(2.0) if mechanism.name == "laplace" else 1.0)


def _activations(run: RunPlan, seed: int) -> list[tuple[Peer, Peer]]:
    """Return the pairs that meet, in order, from the stream from which bootstrap draws them."""
    chance = cast("Draws", SeededSampler(seed, f"draws/{BOOTSTRAP}/1"))
    pairs: dict[int, tuple[Peer, Peer]] = {}
    for send in run.opening(chance):
        assert send.message.type == ACTIVATIONS
        for number, other in Activations(*send.message.fields).pairs:
            pairs[number] = (min(send.to, other), max(send.to, other))
    return [pairs[number] for number in sorted(pairs)]


class Rounds:
    """Synchronous gossip with the weights of each round; fixed weights are the same matrix in every round."""

    def __init__(self, run: RunPlan, matrices: Sequence[Any]) -> None:
        self._plan: GossipPlan = run.plan
        self._contributed = Contributed(run)
        self._matrices = matrices
        self._fixed = all(matrix is matrices[0] for matrix in matrices)
        self._received = [_received(matrix) for matrix in (matrices[:1] if self._fixed else matrices)]

    @property
    def is_small(self) -> bool:
        """Return whether there is time for `of_one_user`."""
        size = self._plan.n
        return size <= SPECTRUM_MAX and (self._fixed or size * sum(one.nnz for one in self._matrices) <= _WORK_MAX)

    @property
    def messages(self) -> int:
        sent = Sent(self._plan.n)
        for matrix in self._matrices[:1] if self._fixed else self._matrices:
            sent.add(matrix, self._plan.rounds if self._fixed else 1)
        return sent.messages

    def results(self, states: Floats, noise: Noise | None) -> Floats:
        """Return the users' results.

        Draws on messages are taken round by round, ordered by receiver, then by sender.
        """
        plan = self._plan
        before = now = states
        for number, matrix in enumerate(self._matrices, start=1):
            gamma, moved = plan.gamma_at(number), matrix @ now
            if noise is not None:
                to, sender, across = edges_of(matrix)
                extra = snapped(now, plan.step)[sender] - now[sender] + noise(len(to))
                for part in range(moved.shape[1]):
                    moved[:, part] += np.bincount(to, across * extra[:, part], len(moved))
            before, now = now, gamma * moved + (1.0 - gamma) * before
        return now

    def shares(self, columns: Floats) -> tuple[Floats, float, float]:
        """Return the users' weights in weighted sums of results, and sums of squares for values and message noise."""
        received = [one[:, None] for one in self._received] * (self._plan.rounds if self._fixed else 1)
        shares, fresh = self._backwards(columns, [one.__matmul__ for one in self._matrices], received)
        return shares, self._contributed.of_shares(shares), fresh

    def of_one_user(self) -> tuple[float, float]:
        """Return both sums of squares for one result, averaged over all users; fixed weights use their spectrum."""
        size, rounds = self._plan.n, self._plan.rounds
        if not self._fixed:
            return of_all(size, self.shares)
        dense = self._matrices[0].toarray()
        vectors, received = np.zeros((0, 0)), np.zeros(size)
        if self._plan.message_noise is None and self._contributed.is_own:
            values = np.linalg.eigvalsh(dense)
        else:
            values, vectors = np.linalg.eigh(dense)
        if self._plan.message_noise is not None:
            received = self._received[0] @ vectors**2
        shares, fresh = self._backwards(np.ones(size), [values.__mul__] * rounds, [received] * rounds)
        return self._contributed.of_spectrum(shares, vectors), fresh / size

    def _backwards(
        self, columns: Floats, times: Sequence[Callable[[Floats], Floats]], received: Sequence[Floats]
    ) -> tuple[Floats, float]:
        """Return the weights of states in weighted sums of results, going backwards, and the sum of squares of noise.

        `received` is the variance that draws of variance 1 on all messages of a round give to each user.
        """
        fresh = 0.0
        now, earlier = columns, np.zeros_like(columns)
        for number in range(self._plan.rounds, 0, -1):
            gamma = self._plan.gamma_at(number)
            fresh += gamma**2 * float(np.sum(received[number - 1] * now**2))
            now, earlier = earlier + gamma * times[number - 1](now), (1.0 - gamma) * now
        return now, fresh


def _received(matrix: Any) -> Floats:
    to, _, across = edges_of(matrix)
    return np.bincount(to, across**2, matrix.shape[0]).astype(np.float64)


def of_all(users: int, shares: Callable[[Floats], tuple[Floats, float, float]]) -> tuple[float, float]:
    """Return the mean of the sums of squares over all results."""
    own = fresh = 0.0
    for start in range(0, users, _COLUMNS):
        width = min(_COLUMNS, users - start)
        _, of_values, of_draws = shares(np.eye(users, width, -start))
        own, fresh = own + of_values, fresh + of_draws
    return own / users, fresh / users


class Pairs:
    """Users who meet in pairs and take the mean of their states."""

    def __init__(self, run: RunPlan, activations: Sequence[tuple[Peer, Peer]]) -> None:
        self._users, self._step = run.n, run.plan.step
        self._contributed = Contributed(run)
        self._matchings = list(_matchings(run.n, activations))
        self.is_small = run.n * len(activations) <= _WORK_MAX
        self.messages = 2 * len(activations)

    def results(self, states: Floats, noise: Noise | None) -> Floats:
        """Return the users' results. Draws on messages are taken matching by matching: first users, then the others."""
        now = states.copy()
        for pairs in self._matchings:
            sent = now[pairs]
            if noise is not None:
                drawn = noise(2 * len(pairs)).reshape(2, len(pairs), -1)
                sent = snapped(sent, self._step) + drawn.swapaxes(0, 1)
            now[pairs] = (now[pairs] + sent[:, ::-1]) * 0.5
        return now

    def shares(self, columns: Floats) -> tuple[Floats, float, float]:
        """Return the users' weights in weighted sums of results, and sums of squares for values and message noise."""
        now, fresh = columns.copy(), 0.0
        for pairs in reversed(self._matchings):
            met = now[pairs]
            fresh += float(np.sum(met**2)) / 4.0
            now[pairs] = met.mean(axis=1, keepdims=True)
        return now, self._contributed.of_shares(now), fresh

    def of_one_user(self) -> tuple[float, float]:
        """Return both sums of squares for one result, averaged over all users."""
        return of_all(self._users, self.shares)


def _matchings(users: int, activations: Sequence[tuple[Peer, Peer]]) -> Iterator[Matching]:
    """Group activations into matchings with the same result, each as early as its users' earlier ones allow."""
    met = [0] * users
    times = []
    for one, other in activations:
        met[one] = met[other] = time = max(met[one], met[other]) + 1
        times.append(time)
    order = np.argsort(times, kind="stable")
    pairs = np.array(activations, dtype=np.int64).reshape(-1, 2)[order]
    ends = np.cumsum(np.bincount(np.array(times, dtype=np.int64)[order], minlength=1)[1:])
    yield from np.split(pairs, ends[:-1]) if len(pairs) else ()


def fast_gossip_descents(trials: Trials) -> Iterator[Outcome]:
    """Run the trials. A changing graph, and rows that are dealt out on the run's seed, are drawn anew in each."""
    population = Population(trials.run.plan.descent, [trials.rows(user) for user in range(trials.run.n)])
    for number in range(trials.count):
        trials.started(number)
        run = trials.run if trials.run.plan.coin is not None else trials.again(number)[0]
        if trials.run.spec.data.partition == "dirichlet":
            population = Population(run.plan.descent, [*map(trials.again(number)[1], range(run.n))])
        look = look_of(run, run.plan.gradients) if trials.begin + number < COMPARED_MAX else None
        yield fast_gossip_descent(run, population, trials.seed + number, look)


def fast_gossip_descent(run: RunPlan, population: Population, seed: int, look: Look | None = None) -> Outcome:
    """Run one trial; `population` is the users' examples, for trials to share; `look` is at the users' models."""
    plan: GossipSgdPlan = run.plan
    noise = _drawn(run, seed)
    extra = _noise_of_models(plan, SeededSampler(seed, "fast/messages"))
    sent = Sent(run.n)

    def counted() -> Iterator[Any]:
        for matrix in matrices_of(run, seed):
            sent.add(matrix)
            yield matrix

    # The first column is noised, the second is not.
    users = looked_at(run.n)
    done = None if look is None else lambda gradients, now: look.at(gradients, now[users, 0])
    models = learn(plan, population, counted(), lambda visit: noise[:, visit], columns=2, extra=extra, done=done)
    publishers = [user for user in range(run.n) if plan.publishes(user)]
    found = Outcome(counted={user: {0: plan.gradients} for user in range(run.n)}, messages=sent.messages)
    found.finals = dict(enumerate(models[:, 0]))
    found.published = run.protocol.publish(plan, [found.finals[user] for user in publishers])
    found.truth = truth_of_finals(run, dict(enumerate(models[:, 1])))
    found.curve = None if look is None else look.curve()
    return found


def matrices_of(run: RunPlan, seed: int) -> Iterator[Any]:
    """Yield the weights of each round."""
    plan: GossipSgdPlan = run.plan
    if plan.coin is not None:
        yield from changing_rounds(plan, plan.coin, seed)
        return
    assert run.graph is not None
    matrix = sparse_weights(run.graph, plan.weights)
    for _ in range(plan.rounds):
        yield matrix


def _drawn(run: RunPlan, seed: int) -> Floats:
    """Return the noise of each user's gradients, in data units: [user, gradient, column, number]."""
    plan: GossipSgdPlan = run.plan
    found = np.zeros((plan.n, plan.gradients, 2, plan.shape[0]))
    if plan.noise.name != "none":
        for user in range(plan.n):
            drawn = SeededSampler(seed, f"draws/{user}/1").batch(plan.noise, plan.shape, plan.gradients)
            found[user, :, 0] = np.array(drawn) * plan.step
    if plan.pair_noise is not None:
        found[:, :, 0] += drawn_together(run, seed, plan.gradients)
    return found


def _noise_of_models(plan: GossipSgdPlan, sampler: SeededSampler) -> Extra | None:
    mechanism = plan.message_noise
    if mechanism is None:
        return None

    def extra(matrix: Any, sent: Floats) -> Floats:
        """Return the noise on messages; draws are taken ordered by receiver, then by sender."""
        to, sender, weights = edges_of(matrix)
        drawn = np.array(sampler.batch(mechanism, plan.shape, len(to))) if len(to) else np.zeros((0, *plan.shape))
        off = snapped(sent, plan.step)[sender, 0] - sent[sender, 0] + drawn * plan.step
        added = np.zeros_like(sent)
        for part in range(sent.shape[2]):
            added[:, 0, part] = np.bincount(to, weights * off[:, part], plan.n)
        return added

    return extra
