"""[CB20, Figure 2a]: the theorem on sums over the complete graph beside local differential privacy.

Both versions of the theorem, with the printed number of visits and with exactly T/n of them, and beside them what is
sound: the hidden path a priori, and local composition averaged over the law of the visits. Neither theorem is a bound
(a group's delta is taken for several deltas), and their delta grows with n, which the figure does not say.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.accounting.composition import advanced
from p2pdp.accounting.contract import account
from p2pdp.accounting.hidden_path.a_priori import STEPS_MAX, a_priori
from p2pdp.accounting.theorems import complete_sum, complete_sum_v1
from p2pdp.accounting.visits import binomial_visits, gaussian_epsilon, printed_visits
from p2pdp.experiments import walks
from p2pdp.experiments.contract import Answers, Experiment, Made, Picture, Piece, Setting, Table, compared, holds
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2pdp.experiments.contract import Line

FORMULAS: Final = {
    "local": "local DP, printed number of visits",
    "local-fixed": "local DP, exactly T/n visits",
    "first": "network DP, Theorem 3 as first printed",
    "first-fixed": "… with exactly T/n visits",
    "second": "network DP, theorem of 2022",
    "second-fixed": "… with exactly T/n visits",
}
SOUND: Final = {"sound": "network DP, sound, hidden path", "sound-local": "local DP, sound"}
_EPSILON_0: Final = 0.1
_PER_DECADE: Final = 8
_LOOKS: Final = {
    "local": 0, "local-fixed": 4, "first": 2, "first-fixed": 5, "second": 1, "second-fixed": 6, "sound": 3,
    "sound-local": 7,
}  # fmt: skip
_SOUND_NODES: Final = (10, 20, 50, 100, 200, 500)
_SOUND_NODES_QUICK: Final = (10, 20)


def formulas(n: int, epsilon_0: float) -> dict[str, float]:
    """Of each printed formula, the loss at n users and T = 100 n."""
    printed = printed_visits(walks.VISITS * n, n, walks.DELTA)
    found = {}
    for suffix, visits in (("", printed), ("-fixed", float(walks.VISITS))):
        composed = advanced(epsilon_0, visits, walks.DELTA)
        found[f"local{suffix}"] = min(visits * epsilon_0, composed)
        found[f"first{suffix}"] = complete_sum_v1.printed_epsilon(epsilon_0, n, visits, walks.DELTA)
        cycles = visits + walks.VISITS
        found[f"second{suffix}"] = complete_sum.printed_epsilon(epsilon_0, n, cycles, walks.DELTA)
    return found


def sound(n: int, epsilon_0: float) -> dict[str, float]:
    """A priori: what another user learns at most, and whoever sees every message; at the sound curves' delta."""
    mu = walks.ratio(epsilon_0)
    hops = walks.VISITS * n
    law = binomial_visits(hops, 1.0 / n, 1, walks.SOUND_DELTA)
    found = {"sound-local": gaussian_epsilon(law, mu, walks.SOUND_DELTA)}
    if hops <= STEPS_MAX:
        found["sound"] = a_priori(n, hops, 1, mu, walks.SOUND_DELTA).largest
    return found


def grid(setting: Setting) -> list[int]:
    top = 3 if setting.quick else 6
    return sorted({round(10 ** (1 + place / _PER_DECADE)) for place in range((top - 1) * _PER_DECADE + 1)})


def _pieces(setting: Setting) -> list[Piece]:
    nodes = _SOUND_NODES_QUICK if setting.quick else _SOUND_NODES
    return [
        Piece(f"sound-n{n}", partial(sound, n, _EPSILON_0), {"n": n, "epsilon_0": _EPSILON_0}) for n in reversed(nodes)
    ]


def first_gain(name: str, fixed: str = "") -> int:
    """The least n from which on a theorem is below local privacy, as far as 10,000."""
    return next(
        n + 1 for n in range(10_000, 1, -1)
        if (now := formulas(n, _EPSILON_0))[f"{name}{fixed}"] >= now[f"local{fixed}"]
    )  # fmt: skip


def _lines(answers: Answers) -> list[Line]:
    first, second = first_gain("first"), first_gain("second")
    at_1000 = account("complete_sum_v1", {
        "epsilon": _EPSILON_0, "delta": walks.DELTA, "n": 1000, "hops": 100_000, "delta_prime": walks.DELTA,
        "delta_hat": walks.DELTA,
    }).outputs  # fmt: skip
    largest = max((int(key.removeprefix("sound-n")) for key in answers), default=0)
    ours, printed = answers[f"sound-n{largest}"]["sound"], formulas(largest, _EPSILON_0)
    return [
        holds(
            "first version: gains over local DP", f"from n = {first} on", '"as soon as n > 100" (sections 4.1, 5.1)',
            true=first <= 101, why=f"the printed formulas at epsilon_0 = {_EPSILON_0:g}, T = 100 n, to n = 10,000",
        ),
        holds(
            "version of 2022: gains over local DP", f"from n = {second} on", '"as soon as n >= 20" (001, section 3.3)',
            true=second <= 20, why="the same comparison; the cost of a cycle is 3 epsilon/sqrt(n)",
        ),
        compared(
            "visits counted for one user, n = 1,000", at_1000["visits_exact"], at_1000["visits"],
            "ours is the exact quantile of the binomial law at 1e-7, the paper's N_v its Hoeffding stand-in",
            relative=0.05,
        ),
        holds(
            f"epsilon of the worst pair, n = {largest}", f"{ours:.3g} (sound, a priori)",
            f"{printed['first']:.3g} (first), {printed['second']:.3g} (2022)", true=ours <= printed["second"],
            why="the theorems' proofs are not sound, yet what they state is far above what is told: agrees where the "
            "sound bound is below the printed ones",
        ),
    ]  # fmt: skip


def _make(setting: Setting, answers: Answers) -> Made:
    nodes = grid(setting)
    curves: dict[str, list[tuple[int, float]]] = {
        name: [(n, formulas(n, _EPSILON_0)[name]) for n in nodes] for name in FORMULAS
    }
    for key in reversed(list(answers)):
        for name, value in answers[key].items():
            curves.setdefault(name, []).append((int(key.removeprefix("sound-n")), value))
    table = [(name, n, value) for name, points in curves.items() for n, value in points]
    picture = Picture("", 6.4, 5.2, partial(_draw, curves))
    return Made((Table("", ("curve", "n", "epsilon"), table),), tuple(_lines(answers)), (picture,))


def _draw(curves: dict[str, list[tuple[int, float]]], figure: Figure) -> None:
    axes: Any = figure.subplots()
    for name, label in (FORMULAS | SOUND).items():
        n, epsilon = zip(*curves[name], strict=True)
        draw_curves(axes, [Curve(label, n, epsilon, look=_LOOKS[name])])
    axes.set_xscale("log")
    axes.set_yscale("log")
    title = f"Sum by a walk of T = 100 n steps, each (ε₀ = {_EPSILON_0:g}, δ₀ = 1e-7); sound curves at δ = 1e-5"
    name_axes(axes, title, "number of users n", "privacy loss ε")
    legend_below(figure, axes, 2)


EXPERIMENT: Final = Experiment(
    name="000-fig2a",
    paper="Privacy Amplification by Decentralization, figure 2a",
    title="theorems on the sum over the complete graph, beside local DP and what is sound",
    pieces=_pieces,
    make=_make,
)
