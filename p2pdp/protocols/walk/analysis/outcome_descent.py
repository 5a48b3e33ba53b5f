"""The outcome of a run of descent, read from its ledgers: the paths, the model without noise, baselines and scores.

A path gives for each step of a token the contributing user and the index of that contribution. If nobody was bypassed
it is in the users' own ledgers; otherwise a replay determines the contributions in the totals.

`sigmas_of` gives the noise of local and of central privacy at the same epsilon and delta. Local: everybody sees every
noised gradient; accounted for as the run itself is, given the path if it is known, else over the law of the walk.
Central: a trusted curator takes as many steps with users that it draws in secret, and publishes the model. That has the
better of two accounts: by iteration, as of the run, where steps contract, and by the secret
(`privacy/iteration/sampled.py`), which holds for any loss. Sigma is None if no amount is known to be enough.

Models are scored beside local, central and no privacy on the same path. Scores are given only where the launcher has
the data, as it has the truth; nothing here is ever shown while a run goes on. Noise of the baselines is drawn from
a stream of its own, named after the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Number, Outcome, Path
from p2pdp.assembly.pools import CENTRAL, LOCAL, NONE, Pool
from p2pdp.auditor.context import sensitivity_of
from p2pdp.core.arrays import Floats
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import TOKEN, Item
from p2pdp.core.values import GRADIENT, LinearForm
from p2pdp.ledger.records import OWN, RECEIVED, Contents, public_message
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.privacy.iteration.path import exposures
from p2pdp.privacy.iteration.sampled import RATIO_MAX, SampledSteps
from p2pdp.privacy.iteration.walk import Exposure
from p2pdp.privacy.iteration.walk import epsilon as epsilon_by_iteration
from p2pdp.privacy.visits import gaussian_epsilon
from p2pdp.protocols.learning import SCORES, noise_bound
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.a_priori import Visits, why_not_in_advance
from p2pdp.protocols.walk.analysis.iteration import why_not
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.rows import Layout
from p2pdp.replay.transcript import Transcript
from p2pdp.tasks.descending import Noise, Population


def gather(run: RunPlan, recorded: Recorded, found: Outcome) -> None:
    """Add the paths, and the number of contributions of each user, to an outcome."""
    if found.excluded:
        found.paths = _paths_of_forms(run.plan, recorded.transcript)
    else:
        found.paths = _paths_of_records(run.plan, recorded.views)
    counted: dict[Peer, int] = {}
    for path in found.paths or ():
        for user, _ in path:
            counted[user] = counted.get(user, 0) + 1
    found.counted = {user: {0: times} for user, times in sorted(counted.items())}


def _paths_of_records(plan: SgdPlan, views: Mapping[Peer, Contents]) -> list[Path] | None:
    steps: list[dict[int, tuple[Peer, int]]] = [{} for _ in range(plan.tokens)]
    for peer, contents in views.items():
        visit = 0
        for record in contents.records if is_user(peer) else ():
            if record.kind in (RECEIVED, OWN):
                message = public_message(record)
                if message.type == TOKEN:
                    item, step = Item(*message.fields)
                    steps[item][step] = (peer, visit)
                    visit += 1
    if any(len(path) != plan.steps for path in steps):
        return None
    return [[path[step] for step in sorted(path)] for path in steps]


def _paths_of_forms(plan: SgdPlan, transcript: Transcript) -> list[Path] | None:
    """Return the contributions to each total, in order, from traces."""
    layout = Layout()
    paths = []
    for total in transcript.totals:
        path = trace_of(layout, total)
        if path is None or len(path) != plan.steps:
            return None
        paths.append(path)
    return paths if len(paths) == plan.tokens else None


def trace_of(layout: Layout, form: LinearForm) -> Path | None:
    """Return the contributions in a form, in order; None if it has none or is no trace."""
    placed = layout.place(form)
    if len(placed) != 1:
        return None
    chain, length = next(iter(placed))
    return [(source.peer, source.number) for source in layout.chain(chain).sources[:length] if source.kind == GRADIENT]


def lanes(paths: Sequence[Path]) -> tuple[Any, Any]:
    """Return users and visits, [step, token]."""
    table = np.array(paths, dtype=np.int64)
    return table[:, :, 0].T, table[:, :, 1].T


def model_along(run: RunPlan, paths: Sequence[Path], rows: Callable[[Peer], Any], noise: Noise) -> Floats:
    """Return the mean of the tokens' models along these paths."""
    plan: SgdPlan = run.plan
    population = Population(plan.descent, [rows(user) for user in range(run.n)])
    path, visits = lanes(paths)
    return np.asarray(population.descend(path, visits, plan.rates, noise).mean(axis=0))


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """Return the model of the same visits without noise; None if they are unknown."""
    if found.truth is not None:
        return found.truth
    if found.paths is None or found.published is None:
        return None
    return [float(part) for part in model_along(run, found.paths, rows, lambda _step: None)]


