"""Gaussian steps over minibatches that each row enters with the same chance, composed numerically [ZDW22]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.core.claims import Relation
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import ratio_upper
from p2pdp.privacy.contract import DELTA, Accountant, Answer, choice, number, whole
from p2pdp.privacy.subsampled import RATIO_MAX, Steps, epsilon_of
from p2pdp.privacy.theorems.gaussian import CONTINUOUS

_HIDDEN: Final = "nobody sees which rows are in a step, or how many"
_ENDS: Final = "sigma is that of a row's part of length 1 at most"


def _answer(inputs: Mapping[str, Any]) -> Answer:
    share, ratio = inputs["q"], ratio_upper(1.0, inputs["sigma"])
    found = epsilon_of([Steps(share, ratio, inputs["steps"])], Relation(inputs["relation"]), inputs["delta"])
    if found == math.inf:
        raise UsageError(f"sigma: for less than {1.0 / RATIO_MAX:g} nothing is computed")
    return Answer(
        {"epsilon": found},
        True,
        (CONTINUOUS, _HIDDEN, _ENDS),
        "Zhu, Dong and Wang 2022, Theorems 10 and 11; losses on a grid, rounded up",
    )


ACCOUNTANT: Final = Accountant(
    "epsilon of Gaussian steps over minibatches that each row enters by chance, composed numerically",
    (
        number("q", "the chance with which a row enters a step", 1e-9, 1.0),
        number("sigma", "standard deviation of the noise, for a row's part of length 1", 1e-6, 1e9),
        whole("steps", "how many steps there are", 1, 10**7),
        DELTA,
        choice("relation", "what a row is compared with", [*Relation], default=str(Relation.ZERO_OUT)),
    ),
    _answer,
)
