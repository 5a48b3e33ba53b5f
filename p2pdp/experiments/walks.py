"""The common part of figures about walks on the complete graph: parameters, paths, recipes, views, pictures.

The walks are those of `walk.sum` as its plan says, T = 100 n steps of one token that begins at user 0. Parameters that
the papers' texts leave out are those of their public code: epsilon_0 of 0.1 and 0.4, and a delta of 1e-7 for each
contribution and each composition. Sound curves stand at delta 1e-5, which is less than the recipes add up to.

Recipes are what published experiments say of walks that took place; none is a bound. `pair_losses` is that of figures
2b and 2c in [CB20, section 5.2], as their public code has it. An observer's visits cut the walk into gaps of m steps.
A gap in which user u is known to have been next to the observer costs what m contributions together cost, once for
each side; one of which nothing is known of u costs that amplified by sampling m times from n users. Costs are composed
by [KOV15]. It is no bound: the delta of contributions is left out, and what u gave in a gap several times counts once.
`separate_exposures` is the account of amplification by iteration that their theorem on descent rests on: each
contribution of u by itself, spread over the noise of the steps from it to the observer's next visit. Repeated
contributions in one gap share that noise, which adding up misses; `privacy.iteration.path.exposures` does not.

For each epsilon_0, number of users and walk there is a piece, which answers with mean, least and largest loss of
several accounts. Each account is a curve with error bars from the best to the worst pair of all walks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.experiments.contract import Answers, Made, Piece, Setting, Table
from p2pdp.experiments.style import Curve, Panel, panels
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.composition import drawn_with_replacement, heterogeneous_sums, sampled_epsilon
from p2pdp.privacy.hidden_path.gaps import Gap, Visit, gaps_of
from p2pdp.protocols.run_plan import plan_run
from p2pdp.protocols.walk.analysis.fast import path_of
from p2pdp.protocols.walk.options import WalkPart

if TYPE_CHECKING:
    from p2pdp.experiments.contract import Line

SEED: Final = 20_201_116
VISITS: Final = 100  # T / n
EPSILONS: Final = (0.1, 0.4)
DELTA: Final = 1e-7  # of a contribution, and of a composition, as in the papers' recipes
SOUND_DELTA: Final = 1e-5
_NODES: Final = (5, 10, 20, 50, 100, 200, 400)
_NODES_QUICK: Final = (5, 20)
_WALKS: Final = 10
_WALKS_QUICK: Final = 2


def nodes(setting: Setting) -> tuple[int, ...]:
    return _NODES_QUICK if setting.quick else _NODES


def walks(setting: Setting) -> int:
    return _WALKS_QUICK if setting.quick else _WALKS


def ratio(epsilon_0: float) -> float:
    """Return the mu of a contribution that is (epsilon_0, 1e-7)-DP by itself: sensitivity over deviation."""
    return 1.0 / gaussian.sigma_of(epsilon_0, DELTA)


def path(n: int, walk: int) -> Ints:
    """Return the contributors at steps 1 to T of walk number `walk`."""
    spec = Spec(
        run=RunPart("walk.sum", n),
        graph=GraphPart("complete"),
        noise=NoisePart("gaussian", sigma=1.0),
        data=DataPart("uniform", clip=(0.0, 1.0)),
        task=TaskPart("sum"),
        options=WalkPart("random", hops=VISITS * n),
    )
    run = plan_run(spec, n, 1, None, sampler="seeded")
    generator = np.random.Generator(np.random.Philox(key=SEED + 1000 * n + walk))
    return path_of(run, 0, generator)[0]


def gaps(steps: Ints, n: int) -> list[list[Gap]]:
    """Return what each user knows of the stretches between its visits."""
    before = [None, *steps[:-1].tolist()]
    after = [*steps[1:].tolist(), None]
    visits: list[list[Visit]] = [[] for _ in range(n)]
    for place, user in enumerate(steps.tolist()):
        visits[user].append((place + 1, before[place], after[place]))
    moves = [0, 0, *np.cumsum(np.diff(steps) != 0).tolist()]
    return [gaps_of([seen], len(steps), [0], moves=[moves]) for seen in visits]


def seen_by(steps: Ints, observer: int) -> tuple[Ints, Ints]:
    """Return for all steps of others the observer's gap that each is in, and its user."""
    others = steps != observer
    return np.cumsum(~others)[others], steps[others]


def spread(losses: Floats) -> dict[str, float]:
    """Return mean, least and largest over pairs; NaN marks what is no pair."""
    return {
        "mean": float(np.nanmean(losses)),
        "best": float(np.nanmin(losses)),
        "worst": float(np.nanmax(losses)),
    }


def gathered(answers: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float, float] | None:
    """Return mean, best and worst over all walks of one kind of loss; None where no walk has it."""
    found = [answer[name] for answer in answers if name in answer]
    if not found:
        return None
    mean = sum(one["mean"] for one in found) / len(found)
    return mean, min(one["best"] for one in found), max(one["worst"] for one in found)