_NARROW: Final = 1.0 + 1e-6
_TRIES: Final = 16
_CLOSE: Final = 1.0 + 2e-3
_RATIOS: Final = (1e-9, 1e6)


def sigmas_of(
    run: RunPlan, paths: Sequence[Sequence[tuple[Peer, int]]] | None, epsilon: float | None, delta: float
) -> dict[str, float | None]:
    """Return sigmas in data units, at the headline's epsilon: given the paths if they are known, else in advance."""
    if epsilon is None or not 0.0 < epsilon < math.inf or run.plan.noise.name == "none":
        return {LOCAL: None, CENTRAL: None}
    return sigmas_in_advance(run, epsilon, delta) if paths is None else sigmas_along(run, paths, epsilon, delta)


def sigmas_along(
    run: RunPlan, paths: Sequence[Sequence[tuple[Peer, int]]], epsilon: float, delta: float
) -> dict[str, float | None]:
    """Return sigmas in data units, for the user who is worst off on these paths."""
    plan: SgdPlan = run.plan
    users = np.array([[user for user, _ in path] for path in paths], dtype=np.int64)
    gap = np.repeat(np.arange(len(paths)), plan.steps)
    unit = _unit(run) / gaussian.mu_of_curve(epsilon, delta)
    most = int(np.bincount(users.reshape(-1)).max())
    central = _secret_sigma(run, epsilon, delta)
    if why_not(plan) is None:
        leaks = exposures(gap, users.reshape(-1), np.tile(plan.rates, len(paths)), run.n)
        central = _least(central, math.sqrt(float(leaks.max())) * unit)
    return {LOCAL: math.sqrt(most) * unit, CENTRAL: central}


def sigmas_in_advance(run: RunPlan, epsilon: float, delta: float) -> dict[str, float | None]:
    """Return sigmas in data units, for the user who is worst off in the law of a random walk."""
    plan: SgdPlan = run.plan
    laws = dict.fromkeys(Visits(run, delta).all_tokens)

    def local(ratio: float) -> float:
        return max(gaussian_epsilon(law, ratio, delta) for law in laws)

    def central(ratio: float) -> float:
        single = plan.tokens == 1
        exposure = Exposure(run.n, plan.steps - single, starts=single, watched=False)
        return epsilon_by_iteration(ratio, exposure, plan.tokens, delta)

    secret = _secret_sigma(run, epsilon, delta)
    if why_not_in_advance(plan) is None:
        secret = _least(secret, _sigma(run, central, epsilon))
    return {LOCAL: _sigma(run, local, epsilon), CENTRAL: secret}


def _least(one: float | None, other: float) -> float:
    return other if one is None else min(one, other)


def _secret_sigma(run: RunPlan, epsilon: float, delta: float) -> float | None:
    """Search the least sigma of secret users; each guess takes epsilon's mu as proportional to the ratio."""
    wanted = gaussian.mu_of_curve(epsilon, delta)
    low, high, best = 0.0, RATIO_MAX, 0.0
    ratio = min(wanted / math.sqrt(1.0 + run.plan.length / run.n), high)
    for _ in range(_TRIES):
        found = SampledSteps(ratio, run.n, run.plan.length, delta).known(0)
        if found <= epsilon:
            low = best = ratio
        else:
            high = ratio
        if high <= low * _CLOSE or (best == ratio and (found * _CLOSE >= epsilon or ratio == RATIO_MAX)):
            break
        guess = ratio * wanted / gaussian.mu_of_curve(found, delta) * 0.9995 if 0.0 < found < math.inf else 0.0
        ratio = guess if low < guess < high else (math.sqrt(low * high) if low else high / 2.0)
    return _unit(run) / best if best else None


