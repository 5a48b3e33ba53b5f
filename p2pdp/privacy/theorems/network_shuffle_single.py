"""Network shuffling with one report sent on by each user, as printed: Theorems 5.5 and 5.6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.privacy.contract import Accountant, Answer, number
from p2pdp.privacy.shuffle.published import epsilon_single
from p2pdp.privacy.theorems.network_shuffle_all import NO_BOUND, printed, printed_inputs

_DELTA_2: Final = number("delta2", "counts with delta0 and delta1 only", 0.0, 1.0, is_open=True, optional=True)


def _answer(inputs: Mapping[str, Any]) -> Answer:
    delta, sum_p2 = inputs["delta"], inputs["sum_p2"]
    with_loads = delta + (inputs["delta2"] or 0.0) if inputs["delta0"] is not None else delta
    _, outputs = printed(inputs, with_loads, lambda epsilon_0: epsilon_single(epsilon_0, sum_p2, delta))
    assumptions = (*NO_BOUND, "rho makes no difference to Theorem 5.6")
    return Answer(outputs, False, assumptions, "Liew and others 2022, Theorems 5.5 and 5.6")


ACCOUNTANT: Final = Accountant(
    "network shuffling with one report sent on by each user, as printed",
    printed_inputs(_DELTA_2),
    _answer,
)
