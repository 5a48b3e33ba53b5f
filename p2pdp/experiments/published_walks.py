"""What published experiments say of walks on the complete graph that took place: recipes, none of which is a bound.

`pair_losses` is that behind figure 2b and 2c of [CB20, section 5.2], as their public code has it. An
observer's visits cut the walk into gaps of m steps. One in which user u is known to have been next to the observer
costs what m contributions together cost, once for each side; one of which nothing is known of u costs that amplified by
sampling m times from n users. Costs are composed by [KOV15]. It is no bound: the delta of
contributions is left out, and what u gave in a gap several times counts once.

`separate_exposures` is the account of amplification by iteration that their theorem on descent rests on: each
contribution of u by itself, spread over the noise of the steps from it to the observer's next visit. Repeated
contributions in one gap share that noise, which adding up misses; `accounting.iteration.path.exposures` does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from p2pdp.accounting.composition import drawn_with_replacement, heterogeneous_sums, sampled_epsilon
from p2pdp.core.arrays import Floats, Ints


def pair_losses(path: Ints, n: int, together: Callable[[int], float], delta_prime: float) -> Floats:
    """[user, observer], NaN on the diagonal; `together(m)` is what one of m contributions seen as one costs.

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

    Of steps in the order of time, with the gap that each is in, as for `accounting.iteration.path.exposures`.
    """
    if not len(gap):
        return np.zeros(users)
    last = np.flatnonzero(np.append(gap[1:] != gap[:-1], True))
    ends = last[np.searchsorted(last, np.arange(len(gap)))]
    inverse = 1.0 / (ends - np.arange(len(gap)) + 1.0)
    return np.bincount(user, weights=inverse, minlength=users).astype(np.float64)
