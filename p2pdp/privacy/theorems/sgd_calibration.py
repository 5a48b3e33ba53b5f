"""The noise of the published experiment with descent by a walk [ABR23, section 5], by its authors' recipe.

Sigma of a gradient's noise for a total epsilon, as the public code of Cyffers and Bellet's experiment has it, which
[ABR23] repeats with the results 5.87 (local), 0.70 (central) and 1.97 to 1.22 (network: the first and the last split of
epsilon that its search tries). All three take the gradient's bound L for its sensitivity, where a replaced user moves a
gradient by 2L; users contribute at most ceil(c T/n) times, and only noise afterwards. Central is the bound of Bassily,
Smith and Thakurta (2014). None of these is a bound of what `walk.sgd` tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.core.errors import Refused
from p2pdp.privacy.composition import advanced
from p2pdp.privacy.contract import DELTA, Accountant, Answer, number, whole

ASSUMPTIONS: Final = (
    "the sensitivity of a gradient is taken for L, half of what it is for a replaced user",
    "after ceil(contributions T/n) contributions a user adds noise only",
    "the network's account misses repeated visits",
)
_ALIKE: Final = 1.05
_TRIES_MAX: Final = 2000
_GROWTH: Final = 1.15


def _answer(inputs: Mapping[str, Any]) -> Answer:
    lipschitz, n, hops = inputs["lipschitz"], inputs["n"], inputs["hops"]
    epsilon, delta = inputs["epsilon"], inputs["delta"]
    most = math.ceil(inputs["contributions"] * hops / n)
    each = delta / most
    local = _gaussian(lipschitz, _per_step(epsilon, most, each), each)
    central = 16.0 * lipschitz * math.sqrt(hops * math.log(2.0 / delta) * _log(1.25 * hops / (delta * n))) / n / epsilon
    first, last = _network(lipschitz, n, epsilon, delta, most)
    outputs = {
        "sigma_local": local,
        "sigma_central": central,
        "sigma_network_first": first,
        "sigma_network": last,
    }
    return Answer(outputs, False, ASSUMPTIONS, "Cyffers and Bellet 2022, section 5, as its code and [ABR23] have it")


def _network(lipschitz: float, n: int, epsilon: float, delta: float, most: int) -> tuple[float, float]:
    """Split epsilon between contributions that the observer is next to and others, until both ask for as much."""
    each = delta / most
    seen = math.ceil(2.0 * most / n + math.sqrt(6.0 * most * _log(1.0 / delta) / n))
    first: float | None = None
    share = 0.5
    for _ in range(_TRIES_MAX):
        seen_epsilon = share * epsilon
        step = max(seen_epsilon / seen, _per_step(seen_epsilon, seen, each))
        for_seen = _gaussian(lipschitz, step, each)
        for_others = _others(lipschitz, n, epsilon - seen_epsilon, delta, most)
        first = for_others if first is None else first
        if for_seen > _ALIKE * for_others:
            share *= 1.01
        elif for_others > _ALIKE * for_seen:
            share *= 0.99
        else:
            return first, max(for_seen, for_others)
        if not 0.0 < share < 1.0:
            break
    raise Refused("the recipe's search for a split of epsilon does not come to an end for these numbers")


def _others(lipschitz: float, n: int, epsilon: float, delta: float, most: int) -> float:
    """Return the least of a geometric row of sigmas that is enough for contributions that nobody sees directly."""
    if most >= n * _log(1.0 / delta) / (2.0 * math.log(n)):
        return 4.0 * lipschitz * math.sqrt(2.0 * most * math.log(n) * _log(1.0 / delta) / n) / epsilon
    sigma = _gaussian(lipschitz, epsilon, delta)
    while True:
        alpha = (1.0 + math.sqrt(1.0 + 2.0 * (sigma / lipschitz) ** 2)) / 2.0
        spent = 2.0 * most * lipschitz**2 * alpha * math.log(n) / (sigma**2 * n) + _log(1.0 / delta) / (alpha - 1.0)
        if spent < epsilon:
            return sigma
        sigma *= _GROWTH


def _gaussian(lipschitz: float, epsilon: float, delta: float) -> float:
    return math.sqrt(2.0 * math.log(1.25 / delta)) * lipschitz / epsilon


def _per_step(epsilon: float, count: int, delta: float) -> float:
    """Return epsilon of each of so many contributions whose advanced composition is this epsilon."""
    low, high = 0.0, epsilon
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if advanced(middle, count, delta) <= epsilon else (low, middle)
    if low == 0.0:
        raise Refused("advanced composition leaves no epsilon for a contribution")
    return low


def _log(value: float) -> float:
    """Return the logarithm of what has to be above 1 for the recipe to make sense."""
    if value <= 1.0:
        raise Refused("the recipe takes the logarithm of a number that is not above 1 here")
    return math.log(value)


ACCOUNTANT: Final = Accountant(
    "the noise that a published experiment took for local, central and network descent",
    (
        number("epsilon", "epsilon in all", 1e-3, 700.0),
        DELTA,
        number("lipschitz", "bound on the norm of a gradient, L", 1e-6, 1e6),
        whole("n", "users", 2, 1_000_000_000),
        whole("hops", "steps in all, T", 1, 1_000_000_000_000),
        number("contributions", "how often a user may contribute, in multiples of T/n", 1e-3, 1e3, default=1.2),
    ),
    _answer,
)