def pair_losses(path: Ints, n: int, together: Callable[[int], float], delta_prime: float) -> Floats:
    """Return losses [user, observer], NaN on the diagonal; `together(m)` is the loss of one of m joined contributions.

    The token begins at `path[0]`; gaps end at visits, so nothing is said of what follows an observer's last one. As in
    the authors' code the delta of composition is `delta_prime` for each gap.
    """
    found = np.full((n, n), np.nan)
    sizes: dict[int, tuple[float, float]] = {}
    for observer in range(n):
        times = np.flatnonzero(path[1:] == observer) + 1
        before = np.concatenate([[0], times[:-1]])
        for size in np.unique(times - before).tolist():
            if size not in sizes:
                cost = together(size)
                sizes[size] = cost, sampled_epsilon(cost, drawn_with_replacement(n, size))
        known = np.array([sizes[size][0] for size in (times - before).tolist()])
        unknown = np.array([sizes[size][1] for size in (times - before).tolist()])
        beside = np.zeros((len(times), 2), dtype=np.int64)
        beside[:, 0] = path[times - 1]
        beside[:, 1] = path[before + 1]
        losses = np.tile(unknown, (n, 1))
        rows = np.arange(len(times))
        losses[beside[:, 0], rows] = known
        both = beside[:, 0] == beside[:, 1]
        losses[beside[:, 1], rows] = np.where(both, 2.0, 1.0) * known
        squares = losses * losses
        drift = losses * np.tanh(losses / 2.0)
        least = math.nextafter(1.0, 0.0)
        delta = min(max(1, len(times)) * delta_prime, least)
        found[:, observer] = heterogeneous_sums(losses.sum(axis=1), drift.sum(axis=1), squares.sum(axis=1), delta)
        found[observer, observer] = np.nan
    return found


def separate_exposures(gap: Ints, user: Ints, users: int) -> Floats:
    """Sum of 1/G over each user's contributions, G steps from it (its own included) to the end of its gap; one rate.

    Of steps in the order of time, with the gap that each is in, as for `privacy.iteration.path.exposures`.
    """
    if not len(gap):
        return np.zeros(users)
    last = np.flatnonzero(np.append(gap[1:] != gap[:-1], True))
    ends = last[np.searchsorted(last, np.arange(len(gap)))]
    inverse = 1.0 / (ends - np.arange(len(gap)) + 1.0)
    return np.bincount(user, weights=inverse, minlength=users).astype(np.float64)


Losses = Callable[[int, int, float], dict[str, dict[str, float]]]
"""Of n users, the walk's number and epsilon_0: for each account mean, best and worst over pairs."""

_COLUMNS: Final = ("epsilon_0", "n", "account", "mean", "best", "worst", "walks")


@dataclass(frozen=True, slots=True)
class Account:
    """One curve: its name in answers, in tables and in the legend, and its look."""

    name: str
    label: str
    look: int


def pieces(setting: Setting, losses: Losses, facts: Mapping[str, Any]) -> list[Piece]:
    """Return the pieces, the largest first: they take longest."""
    found = []
    for n in sorted(nodes(setting), reverse=True):
        for epsilon_0 in EPSILONS:
            for walk in range(walks(setting)):
                key = f"n{n}-e{round(1000 * epsilon_0)}-w{walk}"
                told = {"n": n, "epsilon_0": epsilon_0, "walk": walk, "seed": SEED, **facts}
                found.append(Piece(key, partial(losses, n, walk, epsilon_0), told))
    return found


def answers_of(setting: Setting, answers: Answers, n: int, epsilon_0: float) -> list[Mapping[str, Any]]:
    return [answers[f"n{n}-e{round(1000 * epsilon_0)}-w{walk}"] for walk in range(walks(setting))]


def rows(setting: Setting, answers: Answers, accounts: Sequence[Account]) -> list[tuple[float | str, ...]]:
    found: list[tuple[float | str, ...]] = []
    for epsilon_0 in EPSILONS:
        for n in nodes(setting):
            each = answers_of(setting, answers, n, epsilon_0)
            for account in accounts:
                spread = gathered(each, account.name)
                if spread is not None:
                    count = sum(account.name in answer for answer in each)
                    found.append((epsilon_0, n, account.name, *spread, count))
    return found


def made(setting: Setting, answers: Answers, accounts: Sequence[Account], title: str, lines: Sequence[Line]) -> Made:
    table = rows(setting, answers, accounts)
    users = sorted({int(row[1]) for row in table})
    shown = []
    for epsilon_0 in EPSILONS:
        curves = []
        for place, account in enumerate(accounts):
            own: list[Any] = [row for row in table if row[0] == epsilon_0 and row[2] == account.name]
            if own:
                _, n, _, mean, best, worst, _ = zip(*own, strict=True)
                shifted = [count * 1.05 ** (place - len(accounts) / 2) for count in n]
                curves.append(Curve(account.label, shifted, mean, best, worst, account.look))
        shown.append(Panel(f"each contribution ε₀ = {epsilon_0:g}", "number of users n", curves, ticks=users))
    picture = panels((7.2, 4.4), shown, y="privacy loss ε of a pair", title=title)
    return Made((Table("", _COLUMNS, table),), tuple(lines), (picture,))
