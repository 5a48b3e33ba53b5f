"""Network shuffling with all reports sent on, as printed: Theorems 5.3 and 5.4 (`privacy/shuffle/published.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.privacy.contract import DELTA, Accountant, Answer, Input, number, whole
from p2pdp.privacy.shuffle.published import check_approximate, delta_approximate, epsilon_all, load

_DELTA_2: Final = number("delta2", "the probability that the loads are uneven", 0.0, 1.0, is_open=True)


def printed_inputs(delta_2: Input) -> tuple[Input, ...]:
    """Return the inputs that both protocols ask for."""
    return (
        number("epsilon0", "epsilon of one report", 0.0, 700.0, is_open=True),
        whole("n", "users", 1, 1_000_000_000_000),
        number("sum_p2", "the sum over places of the squared chance of a report to be there", 0.0, 1.0),
        DELTA,
        delta_2,
        number("rho", "largest over smallest chance of a place; 1 for stationary walks", 1.0, 1e12, default=1.0),
        number("delta0", "delta of one report, with delta1", 0.0, 1.0, is_open=True, optional=True),
        number("delta1", "how far reports are from purely private ones", 0.0, 1.0, is_open=True, optional=True),
    )


def printed(
    inputs: Mapping[str, Any], plain: float, epsilon: Callable[[float], float]
) -> tuple[float, dict[str, float]]:
    """Return the epsilon that reports count with, and what is printed; `plain` is delta for pure reports."""
    epsilon_0, delta_0, delta_1 = inputs["epsilon0"], inputs["delta0"], inputs["delta1"]
    if (delta_0 is None) != (delta_1 is None):
        raise UsageError("delta1: give both delta0 and delta1, or neither")
    if inputs["sum_p2"] * inputs["n"] < 1.0 - 1e-9:
        raise UsageError("sum_p2: n chances that add up to 1 have squares that add up to at least 1/n")
    if delta_0 is None:
        return epsilon_0, {"epsilon": epsilon(epsilon_0), "delta": plain}
    check_approximate(epsilon_0, delta_0, delta_1)
    found = epsilon(8.0 * epsilon_0)
    return 8.0 * epsilon_0, {"epsilon": found, "delta": plain + delta_approximate(found, inputs["n"], delta_1)}


def _answer(inputs: Mapping[str, Any]) -> Answer:
    n, delta, delta_2 = inputs["n"], inputs["delta"], inputs["delta2"]
    asked = n, inputs["sum_p2"], delta_2, inputs["rho"]
    e1 = load(*asked, corrected=False)
    counted, outputs = printed(inputs, delta + delta_2, lambda epsilon_0: epsilon_all(epsilon_0, e1, delta))
    outputs["epsilon_corrected"] = epsilon_all(counted, load(*asked, corrected=True), delta)
    return Answer(outputs, False, NO_BOUND, "Liew and others 2022, Theorems 5.3 and 5.4")


NO_BOUND: Final = (
    "as printed: the proof needs the same law of a report's place for every user, so this bounds nothing",
    "the curator sees where reports end and nothing of their way",
)

ACCOUNTANT: Final = Accountant(
    "network shuffling with all reports sent on, as printed",
    printed_inputs(_DELTA_2),
    _answer,
)
