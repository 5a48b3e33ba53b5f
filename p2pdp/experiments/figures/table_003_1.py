"""[LTT22, Table 1]: how epsilon falls with n and grows with epsilon_0, fitted to each mechanism's own formula.

The paper prints O(e^(c epsilon_0) / sqrt(n)) and refers to Theorem 5.3 for its own entry. Its exponent 1.5 is not that
theorem's: (e^epsilon_0 - 1) e^(2 epsilon_0) grows with the exponent 3. Subsampling is n reports, each of one user of n,
composed; shuffling by Erlingsson and others (2019) is Theorem 5.3 with all loads 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.accounting.composition import homogeneous, sampled_epsilon
from p2pdp.accounting.shuffle.published import epsilon_all
from p2pdp.experiments.contract import JSON, Answers, Experiment, Made, Picture, Piece, Setting, Table, compared
from p2pdp.experiments.shuffle_claims import DELTA, KAPPA_AUTO, printed_all, printed_single, sound
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_USERS: Final = (10**4, 10**5, 10**6, 10**7)
_EPSILONS: Final = (3.0, 4.0, 5.0, 6.0)
_LARGE: Final = {"subsampling": 10**6, "clones": 10**8, "network, sound": 10**8}
_LARGE_PRINTED: Final = 10**18  # users, so many that formulas with a square of epsilon are still in their linear part
_TOLERANCE: Final = 0.15

# Printed exponents of e^epsilon_0; all of n are -1/2.
_PRINTED: Final = {"subsampling": 1.0, "shuffling 2019": 3.0, "clones": 0.5, "network, all": 1.5}
_NAMES: Final = ("subsampling", "shuffling 2019", "clones", "network, all", "network, single", "network, sound")


def _epsilon(name: str, epsilon_0: float, n: int) -> float:
    formulas: dict[str, Callable[[], float]] = {
        "subsampling": lambda: homogeneous(sampled_epsilon(epsilon_0, 1.0 / n), n, DELTA),
        "shuffling 2019": lambda: epsilon_all(epsilon_0, n**-0.5, DELTA),
        "clones": lambda: sound(epsilon_0, n, 1.0),
        "network, all": lambda: printed_all(epsilon_0, n, 1.0 / n),
        "network, single": lambda: printed_single(epsilon_0, 1.0 / n),
        "network, sound": lambda: sound(epsilon_0, n, KAPPA_AUTO),
    }
    return formulas[name]()


def _rates() -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for name in _NAMES:
        large = _LARGE.get(name, _LARGE_PRINTED)
        of_users = [_epsilon(name, 0.5, n) for n in _USERS]
        of_epsilons = [_epsilon(name, epsilon_0, large) for epsilon_0 in _EPSILONS]
        found[name] = {
            "of_users": of_users,
            "of_epsilons": of_epsilons,
            "in_n": float(np.polyfit(np.log(_USERS), np.log(of_users), 1)[0]),
            "in_epsilon_0": float(np.polyfit(_EPSILONS, np.log(of_epsilons), 1)[0]),
        }
    return found


def _pieces(_setting: Setting) -> list[Piece]:
    facts = {"users": list(_USERS), "epsilons": list(_EPSILONS), "delta": DELTA, "kappa": KAPPA_AUTO}
    return [Piece("rates", _rates, facts)]


def _make(_setting: Setting, answers: Answers) -> Made:
    rates = answers["rates"]
    lines = []
    for name in _NAMES:
        exponent = rates[name]["in_epsilon_0"]
        lines.append(
            compared(f"{name}: power of n", rates[name]["in_n"], -0.5, "Table 1", absolute=_TOLERANCE)
            if name in _PRINTED
            else compared(
                f"{name}: power of n", rates[name]["in_n"], -0.5, "the same rate claimed", absolute=_TOLERANCE
            )
        )
        if name in _PRINTED:
            why = "Table 1, which cites Theorem 5.3, whose factor is (e^eps0 - 1) e^(2 eps0)"
            lines.append(
                compared(
                    f"{name}: exponent of e^eps0",
                    exponent,
                    _PRINTED[name],
                    why if name == "network, all" else "Table 1",
                    absolute=_TOLERANCE,
                )
            )
    lines.append(
        compared(
            "network, sound: exponent of e^eps0",
            rates["network, sound"]["in_epsilon_0"],
            0.5,
            "the rate of clones, which the sound claim for network shuffling has too",
            absolute=_TOLERANCE,
        )
    )
    rows = [[name, rates[name]["in_n"], rates[name]["in_epsilon_0"], _PRINTED.get(name, "")] for name in _NAMES]
    table = Table("", ("mechanism", "power of n", "exponent of e^eps0", "exponent printed"), rows)
    return Made((table,), tuple(lines), (Picture("", 7.0, 3.4, lambda figure: _draw(figure, rates)),))


def _draw(figure: Figure, rates: Answers) -> None:
    left, right = figure.subplots(1, 2)
    draw_curves(left, [Curve(name, _USERS, rates[name]["of_users"], look=at) for at, name in enumerate(_NAMES)])
    grown = {name: np.divide(rates[name]["of_epsilons"], rates[name]["of_epsilons"][0]).tolist() for name in _NAMES}
    draw_curves(right, [Curve(name, _EPSILONS, grown[name], look=at) for at, name in enumerate(_NAMES)])
    figure.suptitle("Amplification by shuffling: rates by each mechanism's own formula", fontsize=10)
    left.set(xscale="log", yscale="log")
    right.set(yscale="log")
    name_axes(left, r"Falling with the number of users", "users n", r"$\varepsilon$ of all, at $\varepsilon_0 = 0.5$")
    title = r"Growing with $\varepsilon_0$, at very many users"
    name_axes(right, title, r"$\varepsilon_0$ of one report", r"$\varepsilon$ of all, over that at $\varepsilon_0 = 3$")
    legend_below(figure, left, 3)


EXPERIMENT: Final = Experiment(
    "003-table1",
    "Network Shuffling, Table 1",
    "Rates of amplification, fitted",
    _pieces,
    _make,
)