def _sigma(run: RunPlan, epsilon_of: Callable[[float], float], epsilon: float) -> float:
    """Return sigma at the largest ratio of sensitivity to noise that stays within epsilon."""
    low, high = _RATIOS
    if epsilon_of(high) <= epsilon:
        return _unit(run) / high
    while high > low * _NARROW:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if epsilon_of(middle) <= epsilon else (low, middle)
    return _unit(run) / low


def _unit(run: RunPlan) -> float:
    return math.ldexp(sensitivity_of(run), run.plan.grid_exponent)


Rows = Callable[[Peer], Any]

_AHEAD: Final = 4096  # steps for which noise is drawn at once


def baselines_of(run: RunPlan, sigmas: dict[str, float | None]) -> dict[str, dict[str, Any]]:
    """Return the baselines that are known without any data: noise, and its largest effect on a model."""
    baselines: dict[str, dict[str, Any]] = {}
    for name, sigma in [*sigmas.items(), (NONE, 0.0)]:
        baselines[name] = {"standard_error": None if sigma is None else _error(run, sigma), "sigma": sigma}
    return baselines


def scored(
    run: RunPlan, found: Outcome, rows: Rows, truth: Number, sigmas: dict[str, float | None], seed: int
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the scores of the model, and baselines with theirs."""
    pool = Pool(run, [rows(user) for user in range(run.n)])
    baselines = baselines_of(run, sigmas)
    models = _models(run, found, rows, sigmas, seed)
    if truth is not None:
        models[NONE] = np.array(truth)
    for name in baselines:
        baselines[name] |= pool.scores(models[name]) if name in models else dict.fromkeys(SCORES)
    own = dict.fromkeys(SCORES) if found.published is None else pool.scores(found.published)
    return {"score_name": pool.score_name, **own}, baselines


def _models(run: RunPlan, found: Outcome, rows: Rows, sigmas: dict[str, float | None], seed: int) -> dict[str, Floats]:
    """Return the models of the same steps with other noise, all levels side by side."""
    plan: SgdPlan = run.plan
    levels = {name: sigma for name, sigma in sigmas.items() if sigma is not None}
    if not levels or found.paths is None:
        return {}
    path, visits = lanes(found.paths)
    population = Population(plan.descent, [rows(user) for user in range(run.n)])
    scales = np.repeat(list(levels.values()), plan.tokens)[:, None]
    sampler = SeededSampler(seed, "baselines")
    unit = Mechanism("gaussian", 2.0**30)
    drawn = np.zeros((0, 0, 0))

    def noise(step: int) -> Floats:
        nonlocal drawn
        place = (step - 1) % _AHEAD
        if place == 0:
            shape = (len(scales), plan.shape[0])
            count = min(_AHEAD, plan.steps - step + 1)
            drawn = np.reshape(sampler.batch(unit, (math.prod(shape),), count), (count, *shape)) / unit.scale * scales
        return np.asarray(drawn[place])

    width = len(levels)
    models = population.descend(np.tile(path, (1, width)), np.tile(visits, (1, width)), plan.rates, noise)
    means = models.reshape(width, plan.tokens, -1).mean(axis=1)
    return dict(zip(levels, means, strict=True))


def _error(run: RunPlan, sigma: float) -> list[float] | None:
    plan: SgdPlan = run.plan
    noise = Mechanism("gaussian", math.ldexp(sigma, -plan.grid_exponent)) if sigma else Mechanism("none", 0.0)
    bound = noise_bound(plan.descent, noise, plan.rates)
    return None if bound is None else [bound] * plan.descent.dimension
