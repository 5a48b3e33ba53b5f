"""Walks sampled from their distribution, for sums and for descents: no peers, no frames, no ledgers.

Guarantee: estimate, truth and visits of a trial have the distribution that they have in the simulated world
when nobody is gone and nothing is lost. The draws are others, so a single result differs from that of the
world on the same seed. `messages` counts the messages that carry a token or a total from one peer to another; the
messages of the life cycle are not made, and no bytes are counted.

Noise is summed draw by draw, as it is rounded to the grid draw by draw. Randomized answers are drawn as
counts: of c answers of one category a binomial number is kept, and all others are uniform together.

Descents of many trials are computed at once. Paths and models have the same guarantee, but for the dithers of models,
less than a millionth of the distance that they move; given path and noise a model is the machines' own except for these
and rounding (`tasks/descending.py`). Tokens advance side by side, a step each, which decides whose batches are used
when; in a world they may overtake each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Outcome
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.outcome_descent import looks_at, watching
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.protocols.walk.walking import WalkPlan
from p2pdp.sim.trials import COMPARED_MAX, Trials
from p2pdp.tasks.descending import Population, visits_along

_BATCH_MAX: Final = 2**18  # numbers drawn at a time


def fast_walks(trials: Trials) -> Iterator[Outcome]:
    for number in range(trials.count):
        trials.started(number)
        run, rows = trials.again(number)
        yield fast_outcome(run, rows, trials.seed + number)


def fast_outcome(run: RunPlan, rows: Callable[[Peer], Any], seed: int) -> Outcome:
    """Run one trial. `rows(user)` gives a user's bounded data."""
    plan: WalkPlan = run.plan
    key = int.from_bytes(SeededEntropy(seed, "fast").salt(), "big")
    generator = np.random.Generator(np.random.Philox(key=key))
    visits = np.zeros(plan.n, dtype=np.int64)
    messages = 0
    for start in plan.starts:
        path, sent = path_of(run, start.user, generator)
        visits += np.bincount(path, minlength=plan.n)
        messages += sent
    counted = {}
    total: Any = 0 if plan.shape == () else np.zeros(plan.shape, dtype=np.int64)
    for user in range(plan.n):
        values = run.protocol.inputs(plan, rows(user))[1]
        counted[user] = _times(int(visits[user]), len(values))
        for number, times in counted[user].items():
            if run.spec.task.kind == "histogram" and not run.by_record:
                total[values[number]] += times
            else:
                total = total + times * values[number]
    total = _randomized(plan, total, generator) if plan.noise.name == "randomized_response" else total
    return Outcome(total + _noise(plan, SeededSampler(seed, "fast")), counted, messages)


def _times(visits: int, values: int) -> dict[int, int]:
    """Return how often each value is contributed: they are used cyclically."""
    laps, rest = divmod(visits, values)
    return {number: laps + (number < rest) for number in range(min(visits, values))}


def path_of(run: RunPlan, user: Peer, generator: np.random.Generator) -> tuple[Ints, int]:
    """Return the contributors of steps 1 to T, and how often the token was sent on."""
    plan: WalkPlan = run.plan
    if plan.order == "ring":
        path = (user + np.arange(plan.steps)) % plan.n
    else:
        drawn = plan.steps - (plan.tokens == 1)  # each of several tokens is first sent to the user of its step 1
        if plan.order == "complete":
            moves = generator.integers(plan.n, size=drawn)
        else:
            moves = _wander([run.neighbours(peer) or (peer,) for peer in range(plan.n)], user, generator.random(drawn))
        path = np.concatenate([[user], moves])
    sent = int(np.count_nonzero(np.diff(path)))
    return path[len(path) - plan.steps :], sent


def _wander(neighbours: Sequence[Sequence[Peer]], user: Peer, uniforms: Floats) -> Ints:
    """Return the path of uniform moves to neighbours; a user without neighbours keeps the token."""
    path = []
    for uniform in uniforms.tolist():
        options = neighbours[user]
        user = options[int(uniform * len(options))]
        path.append(user)
    return np.array(path, dtype=np.int64)


def _randomized(plan: WalkPlan, counts: Ints, generator: np.random.Generator) -> Ints:
    kept = generator.binomial(counts, 1.0 - plan.noise.scale)
    uniform = int(counts.sum() - kept.sum()) + 2 * plan.dummies * plan.tokens
    categories = plan.noise.categories
    answers: Ints = kept + generator.multinomial(uniform, np.full(categories, 1.0 / categories))
    return answers


