"""Network shuffling, soundly: any graph and any number of rounds, by how much the users' walks overlap.

For users u and j let kappa_j be the minimum over i of P_j(i) / P_u(i), over the places i that u's walk can end at.
With probability kappa_j the report of j is where u's might be, by the same law; reveal the reports of the rest, and
what is left is a uniform shuffle of u's and Bin(n - 1, kappa) others, with kappa the least of all. How many
reports each holder has tells no more. So clones with C ~ Bin(n - 1, kappa e^-epsilon0) bound it
(`accounting/clones.py`). The paper's own theorems, in the modules `network_shuffle_all` and `network_shuffle_single`,
need the same law for every user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.accounting.clones import clones
from p2pdp.accounting.contract import DELTA, Accountant, Answer, number, whole
from p2pdp.accounting.theorems.clones import PURE


def _answer(inputs: Mapping[str, Any]) -> Answer:
    lower, upper = clones(inputs["epsilon0"], inputs["n"], inputs["delta"], inputs["kappa"])
    assumptions = (
        "kappa is at most P_j(i) / P_u(i), for each other user j and each place i that u's report can be at",
        "every holder permutes its reports before it hands them over, and the observer saw no report on its way",
        PURE,
        "lower and upper enclose the value of an upper bound, not what is really told",
    )
    return Answer({"lower": lower, "upper": upper}, True, assumptions, "clones of users whose walks overlap by kappa")


ACCOUNTANT: Final = Accountant(
    "epsilon of one report after a walk that mixed up to kappa: the sound claim for network shuffling",
    (
        number("epsilon0", "epsilon of one report", 1e-6, 100.0),
        whole("n", "users with a report each", 1, 10_000_000),
        number("kappa", "how much the walks of any two users overlap at least", 0.0, 1.0),
        DELTA,
    ),
    _answer,
)
