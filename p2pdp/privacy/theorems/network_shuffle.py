"""Network shuffling, soundly: any graph and any number of rounds, by how much the users' walks overlap.

For users u and j let kappa_j be the minimum over i of P_j(i) / P_u(i), over the places i that u's walk can end at.
With probability kappa_j the report of j is where u's might be, by the same law; reveal the reports of the rest, and
what is left is a uniform shuffle of u's and Bin(n - 1, kappa) others, with kappa the least of all. How many
reports each holder has tells no more. So clones with C ~ Bin(n - 1, kappa e^-epsilon0) bound it
(`privacy/shuffle/krr.py`), and for k-ary randomized response, where its `categories` are given, the blanket of
Bin(n - 1, kappa gamma) (`privacy/shuffle/krr.py`). What differs from pair to pair is in
`privacy/shuffle/overlap.py`. The paper's own theorems, in the modules `network_shuffle_all` and
`network_shuffle_single`, need the same law for every user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from p2pdp.privacy.contract import DELTA, Accountant, Answer, number, whole
from p2pdp.privacy.shuffle.overlap import overlapped
from p2pdp.privacy.theorems.clones import PURE


def _answer(inputs: Mapping[str, Any]) -> Answer:
    kappas, categories = np.full(inputs["n"] - 1, inputs["kappa"]), inputs["categories"]
    lower, upper = overlapped(inputs["epsilon0"], kappas, inputs["delta"], categories)
    assumptions = (
        "kappa is at most P_j(i) / P_u(i), for each other user j and each place i that u's report can be at",
        "every holder permutes its reports before it hands them over, and the observer saw no report on its way",
        PURE if categories is None else KARY,
        ENCLOSED if categories is None else HANDED,
    )
    found = "clones" if categories is None else "blankets"
    return Answer({"lower": lower, "upper": upper}, True, assumptions, f"{found} of users whose walks overlap by kappa")


ENCLOSED: Final = "lower and upper enclose the value of an upper bound, not what is really told"
KARY: Final = "reports are k-ary randomized response, uniform with probability L / (e^epsilon0 + L - 1)"
HANDED: Final = "lower is told for some values of the others where every report is handed over"


ACCOUNTANT: Final = Accountant(
    "epsilon of one report after a walk that mixed up to kappa: the sound claim for network shuffling",
    (
        number("epsilon0", "epsilon of one report", 1e-6, 100.0),
        whole("n", "users with a report each", 1, 10_000_000),
        number("kappa", "how much the walks of any two users overlap at least", 0.0, 1.0),
        DELTA,
        whole("categories", "L, where reports are randomized response over L categories", 2, 1_000_000, optional=True),
    ),
    _answer,
)