@lru_cache(maxsize=8)
def _draws(plan: WalkPlan) -> dict[Mechanism, int]:
    """Return the number of draws of each kind that all tokens carry in the end."""
    once = Counter(mechanism for step in range(1, plan.steps + 1) for mechanism in plan.draws_at(step))
    return {mechanism: count * plan.tokens for mechanism, count in once.items()}


def _noise(plan: WalkPlan, sampler: SeededSampler) -> Any:
    total: Any = 0
    batch = max(1, _BATCH_MAX // (plan.shape[0] if plan.shape else 1))
    for mechanism, count in _draws(plan).items():
        for begin in range(0, count, batch):
            drawn = np.asarray(sampler.batch(mechanism, plan.shape, min(batch, count - begin)))
            total = total + drawn.sum(axis=0)
    return int(total) if plan.shape == () else total


_AT_ONCE_MAX: Final = 1 << 20  # numbers of noise in memory

LANES_MAX: Final = 256


def fast_trials_of_descents(trials: Trials) -> Iterator[Outcome]:
    """Run the trials, many at once if all are of one plan and the same data."""
    at_once = max(1, LANES_MAX // trials.run.plan.tokens) if trials.same else 1
    for begin in range(0, trials.count, at_once):
        end = min(begin + at_once, trials.count)
        for number in range(begin, end):
            trials.started(number)
        run, rows = trials.again(begin)
        looked_at = max(0, COMPARED_MAX - trials.begin - begin)
        yield from fast_descents(run, rows, range(trials.seed + begin, trials.seed + end), looked_at)


def fast_descents(
    run: RunPlan, rows: Callable[[Peer], Any], seeds: Sequence[int], looked_at: int = COMPARED_MAX
) -> list[Outcome]:
    """Run one trial for each seed. `rows(user)` gives a user's examples; curves are those of the first trials."""
    plan: SgdPlan = run.plan
    trials = [_paths(run, seed) for seed in seeds]
    path = np.concatenate([found for found, _ in trials], axis=1)
    visits = np.concatenate([visits_along(found) for found, _ in trials], axis=1)
    population = Population(plan.descent, [rows(user) for user in range(run.n)])
    looks = looks_at(run, min(looked_at, len(seeds)))
    noised = population.descend(path, visits, plan.rates, _Noise(plan, seeds).of, watching(looks, plan.tokens))
    clean = population.descend(path, visits, plan.rates, lambda _step: None)
    outcomes = []
    for number, (_, messages) in enumerate(trials):
        mine = slice(number * plan.tokens, (number + 1) * plan.tokens)
        pairs = np.stack([path[:, mine], visits[:, mine]], axis=2)
        times = np.bincount(path[:, mine].reshape(-1), minlength=run.n)
        outcomes.append(
            Outcome(
                published=noised[mine].mean(axis=0),
                counted={user: {0: int(count)} for user, count in enumerate(times) if count},
                messages=messages,
                paths=[[(int(user), int(visit)) for user, visit in pairs[:, token]] for token in range(plan.tokens)],
                truth=[float(part) for part in clean[mine].mean(axis=0)],
                curve=looks[number].curve() if number < len(looks) else None,
            )
        )
    return outcomes


def _paths(run: RunPlan, seed: int) -> tuple[Ints, int]:
    """Return the contributor at each step of each token, and the number of messages."""
    key = int.from_bytes(SeededEntropy(seed, "fast").salt(), "big")
    generator = np.random.Generator(np.random.Philox(key=key))
    found = [path_of(run, start.user, generator) for start in run.plan.starts]
    return np.stack([path for path, _ in found], axis=1), sum(sent for _, sent in found)


class _Noise:
    """The noise of each lane, drawn some steps ahead."""

    def __init__(self, plan: SgdPlan, seeds: Sequence[int]) -> None:
        self._plan = plan
        self._samplers = [SeededSampler(seed, f"fast/{token}") for seed in seeds for token in range(plan.tokens)]
        self._ahead = max(1, _AT_ONCE_MAX // (len(self._samplers) * plan.shape[0]))
        self._drawn: Floats | None = None

    def of(self, step: int) -> Floats | None:
        plan = self._plan
        if plan.noise.name == "none":
            return None
        place = (step - 1) % self._ahead
        if place == 0 or self._drawn is None:
            count = min(self._ahead, plan.steps - step + 1)
            batches = [np.array(sampler.batch(plan.noise, plan.shape, count)) for sampler in self._samplers]
            self._drawn = np.stack(batches, axis=1) * plan.descent.step
        return np.asarray(self._drawn[place])
