"""The sum on a ring [CB20, Algorithm 1 and Theorem 1].

Each of the K times that the token comes to a user, it brings one contribution of each other user under noise of its
own, so K mechanisms compose. The theorem is printed for a token that leaves the last holder without further noise;
then those who come last in the last lap may be unprotected, so it holds with the closing draw only. The number of draws
is ceil(Kn/(n-1)) and one, not floor(Kn/(n-1)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.core.errors import Refused
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.composition import advanced, total_delta
from p2pdp.privacy.contract import DELTA_PRIME, EPSILON, LOCAL_DELTA, Accountant, Answer, choice, whole

_DELTA_LEAST: Final = 1e-300  # below it no sigma is computed
ASSUMPTIONS: Final = (
    "the observer is one other user, who follows the protocol and does not collude",
    "the last holder adds one closing draw before the total leaves it",
    "each draw by itself gives the contribution that it covers epsilon and delta",
    "epsilon_gaussian: draws are Gaussian, of the least sigma for epsilon and delta, and inputs fixed beforehand",
)


def _answer(inputs: Mapping[str, Any]) -> Answer:
    epsilon, delta, laps, delta_prime = (inputs[name] for name in ("epsilon", "delta", "laps", "delta_prime"))
    if inputs["closing"] == "no":
        raise Refused(
            "without the closing draw a user after whom nobody draws any more reaches the last holder, and whoever "
            "sees the total, without noise; Theorem 1 does not hold (closing=yes)"
        )
    total = total_delta(laps * delta, delta_prime)
    outputs = {"epsilon": advanced(epsilon, laps, delta_prime), "delta": total}
    if delta >= _DELTA_LEAST:
        outputs["epsilon_gaussian"] = gaussian.epsilon_of(total, math.sqrt(laps) * gaussian.mu_of_curve(epsilon, delta))
    return Answer(outputs, True, ASSUMPTIONS, "Cyffers and Bellet 2020, Theorem 1, with a closing draw")


ACCOUNTANT: Final = Accountant(
    "what a user of a ring learns about another from a noised sum of K laps",
    (
        EPSILON,
        LOCAL_DELTA,
        whole("laps", "how often the token goes round", 1, 10_000_000),
        DELTA_PRIME,
        choice("closing", "whether the last holder draws noise once more", ("yes", "no"), default="yes"),
    ),
    _answer,
)
