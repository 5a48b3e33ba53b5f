"""k mechanisms of the same epsilon and delta together, by three theorems.

`epsilon` is the form that the papers print; `epsilon_kov` the least of three forms of [KOV15],
and `epsilon_optimal` their exact value. All go with the same delta, k delta + delta'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.privacy.composition import advanced, homogeneous, optimal, total_delta
from p2pdp.privacy.contract import DELTA_PRIME, EPSILON, LOCAL_DELTA, Accountant, Answer, whole


def _answer(inputs: Mapping[str, Any]) -> Answer:
    epsilon, k, delta_prime = inputs["epsilon"], inputs["k"], inputs["delta_prime"]
    delta = total_delta(k * inputs["delta"], delta_prime)
    outputs = {
        "epsilon": advanced(epsilon, k, delta_prime),
        "epsilon_kov": homogeneous(epsilon, k, delta_prime),
        "epsilon_optimal": optimal(epsilon, k, delta_prime),
        "epsilon_sum": k * epsilon,
        "delta": delta,
    }
    assumptions = ("the mechanisms may be chosen adaptively, their epsilons and deltas may not",)
    return Answer(outputs, True, assumptions, "Dwork, Rothblum and Vadhan 2010; Kairouz, Oh and Viswanath 2015")


ACCOUNTANT: Final = Accountant(
    "epsilon and delta of k mechanisms of the same epsilon and delta together",
    (EPSILON, LOCAL_DELTA, whole("k", "how many mechanisms", 1, 1_000_000), DELTA_PRIME),
    _answer,
)
