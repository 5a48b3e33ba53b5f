"""[AKFJG24]: learning with noise that cancels between pairs, its printed epsilons, and what such noise costs a sum.

The paper accounts for its noise by Rényi divergences, alpha mu^2 / 2 at every order, turned into
epsilon = mu^2 / 2 + mu sqrt(2 ln(1 / delta)). The mu in each printed epsilon follows from that, and the exact curve of
one Gaussian gives the epsilon that the same noise really has.

Learning is logistic regression on houses. The paper has one round of gossip after each step (K = 1). More rounds cost
no privacy, for all that users send follows from noised gradients, and they bring the models together before the pair
noise of the next step drives them apart. Rows are split evenly, the unit is one user, and the observer sees all
messages and has the secrets of the colluders.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.errors import Refused
from p2pdp.experiments.contract import (
    Answers,
    Caption,
    Experiment,
    Line,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    holds,
    unknown,
)
from p2pdp.experiments.inputs import table_file
from p2pdp.experiments.pairwise import (
    CURATOR,
    DELTA,
    LOCAL,
    NOTHING,
    PAIRWISE,
    QUICK,
    SEED,
    SLACKS,
    Learning,
    learned,
    pair_noise_of,
    regular,
    relative_error,
)
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes
from p2pdp.mechanisms import gaussian
from p2pdp.topology.components import placements

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED: Final = (3.59, 10.46, 10.24, 10.80, 40.2)
_EPSILONS: Final = (5.0, 10.0, 30.0)
_METHODS: Final = (
    (LOCAL, 1, "own noise, K = 1"), (LOCAL, 10, "own noise, K = 10"), (PAIRWISE, 1, "pair noise, K = 1 (the paper)"),
    (PAIRWISE, 4, "pair noise, K = 4"), (PAIRWISE, 10, "pair noise, K = 10"), (CURATOR, 1, "trusted curator"),
)  # fmt: skip
_SUMS: Final = tuple(
    (n, degree, colluders)
    for n, degree, several in (
        (16, 4, (0, 2, 5)),
        (100, 4, (0, 10, 30)),
        (100, 10, (0, 10, 30, 50)),
        (1000, 4, (0, 100, 300)),
        (1000, 10, (0, 100, 300, 500)),
        (1000, 20, (0, 100, 300, 500)),
    )
    for colluders in several
)
_SUM_EPSILON: Final = 1.0
_SLACK: Final = SLACKS[0]
_NEAR: Final = 0.02  # of the accuracy


def exact_of(printed: float) -> tuple[float, float]:
    """Return the mu in a printed epsilon, and the epsilon of one Gaussian with it."""
    root = math.sqrt(2.0 * math.log(1.0 / DELTA))
    mu = 2.0 * printed / (math.sqrt(root * root + 2.0 * printed) + root)
    return mu, gaussian.epsilon_of(DELTA, mu)


def sums(setting: Setting) -> dict[str, list[dict[str, Any]]]:
    """Return what each case of a sum costs, in errors of a trusted curator at the same epsilon."""
    mu = gaussian.mu_of_curve(_SUM_EPSILON, DELTA)
    found = []
    for n, degree, colluders in _SUMS if not setting.quick else [case for case in _SUMS if case[0] <= 100]:
        random = placements(regular(n, degree), colluders, SEED)
        case: dict[str, Any] = {"n": n, "degree": degree, "colluders": colluders, "broken": random.broken}
        case |= {"median": random.typical, "error": "inf", "pair": "inf", "hidden": 0}
        try:
            noise = pair_noise_of(n, degree, colluders, mu, _SLACK)
            case |= {"hidden": noise.hidden, "error": relative_error(n, noise, mu), "pair": noise.pair_sigma * mu}
        except Refused as refused:
            case["why"] = str(refused)
        found.append(case)
    return {"cases": found}


def _size(setting: Setting) -> Learning:
    return QUICK if setting.quick else Learning()


def _pieces(setting: Setting) -> list[Piece]:
    size = _size(setting)
    pieces = [Piece("sums", partial(sums, setting), {"epsilon": _SUM_EPSILON, "slack": _SLACK, "cases": len(_SUMS)})]
    for epsilon in _EPSILONS:
        for method, rounds, _ in _METHODS:
            work = partial(learned, setting, size, method, rounds, epsilon)
            pieces.append(Piece(f"{method}-{rounds}-{epsilon:g}", work, {"epsilon": epsilon, **size.facts}))
    return [*pieces, Piece("no-noise", partial(learned, setting, size, NOTHING, 1, 1.0), size.facts)]


def _lines(setting: Setting, answers: Answers) -> list[Line]:
    lines = []
    for printed in PRINTED:
        mu, exact = exact_of(printed)
        lines.append(
            holds(
                f"epsilon of the noise for which {printed:g} is printed", exact, f"{printed:g}", true=exact <= printed,
                why=f"agrees where the printed number is a bound; it comes from mu = {mu:.4g} by Rényi divergences",
            )
        )  # fmt: skip
    for case in answers["sums"]["cases"]:
        n, colluders = case["n"], case["colluders"]
        if case["degree"] == 10 or n == 16:
            what = f"error of a sum over a curator's: n = {n:,}, {case['degree']}-regular, {colluders} colluders"
            why = f"the paper has no sums; local noise: {math.sqrt(n):.3g}; smallest honest component {case['hidden']}"
            lines.append(unknown(what, case["error"], why))
    size, epsilon = _size(setting), _EPSILONS[1]
    own, once, often, curator = (
        answers[f"{method}-{rounds}-{epsilon:g}"]["accuracy"]
        for method, rounds in ((LOCAL, 1), (PAIRWISE, 1), (PAIRWISE, 10), (CURATOR, 1))
    )
    named = f"accuracy at epsilon {epsilon:g}, {size.colluders} of {size.n} colluding"
    central = "as good as with a trusted curator"
    lines += [
        holds(f"{named}: K = 1, curator {curator:.3f}", once, central, true=once >= curator - _NEAR, why="abstract"),
        holds(f"{named}: K = 10, curator {curator:.3f}", often, central, true=often >= curator - _NEAR,
              why=f"within {_NEAR}; the paper has K = 1"),
        holds(f"{named}: K = 1, own noise alone {own:.3f}", once, "better than own noise alone", true=once > own,
              why="experiments of the paper; other data and models"),
    ]  # fmt: skip
    if setting.data is None:
        lines[-3:] = [
            Line(line.what, line.ours, None, "cannot be known", "of a stand-in, not of a table") for line in lines[-3:]
        ]
    return lines


def _make(setting: Setting, answers: Answers) -> Made:
    keys = ("accuracy", "deviation", "of_mean", "rate", "slack", "sigma", "pair_sigma")
    headings = ("accuracy", "deviation", "accuracy of mean model", "rate", "slack", "sigma", "pair sigma")
    learning = [
        [label, epsilon, *(answers[f"{method}-{rounds}-{epsilon:g}"][key] for key in keys)]
        for method, rounds, label in _METHODS
        for epsilon in _EPSILONS
    ]
    columns = ("n", "degree", "colluders", "hidden", "broken", "median", "error", "pair")
    shown = ("n", "degree", "colluders", "honest hidden together", "share of placements that break the graph",
             "typical component", "error over curator", "pair sigma over curator sigma")  # fmt: skip
    tables = (
        Table("", ("method", "epsilon", *headings), learning),
        Table("sums", shown, [[case[key] for key in columns] for case in answers["sums"]["cases"]]),
        Table("epsilons", ("printed", "mu", "exact"), [[printed, *exact_of(printed)] for printed in PRINTED]),
    )
    return Made(
        tables, tuple(_lines(setting, answers)), (Picture("", 7.4, 3.8, partial(_draw, _size(setting), answers)),)
    )


def _draw(size: Learning, answers: Answers, figure: Figure) -> None:
    axes: Any = figure.subplots()
    for look, (method, rounds, label) in enumerate(_METHODS):
        told = [answers[f"{method}-{rounds}-{epsilon:g}"] for epsilon in _EPSILONS]
        middle = [one["accuracy"] for one in told]
        low = [one["accuracy"] - one["deviation"] for one in told]
        high = [one["accuracy"] + one["deviation"] for one in told]
        shift = 1.03 ** (look - 2.5)  # so that bars do not hide each other
        draw_curves(axes, [Curve(label, [one * shift for one in _EPSILONS], middle, low, high, look=look)])
    free = answers["no-noise"]
    axes.axhline(free["accuracy"], color="0.4", linewidth=0.9, label=NOTHING)
    axes.axhline(free["majority"], color="0.4", linewidth=0.9, linestyle=":", label="larger class")
    axes.set_xscale("log")
    axes.set_xticks(_EPSILONS, [f"{epsilon:g}" for epsilon in _EPSILONS])
    axes.minorticks_off()
    title = (
        f"Houses, {size.n} users, {size.degree}-regular, {size.colluders} collude, {size.steps} steps "
        f"(bars: one deviation of {size.trials} trials)"
    )
    name_axes(axes, title, r"$\varepsilon$ of a user against whoever sees all, $\delta = 10^{-5}$", "accuracy")
    legend_below(figure, axes, 3)


DECOR: Final = Experiment(
    name="decor",
    title="Learning with noise that cancels between pairs, and its printed epsilons",
    pieces=_pieces,
    make=_make,
    caption=Caption(
        shows="Curves of the accuracy of logistic regression on houses against epsilon, logarithmic; bars are "
        "one deviation of trials. Lines without points are learning without noise, and naming the larger "
        "class.",
        compares="Own noise alone, noise that cancels between pairs with 1, 4 and 10 rounds of gossip a step, and "
        "a trusted curator.",
        see="Pair noise with many rounds of gossip learns nearly as well as with a curator; with one round, "
        "as in the paper, it stands between that and own noise alone.",
        paper="Correlated noise learns nearly as well as with a trusted curator; epsilons such as 3.59 and "
        "10.46 are printed for its noise.",
        no_bound="The printed epsilons are bounds, but loose: the exact curve of the same noise is lower.",
    ),
    needs=(table_file("houses"),),
    seeds=(SEED,),
)
