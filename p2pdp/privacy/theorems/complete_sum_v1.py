"""The sum on the complete graph, as the first version printed it [CB20, Theorem 3].

No bound: its proof takes the delta of a group of k for k deltas, which it is not. Its number of visits is loose too:
`visits_exact` is the quantile of the binomial law that `visits` stands for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.privacy.composition import growth, total_delta
from p2pdp.privacy.contract import DELTA_PRIME, EPSILON, LOCAL_DELTA, Accountant, Answer, number, whole
from p2pdp.privacy.visits import most_visits, printed_visits

N: Final = whole("n", "users", 1, 1_000_000_000)
HOPS: Final = whole("hops", "contributions to the token, T", 1, 1_000_000_000_000)
DELTA_HAT: Final = number("delta_hat", "the probability of more visits than counted", 0.0, 1.0, is_open=True)


def printed_epsilon(epsilon: float, n: int, visits: float, delta_prime: float) -> float:
    """Return the printed epsilon after `visits` visits to the observer."""
    gamma = _short(n)
    large = math.sqrt(2.0) * epsilon / math.pow(n, 0.25)
    tail = -2.0 * visits * math.log(delta_prime)
    return (
        math.sqrt(tail) * large
        + 2.0 * math.sqrt(tail * gamma) * epsilon
        + visits * large * growth(large)
        + 4.0 * visits * gamma * epsilon * growth(epsilon)
    )


def _short(n: int) -> float:
    """Return the probability that a cycle has fewer than sqrt(n)/2 steps."""
    return 1.0 if n == 1 else -math.expm1(math.sqrt(n) / 2.0 * math.log1p(-1.0 / n))


def _answer(inputs: Mapping[str, Any]) -> Answer:
    epsilon, n, hops, delta_prime = (inputs[name] for name in ("epsilon", "n", "hops", "delta_prime"))
    visits = printed_visits(hops, n, inputs["delta_hat"])
    outputs = {
        "epsilon": printed_epsilon(epsilon, n, visits, delta_prime),
        "delta": total_delta(hops / n * inputs["delta"], delta_prime, inputs["delta_hat"]),
        "gamma": _short(n),
        "visits": visits,
        "visits_exact": most_visits(hops, n, inputs["delta_hat"]),
    }
    assumptions = ("as printed: its proof takes the delta of a group of k contributions for k deltas",)
    return Answer(outputs, False, assumptions, "Cyffers and Bellet 2020, Theorem 3")


ACCOUNTANT: Final = Accountant(
    "the first version's theorem on sums by a walk on the complete graph, as printed",
    (EPSILON, LOCAL_DELTA, N, HOPS, DELTA_PRIME, DELTA_HAT),
    _answer,
)
