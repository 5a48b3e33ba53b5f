"""Bounds, by user and by message, what the rounding of states adds to what gossip tells, beside dithers.

The exact account is about the linear run: states are real numbers, and what is sent is a state plus fresh noise z. A
real machine keeps states on a grid of step D and sends M = state + D k, k being normal noise rounded to whole numbers
(`mechanisms/dither.py`; where messages have noise of a coarser grid besides, the sum is normal too, for a dither is
many steps of that grid wide). Let m = state + z with z normal, of deviation S, and M the grid point next to it: since
the state is on the grid, that is the real message. Now compare the laws, in both worlds, of everything:

    y (the users' noised values) and all m, one after another.

Given y and all m so far, the next m is normal with deviation S around the sender's state, in the real world as it is
rounded and in the linear one exact. Both states are functions of what is given; let them differ by E at most. Then the
next step is a Gaussian mechanism with shift E / S in each coordinate, and all of them together, by adaptive
composition, one with

    nu^2 = sum over messages and coordinates of (E / S)^2.

Whatever somebody sees is a function of y, of the m (by the grid points next to them) and of coins of its own, so no
test tells the real view from the linear one better than N(0, 1) from N(nu, 1). The linear view of D and of D' is told
apart like N(0, 1) from N(mu, 1) at most: independent noise only takes away. Trade-off functions of normal pairs chain
by adding their shifts, so the real views are told apart like N(0, 1) from N(mu + 2 nu, 1). It holds for any observer,
and for any that pool; and nobody learns more than from y itself, so the local ceiling stays.

E is worked out given the messages, so errors of others do not add up: a state that errs by e before a round errs after
it by (1 - kappa) e and what this round adds, kappa being the sum of the weights of the edges. In units of D, states
being below 2^51 and a float's rounding 2^-53 of what is rounded:

    kappa / 2     m is not M: others go on from the grid point
    kappa         weights and their products with differences below 2^52
    degree / 4    sums below 2^51
    1/2           back onto the grid

and with acceleration by gamma the first three times gamma and 1 more. What acceleration makes of one error is the
impulse response h of x' = gamma (1 - kappa) x + (1 - gamma) x_before; errors add up to the sum of |h|.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.mechanisms import gaussian

_EPSILON_MOST: Final = 500.0


def added(kappa: float, degree: int, gamma: float) -> float:
    """Return how much a round adds to the error of a state."""
    plain = 1.5 * kappa + degree / 4.0
    return plain + 0.5 if gamma == 1.0 else gamma * plain + 1.5


def responses(kappa: float, gamma: float, count: int, first: float) -> Floats:
    """Return what is left of an error after 0, 1, ..., `count` rounds, the first of which has a gamma of its own."""
    found = [1.0, first * (1.0 - kappa)]
    for _ in range(1, count):
        found.append(gamma * (1.0 - kappa) * found[-1] + (1.0 - gamma) * found[-2])
    sizes: Floats = np.abs(np.array(found[: count + 1]))
    return sizes


def errors(kappa: float, degree: int, gamma: float, block: int, blocks: int) -> Floats:
    """Return the errors of what a user sends in each round, and of its state after the last one.

    A block begins with a contribution, which brings the state onto the grid once more and takes nothing back; there
    acceleration begins anew.
    """
    fresh = added(kappa, degree, gamma)
    begun = responses(kappa, gamma, block, 1.0)
    later = np.concatenate([[0.0], np.cumsum(responses(kappa, gamma, block, gamma))[:block]]) * fresh
    found, error = [], 0.0
    for _ in range(blocks):
        error += 0.5 if blocks == 1 else 2.0  # the grid, and products and sums of a step of descent
        found.append(error * begun[:block] + later[:block])
        error = float(error * begun[block] + later[block])
    return np.concatenate([*found, [error]])


PAIR_ERROR: Final = 1.5
"""The same where two states are replaced by their mean, which is exact but for the grid: e = (e + 1/2) / 2 + 1/2."""


def beside(epsilon_at: Callable[[float], float], delta: float, nu: float) -> float:
    """Return epsilon at delta where a claim is no Gaussian one: `epsilon_at` is the linear run's.

    Where each real view is apart from its linear one by (e, d), delta(epsilon + 2 e) is at most
    exp(e) delta_linear(epsilon) + (1 + exp(epsilon + e)) d.
    """
    if nu == 0.0:
        return epsilon_at(delta)
    if not math.isfinite(nu):
        return math.inf
    epsilon = 0.0
    for share in (1e-4, 1e-3, 1e-2, 0.1, 0.5):
        if _apart(delta, share, epsilon, nu) is None:
            continue  # nor for any larger epsilon, and `epsilon_at` may take long
        epsilon = epsilon_at(delta * (1.0 - share))
        if epsilon > _EPSILON_MOST:
            break
        apart = _apart(delta, share, epsilon, nu)
        if apart is not None:
            return epsilon + 2.0 * apart
    return math.inf


def _apart(delta: float, share: float, epsilon: float, nu: float) -> float | None:
    """Return how far real and linear views are apart if this share of delta is left for that; None if not enough."""
    apart = gaussian.epsilon_of(share * delta / 4.0 * math.exp(-epsilon - 1.0), nu)
    return apart if apart < 1.0 and math.expm1(apart) <= share / 4.0 and math.exp(apart) < 2.0 else None


def shift(squares: float, dimensions: int, step: float, deviation: float) -> float:
    """Return nu from the sum of the squared errors of all messages, in units of `step`."""
    return math.sqrt(squares * dimensions) * step / deviation
