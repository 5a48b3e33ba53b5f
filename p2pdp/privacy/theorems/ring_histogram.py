"""The histogram on a ring [CB20, Algorithm 2 and Theorem 2], with gamma the right way round.

A report is kept with probability 1 - gamma, else replaced by a uniform one. The theorem wants a shuffle of n
reports of epsilon_0 to be (epsilon, delta), by epsilon = 12 epsilon_0 sqrt(ln(1/delta)/n), so
epsilon_0 = epsilon/12 sqrt(n/ln(1/delta)) and gamma = L/(e^epsilon_0 + L - 1); its printed gamma has the square root
upside down and is given as `gamma_published`.

What a user sees between visits is no shuffle of n reports, but of n - 1, and at the start and end of few reports
and the ceil(gamma n) uniform elements that the first and the last holder put in. So each gap is checked by itself
(`gap_delta`), by Hoeffding's inequality on the privacy blanket of [BBGN19], which holds for any data of
the others. Where that does not confirm epsilon and delta of a gap, the theorem is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.core.errors import Refused
from p2pdp.privacy.composition import advanced, total_delta
from p2pdp.privacy.contract import DELTA, DELTA_PRIME, Accountant, Answer, number, whole

_ASSUMPTIONS: Final = (
    "the observer is one other user, who follows the protocol and does not collude",
    "the first holder puts ceil(gamma n) uniform elements in, and the last one as many before the histogram leaves it",
    "each user contributes one report a lap",
)


def gap_delta(epsilon: float, epsilon_0: float, categories: int, fixed: int, others: int) -> float:
    """Bound delta of one report among `others` more reports and `fixed` uniform elements.

    Of N + 1 blanket elements, u's own included, let a and b be the numbers that fell on u's two values.
    Then delta is at most E[gamma + (1-gamma) L a/(N+1) - e^epsilon (gamma + (1-gamma) L b/(N+1))]+, which is at
    most 1 and positive only if the sum of a - e^epsilon b is above its mean by
    (N+1) (e^epsilon - 1) (e^epsilon_0 + L - 1) / (L (e^epsilon_0 - 1)).
    """
    growth, growth_0 = math.expm1(epsilon), math.expm1(epsilon_0)
    excess = growth * (growth_0 + categories) / (categories * growth_0)
    rate = 2.0 * (excess / (2.0 + growth)) ** 2  # values a - e^epsilon b of one element span 1 + e^epsilon
    gamma = categories / (growth_0 + categories)
    return math.exp(-rate * (fixed + 1) + others * math.log1p(gamma * math.expm1(-rate)))


def _answer(inputs: Mapping[str, Any]) -> Answer:
    epsilon, delta, n, categories, laps = (inputs[name] for name in ("epsilon", "delta", "n", "categories", "laps"))
    for holds, assumption in (
        (epsilon < 0.5, "epsilon below 1/2"),
        (delta < 0.01, "delta below 1/100"),
        (n > 1000, "n above 1000"),
    ):
        if not holds:
            raise Refused(f"Theorem 2 assumes {assumption}")
    root = math.sqrt(-math.log(delta) / n)
    epsilon_0 = epsilon / 12.0 / root
    if epsilon_0 > 0.5:
        raise Refused(f"Theorem 2 assumes an epsilon of one report of at most 1/2, and this one is {epsilon_0:.6g}")
    gamma = categories / (math.expm1(epsilon_0) + categories)
    elements = math.ceil(gamma * n)
    gaps = gap_delta(epsilon, epsilon_0, categories, 0, n - 2), gap_delta(epsilon, epsilon_0, categories, elements, 0)
    if max(gaps) > delta:
        raise Refused("the gaps of this ring are not shown to keep epsilon and delta; delta is too small for n")
    outputs = {
        "gamma": gamma,
        "epsilon": advanced(epsilon, laps, inputs["delta_prime"]),
        "delta": total_delta(laps * delta, inputs["delta_prime"]),
        "epsilon_report": epsilon_0,
        "uniform_elements": elements,
        "gamma_published": categories / (math.expm1(12.0 * epsilon * root) + categories),
    }
    return Answer(outputs, True, _ASSUMPTIONS, "Cyffers and Bellet 2020, Theorem 2, with gamma inverted")


ACCOUNTANT: Final = Accountant(
    "randomized response for a histogram on a ring, and what a user learns about another from it",
    (
        number("epsilon", "epsilon of one lap", 1e-12, 700.0),
        DELTA,
        whole("n", "users", 1, 1_000_000_000),
        whole("categories", "categories of the histogram, L", 2, 1_000_000_000),
        whole("laps", "how often the token goes round", 1, 10_000_000),
        DELTA_PRIME,
    ),
    _answer,
)
