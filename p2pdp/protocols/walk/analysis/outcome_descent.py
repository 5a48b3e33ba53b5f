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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.assembly.curves import Curve, Look, look_of
from p2pdp.assembly.outcome import Number, Outcome, Path
from p2pdp.assembly.pools import CENTRAL, LOCAL, NONE, RUN, Pool, Scored
from p2pdp.auditor.context import sensitivity_of
from p2pdp.auditor.sampled import sigma_within
from p2pdp.core.arrays import Floats
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import TOKEN, Item
from p2pdp.core.values import GRADIENT, LinearForm
from p2pdp.ledger.records import OWN, RECEIVED, Contents, public_message, whole_message
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.privacy.iteration.path import exposures
from p2pdp.privacy.iteration.sampled import RATIO_MAX, SampledSteps
from p2pdp.privacy.iteration.walk import Exposure
from p2pdp.privacy.iteration.walk import epsilon as epsilon_by_iteration
from p2pdp.privacy.visits import gaussian_epsilon
from p2pdp.protocols.learning import noise_bound
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.a_priori import Visits, why_not_in_advance
from p2pdp.protocols.walk.analysis.iteration import why_not
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.rows import Layout
from p2pdp.replay.transcript import Transcript
from p2pdp.tasks.descending import Noise, Population, Watch


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
    found.curve = _curve_of_records(run, recorded.views, found.published)


def looks_at(run: RunPlan, count: int) -> list[Look]:
    """Return so many new looks, at the start of a descent; none without public rows."""
    return [look for look in (look_of(run, run.plan.steps) for _ in range(count)) if look is not None]


def watching(looks: Sequence[Look], width: int) -> Watch | None:
    """Return what shows each look its own lanes of a descent, so many for each."""
    if not looks:
        return None

    def watch(step: int, _before: Floats, after: Floats) -> None:
        for number, look in enumerate(looks):
            if look.wants(step):
                look.at(step, after[number * width : (number + 1) * width])

    return watch


def _curve_of_records(run: RunPlan, views: Mapping[Peer, Contents], published: Any) -> Curve | None:
    """Return the curve of the models that users received: a token at step s + 1 is the model after s steps."""
    plan: SgdPlan = run.plan
    look = look_of(run, plan.steps)
    if look is None:
        return None
    models: dict[int, dict[int, Floats]] = {}
    for peer, contents in views.items():
        for record in contents.records if is_user(peer) else ():
            if record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN:
                item, step = Item(*public_message(record).fields)
                if look.wants(step - 1) and step > 1:
                    models.setdefault(step - 1, {})[item] = np.asarray(whole_message(record).value)
    for done, of_tokens in models.items():
        if len(of_tokens) == plan.tokens:
            look.at(done, np.array(list(of_tokens.values())))
    if published is not None:
        look.at(plan.steps, np.array([published]))
    return look.curve()


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
    if run.plan.descent.samples:
        most = run.plan.contributions_max
        if paths is not None:
            most = max(Counter(user for path in paths for user, _ in path).values())
        return dict.fromkeys((LOCAL, CENTRAL), sigma_within(run, most, epsilon, delta))
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
    local = math.sqrt(most) * unit
    return {LOCAL: local, CENTRAL: local if central is None else central}


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
    alone = _sigma(run, local, epsilon)
    return {LOCAL: alone, CENTRAL: alone if secret is None else secret}


def _least(one: float | None, other: float) -> float:
    return other if one is None else min(one, other)


def _secret_sigma(run: RunPlan, epsilon: float, delta: float) -> float | None:
    """Search the least sigma of secret users; each guess takes epsilon's mu as proportional to the ratio.

    None where a record is protected: which user takes a step hides no row of it, since users' rows differ.
    """
    if run.by_record:
        return None
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
_AHEAD_NUMBERS: Final = 2**18  # or fewer, if that makes more numbers


def baselines_of(run: RunPlan, sigmas: dict[str, float | None]) -> dict[str, dict[str, Any]]:
    """Return the baselines that are known without any data: noise, and its largest effect on a model."""
    baselines: dict[str, dict[str, Any]] = {}
    for name, sigma in [*sigmas.items(), (NONE, 0.0)]:
        baselines[name] = {"standard_error": None if sigma is None else _error(run, sigma), "sigma": sigma}
    return baselines


def scored(
    run: RunPlan, found: Outcome, rows: Rows, truth: Number, sigmas: dict[str, float | None], seed: int
) -> Scored:
    """Return the scores of the model, and baselines with theirs."""
    pool = Pool(run, [rows(user) for user in range(run.n)])
    baselines = baselines_of(run, sigmas)
    models, curves = _models(run, found, rows, sigmas, seed)
    if truth is not None:
        models[NONE] = np.array(truth)
    for name in baselines:
        baselines[name] |= pool.scores(models[name]) if name in models else pool.unknown
    own = pool.unknown if found.published is None else pool.scores(found.published)
    return Scored({"score_name": pool.score_name, **own}, baselines, {RUN: found.curve, **curves})


def _models(
    run: RunPlan, found: Outcome, rows: Rows, sigmas: dict[str, float | None], seed: int
) -> tuple[dict[str, Floats], dict[str, Curve]]:
    """Return the models of the same steps with other noise, all levels side by side, and their curves."""
    plan: SgdPlan = run.plan
    levels = {name: sigma for name, sigma in sigmas.items() if sigma is not None}
    noised = list(levels.values())
    if run.public is not None:
        levels[NONE] = 0.0
    if not levels or found.paths is None:
        return {}, {}
    path, visits = lanes(found.paths)
    population = Population(plan.descent, [rows(user) for user in range(run.n)])
    scales = np.repeat(noised, plan.tokens)[:, None]
    bare = np.zeros((len(levels) * plan.tokens - len(scales), plan.shape[0]))  # these lanes come last
    sampler = SeededSampler(seed, "baselines")
    unit = Mechanism("gaussian", 2.0**30)
    shape = (len(scales), plan.shape[0])
    ahead = max(1, min(_AHEAD, _AHEAD_NUMBERS // max(1, math.prod(shape))))
    drawn = np.zeros((0, 0, 0))

    def noise(step: int) -> Floats | None:
        nonlocal drawn
        if not noised:
            return None
        place = (step - 1) % ahead
        if place == 0:
            count = min(ahead, plan.steps - step + 1)
            drawn = np.reshape(sampler.batch(unit, (math.prod(shape),), count), (count, *shape)) / unit.scale * scales
        return np.concatenate([drawn[place], bare])

    width = len(levels)
    looks = looks_at(run, width)
    watch = watching(looks, plan.tokens)
    models = population.descend(np.tile(path, (1, width)), np.tile(visits, (1, width)), plan.rates, noise, watch)
    means = models.reshape(width, plan.tokens, -1).mean(axis=1)
    curves = {name: look.curve() for name, look in zip(levels, looks, strict=False)}
    return dict(zip(levels, means, strict=True)), curves


def _error(run: RunPlan, sigma: float) -> list[float] | None:
    plan: SgdPlan = run.plan
    noise = Mechanism("gaussian", math.ldexp(sigma, -plan.grid_exponent)) if sigma else Mechanism("none", 0.0)
    bound = noise_bound(plan.descent, noise, plan.rates)
    return None if bound is None else [bound] * plan.descent.dimension
