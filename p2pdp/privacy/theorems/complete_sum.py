"""The sum on the complete graph by [CB22, Theorem 3], in the form of its authors' code.

The walk is cut into fictive cycles of n steps, of which each costs 3 epsilon / sqrt(n), and N + T/n of them
compose, by the sum or by advanced composition, whichever is less. Its deltas are added up as in the first
version, where a group of k is given k deltas, so this is no bound either; a proven account of the same walk
comes from the loss distributions of the gaps, by the auditor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.privacy.composition import advanced, total_delta
from p2pdp.privacy.contract import DELTA_PRIME, EPSILON, LOCAL_DELTA, Accountant, Answer
from p2pdp.privacy.theorems.complete_sum_v1 import DELTA_HAT, HOPS, N
from p2pdp.privacy.visits import most_visits, printed_visits


def printed_epsilon(epsilon: float, n: int, cycles: float, delta_prime: float) -> float:
    """Return the printed epsilon for so many fictive cycles of n steps."""
    cycle = 3.0 * epsilon / math.sqrt(n)
    return min(cycles * cycle, advanced(cycle, cycles, delta_prime))


def _answer(inputs: Mapping[str, Any]) -> Answer:
    n, hops = inputs["n"], inputs["hops"]
    visits = printed_visits(hops, n, inputs["delta_hat"])
    cycles = visits + hops / n
    outputs = {
        "epsilon": printed_epsilon(inputs["epsilon"], n, cycles, inputs["delta_prime"]),
        "delta": total_delta(cycles * inputs["delta"], inputs["delta_prime"], inputs["delta_hat"]),
        "cycles": cycles,
        "visits": visits,
        "visits_exact": most_visits(hops, n, inputs["delta_hat"]),
    }
    assumptions = ("as printed: its proof takes the delta of a group of k contributions for k deltas",)
    return Answer(outputs, False, assumptions, "Cyffers and Bellet 2022, Theorem 3, constants of the authors' code")


ACCOUNTANT: Final = Accountant(
    "the theorem of 2022 on sums by a walk on the complete graph, as printed",
    (EPSILON, LOCAL_DELTA, N, HOPS, DELTA_PRIME, DELTA_HAT),
    _answer,
)
