"""[LTT22, Figure 9]: squared error of a private mean against epsilon, PrivUnit reports on the Twitch graph.

As in section 5.6: unit vectors of two kinds with 200 coordinates. All reports sent on against a single one of each
user, drawn from the law of the walks. `single` comes in two forms: our estimator, which knows how many dummies to
expect, with dummies of no direction; and the paper's plain mean, with dummies that are reports of N(5, 1). Reports
walk as long as our own rule asks, so that the sound claim holds; epsilon is that claim and the printed theorems'.

The paper takes 7,080 dummies, "the expected number of user holding less than a sample". That is how many users hold
less than one report in the mean; the mean number of users who hold none is another.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from p2pdp.experiments import inputs
from p2pdp.experiments.contract import (
    JSON,
    Answers,
    Caption,
    Experiment,
    Line,
    Made,
    Piece,
    Setting,
    Table,
    compared,
    holds,
    unknown,
)
from p2pdp.experiments.shuffles import (
    DELTA,
    NO_BOUND,
    TOWARDS_CURATOR,
    printed_all,
    printed_single,
    rested,
    social_graph,
    sound,
)
from p2pdp.experiments.style import Curve, Panel, panels
from p2pdp.mechanisms.reporting.contract import drawn_of
from p2pdp.mechanisms.reporting.estimates import of_all
from p2pdp.mechanisms.reporting.privunit import UnitReports
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.shuffle.analysis.fast import Shuffled, shuffled
from p2pdp.tasks.unit_mixture import DIMENSIONS, mixed_direction
from p2pdp.topology.graphs import Graph
from p2pdp.topology.report_walks.matrix import empty_places_at_rest, walk_matrix

_SEED: Final = 9
_TRIALS: Final = 5
_TRIALS_QUICK: Final = 2
_EPSILONS: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
_EPSILONS_QUICK: Final = (0.5, 1.0, 2.0)
_DUMMY_MEAN: Final = 5.0
_DUMMIES_PRINTED: Final = 7080
_WAYS: Final = {"all": "all", "single": "single, our estimator", "plain": "single, plain mean with N(5, 1) dummies"}


def _directions(graph: Graph) -> Any:
    normals = np.random.Generator(np.random.Philox(key=_SEED)).standard_normal((graph.n, DIMENSIONS))
    return np.array([mixed_direction(user, graph.n, row) for user, row in enumerate(normals)])


def _errors(setting: Setting, epsilon_0: float, trials: int) -> dict[str, JSON]:
    graph = social_graph(setting, "twitch")
    at = rested(graph)
    values = _directions(graph)
    mean = values.mean(axis=0)
    randomizer = UnitReports(DIMENSIONS, epsilon_0)
    found: dict[str, JSON] = {way: [] for way in _WAYS}
    for trial in range(trials):
        seed = _SEED + trial
        for single in (False, True):
            made = shuffled(graph, randomizer, values, at.auto, single=single, seed=seed)
            found["single" if single else "all"].append(_square(made.estimate.value - mean))
            if single:
                found["plain"].append(_square(_plain(randomizer, made, seed) - mean))
    report = randomizer.epsilon or epsilon_0
    return {
        **found,
        "epsilon_all": printed_all(report, graph.n, at.sum_p2),
        "epsilon_single": printed_single(report, at.sum_p2),
        "epsilon_sound": sound(report, graph.n, at.kappa),
    }


def _plain(randomizer: UnitReports, made: Shuffled, seed: int) -> Any:
    """Return the plain mean of what users hand in, where who holds nothing reports a vector of N(5, 1)."""
    empty = np.nonzero(made.owners < 0)[0]
    generator = np.random.Generator(np.random.Philox(key=[seed, _SEED]))
    vectors = generator.normal(_DUMMY_MEAN, 1.0, (len(empty), DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    reports = made.reports.copy()
    drawn = drawn_of(randomizer.needs, len(empty), SeededSampler(seed, "experiments/dummies"))
    reports[empty] = randomizer.applied(vectors, drawn)
    return of_all(randomizer, reports).value


def _square(off: Any) -> float:
    return float(off @ off)


def _dummies(setting: Setting) -> dict[str, JSON]:
    graph = social_graph(setting, "twitch")
    stationary = walk_matrix(graph).stationary
    return {
        "n": graph.n,
        "below_one": int(np.count_nonzero(graph.n * stationary < 1.0)),
        "empty": empty_places_at_rest(stationary)[0],
    }


def _points(setting: Setting) -> tuple[tuple[float, ...], int]:
    return (_EPSILONS_QUICK, _TRIALS_QUICK) if setting.quick else (_EPSILONS, _TRIALS)


def _pieces(setting: Setting) -> list[Piece]:
    epsilons, trials = _points(setting)
    facts = {"trials": trials, "seed": _SEED, "dimensions": DIMENSIONS, "delta": DELTA}
    pieces = [Piece("dummies", partial(_dummies, setting), {})]
    return pieces + [
        Piece(f"eps-{at}", partial(_errors, setting, e, trials), {"epsilon_0": e, **facts})
        for at, e in enumerate(epsilons)
    ]


def _make(setting: Setting, answers: Answers) -> Made:
    epsilons, _ = _points(setting)
    points = [answers[f"eps-{at}"] for at in range(len(epsilons))]
    means = {way: np.array([np.mean(one[way]) for one in points]) for way in _WAYS}
    ratios = {way: _at_same_printed_epsilon(points, means, way) for way in ("single", "plain")}
    lines = [
        *_dummy_lines(answers["dummies"]),
        *(
            holds(
                f"error of {_WAYS[way]} over that of all, at the same printed epsilon",
                f"{ratio.min():.3g} to {ratio.max():.3g}",
                "all is consistently better",
                true=bool(np.all(ratio > 1.0)),
                why="caption of figure 9, interpolated at the printed epsilons of single; N(5, 1) points nearly where "
                "the mean does, so that such dummies help a plain mean",
            )
            for way, ratio in ratios.items()
        ),
        holds(
            "error of single over that of all, at the same sound epsilon",
            f"{(means['single'] / means['all']).min():.3g} to {(means['single'] / means['all']).max():.3g}",
            "all is consistently better",
            true=bool(np.all(means["single"] > means["all"])),
            why="soundly both protocols have one epsilon at the same epsilon_0",
        ),
    ]
    if setting.data is None:
        lines = [unknown(line.what, line.ours, "of a stand-in, not of the paper's graph") for line in lines]
    rows = [
        [e, one["epsilon_all"], one["epsilon_single"], one["epsilon_sound"], *(means[way][at] for way in _WAYS)]
        for at, (e, one) in enumerate(zip(epsilons, points, strict=True))
    ]
    columns = ("epsilon_0", "all, Theorem 5.3", "single, Theorem 5.5", "sound", *(f"error {way}" for way in _WAYS))
    n = answers["dummies"]["n"]
    shown = [
        Panel(r"$\varepsilon$ by Theorems 5.3 and 5.5 (no bound)", TOWARDS_CURATOR,
              _error_curves(points, {"all": "epsilon_all", "single": "epsilon_single"})),
        Panel(r"$\varepsilon$ soundly", TOWARDS_CURATOR, _error_curves(points, {})),
    ]  # fmt: skip
    title = f"Mean of {n:,} unit vectors, PrivUnit, after shuffling (bars: all trials)"
    picture = panels((7.4, 4.0), shown, y="squared error of the mean", title=title)
    return Made((Table("", columns, rows),), tuple(lines), (picture,))


def _at_same_printed_epsilon(points: list[Answers], means: dict[str, Any], way: str) -> Any:
    """Return errors of a way of `single` over those of `all`, at the epsilons of `single` that `all` reaches too."""
    of_all_ = np.log([one["epsilon_all"] for one in points])
    of_single = np.log([one["epsilon_single"] for one in points])
    inside = (of_single >= of_all_[0]) & (of_single <= of_all_[-1])
    return means[way][inside] / np.exp(np.interp(of_single[inside], of_all_, np.log(means["all"])))


def _dummy_lines(found: Answers) -> list[Line]:
    return [
        compared(
            "users whose mean number of reports is below 1",
            found["below_one"],
            _DUMMIES_PRINTED,
            "section 5.6, which takes this for the number of dummies",
        ),
        compared(
            "mean number of users who hold no report, hence of dummies",
            found["empty"],
            _DUMMIES_PRINTED,
            "section 5.6; walks at rest leave user i without a report with chance (1 - pi_i)^n",
            relative=0.01,
        ),
    ]


def _error_curves(points: list[Answers], epsilons: dict[str, str]) -> list[Curve]:
    """Return the errors of all trials against epsilon: the sound one, or that which `epsilons` names for a way."""
    curves = []
    for at, (way, label) in enumerate(_WAYS.items()):
        epsilon = epsilons.get("all" if way == "all" else "single", "epsilon_sound")
        errors = [one[way] for one in points]
        means, least, most = [float(np.mean(one)) for one in errors], list(map(min, errors)), list(map(max, errors))
        curves.append(Curve(label, [one[epsilon] for one in points], means, least, most, look=at))
    return curves


FIGURE_9: Final = Experiment(
    "003-fig9",
    "Private means by PrivUnit: all or single",
    _pieces,
    _make,
    caption=Caption(
        shows="Two panels of the squared error of a mean against epsilon towards the curator, both logarithmic;"
        " bars reach over all trials.",
        compares="All reports sent on; a single one of each user with our estimator, which knows how many dummies "
        "to expect; and the paper's plain mean with its dummies. Left epsilon by the printed theorems, "
        "right soundly.",
        see="Left the single protocol seems better, because its theorem prints a smaller epsilon for the same"
        " reports. Right, at one epsilon for both, all and the plain mean lie together, and our unbiased "
        "estimator of the single protocol has a larger error.",
        paper="The single protocol has the better trade-off between utility and privacy.",
        no_bound=NO_BOUND,
    ),
    needs=(inputs.graph_file("twitch"),),
    seeds=tuple(range(_SEED, _SEED + _TRIALS)),
)
