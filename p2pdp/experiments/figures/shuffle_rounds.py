"""Network shuffling: privacy against rounds.

[LTT22, Figure 4]: epsilon of the curator's view against the number of rounds, on three real graphs.

The paper bounds S(t) by its equation (7), sum of pi^2 + (1 - alpha)^(2t), and puts it into Theorem 5.3. Here the same
theorem is also given the true S(t) of the worst start (`experiments/walk_worst.py`), and the sound claim stands beside
both: it holds from the number of rounds on at which all walks overlap, whatever the theorem says. The paper prints
neither epsilon_0 nor delta of this figure.

[LTT22, Figure 5]: epsilon against rounds on k-regular graphs, where every law of a report is known exactly.

Theorem 5.4 takes rho^2 S, rho the largest over the smallest chance of a place that can be reached; the start with the
largest epsilon is shown. Beside it the sound claim, by how much the walks of any two users overlap, pair by pair. The
paper prints neither n, k, epsilon_0 nor delta of this figure.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise, zip_longest
from typing import Final

import numpy as np

from p2pdp.core.spec import GraphPart
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
    ONE_REPORT,
    TOWARDS_CURATOR,
    printed_all,
    social_graph,
    sound,
    spread_bound,
)
from p2pdp.experiments.style import Curve, Panel, panels
from p2pdp.experiments.walk_worst import worst_spread
from p2pdp.privacy.shuffle.overlap import overlapped_worst
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.report_walks.matrix import walk_matrix
from p2pdp.topology.report_walks.mixing import auto_rounds, mixing_of, mixing_rounds
from p2pdp.topology.report_walks.overlap import overlaps_of_laws

_GRAPHS: Final = ("facebook", "deezer", "enron")
_EPSILON_0: Final = 0.5
_POINTS: Final = 40
_LATE: Final = 24
_LAST_QUICK: Final = 1  # rounds of the worst start in the quick form on real graphs
_BEYOND: Final = 2.0  # times the paper's mixing time
_EXCESS: Final = 1e-9


def _rounds(setting: Setting, name: str) -> dict[str, JSON]:
    graph = social_graph(setting, name)
    walk, mixing = walk_matrix(graph), mixing_of(graph)
    last = int(_BEYOND * mixing_rounds(mixing))
    late = np.linspace(mixing_rounds(mixing), last, _LATE)  # where the sound claim sets in
    times = np.unique(np.concatenate([np.geomspace(1, last, _POINTS), late]).astype(int)).tolist()
    worst = worst_spread(graph, _LAST_QUICK if setting.quick and setting.data is not None else last)
    printed = [spread_bound(walk, mixing.alpha, t)[1] for t in times]
    exact = [float(worst.upper[t]) for t in times if t < len(worst.upper)]
    overlap = [mixing.overlap(t) for t in times]
    return {
        "n": graph.n,
        "alpha": mixing.alpha,
        "mixing": mixing_rounds(mixing),
        "auto": auto_rounds(mixing),
        "closed": worst.closed,
        "times": times,
        "sum_p2_printed": printed,
        "sum_p2_worst": exact,
        "kappa": overlap,
        "printed": [printed_all(_EPSILON_0, graph.n, s) for s in printed],
        "worst": [printed_all(_EPSILON_0, graph.n, s) for s in exact],
        "sound": [sound(_EPSILON_0, graph.n, kappa) for kappa in overlap],
        "at_rest": printed_all(_EPSILON_0, graph.n, float(walk.stationary @ walk.stationary)),
    }


def _pieces_4(setting: Setting) -> list[Piece]:
    facts = {"epsilon_0": _EPSILON_0, "delta": DELTA, "points": [_POINTS, _LATE], "beyond": _BEYOND}
    return [Piece(name, partial(_rounds, setting, name), {"graph": name, **facts}) for name in _GRAPHS]


def _lines_4(name: str, found: Answers) -> list[Line]:
    times = np.array(found["times"])
    near = found["printed"][int(np.argmin(np.abs(times - found["mixing"])))]
    exceeded = [t for t, a, b in zip(times, found["sum_p2_worst"], found["sum_p2_printed"], strict=False)
                if a > b * (1.0 + _EXCESS)]  # fmt: skip
    ends = f"up to round {max(exceeded)}" if exceeded else "never"
    return [
        compared(
            f"{name}: log10 of the spectral gap alpha",
            float(np.log10(found["alpha"])),
            -2.0,
            "section 5.3 prints about 10^-2; within half an order of magnitude",
            absolute=0.5,
        ),
        compared(
            f"{name}: log10 of ln n / alpha",
            float(np.log10(found["mixing"])),
            3.0,
            "section 5.3 prints about 10^3 rounds; within half an order of magnitude",
            absolute=0.5,
        ),
        compared(
            f"{name}: Theorem 5.3 after ln n / alpha rounds over its limit",
            near / found["at_rest"],
            1.0,
            "converged to the value of the stationary law, as figure 4 says",
            absolute=0.01,
        ),
        holds(
            f"{name}: equation (7) bounds the true sum of P^2",
            f"exceeded {ends}",
            "a bound for every start and time",
            true=not exceeded,
            why="the true sum of the worst start, by sparse products; equation (7) misses d_max / d_min",
        ),
        unknown(
            f"{name}: sound epsilon after {found['auto']} rounds",
            next(e for t, e in zip(times, found["sound"], strict=True) if t >= found["auto"]),
            f"Theorem 5.3 comes to {found['at_rest']:.3g} there; the paper prints no numbers of this figure",
        ),
    ]


def _make_4(setting: Setting, answers: Answers) -> Made:
    lines = [line for name in _GRAPHS for line in _lines_4(name, answers[name])]
    if setting.data is None:
        lines = [unknown(line.what, line.ours, "of a stand-in, not of the paper's graph") for line in lines]
    columns = ("graph", "rounds", "sum P^2 by eq. (7)", "sum P^2 worst start", "kappa",
               "epsilon by eq. (7)", "epsilon worst start", "epsilon sound")  # fmt: skip
    keys = ("times", "sum_p2_printed", "sum_p2_worst", "kappa", "printed", "worst", "sound")
    rows = [
        [name, *numbers]
        for name in _GRAPHS
        for numbers in zip_longest(*(answers[name][key] for key in keys), fillvalue="")
    ]
    title = "Network shuffling: rounds until a report is hidden from the curator"
    shown = [_panel(name, answers[name]) for name in _GRAPHS]
    picture = panels((8.0, 3.6), shown, y=TOWARDS_CURATOR, title=title)
    return Made((Table("", columns, rows),), tuple(lines), (picture,))


def _panel(name: str, found: Answers) -> Panel:
    times, worst = found["times"], found["worst"]
    curves = [
        Curve("Theorem 5.3, S by equation (7) (no bound)", times, found["printed"], look=1),
        Curve("Theorem 5.3, true S of the worst start (no bound)", times[: len(worst)], worst, look=2),
        Curve("sound: overlap of all walks, clones", times, found["sound"], markers=False),
    ]
    mark = found["mixing"], r"ln n / $\alpha$ rounds", ":"
    level = _EPSILON_0, ONE_REPORT, "-"
    return Panel(f"{name}, n = {found['n']:,}", "rounds t", curves, level=level, mark=mark, y_limits=(0.008, 30.0))


FIGURE_4: Final = Experiment(
    "003-fig4",
    "Privacy against rounds on real graphs",
    _pieces_4,
    _make_4,
    caption=Caption(
        shows="Curves of epsilon towards the curator against the number of rounds, both logarithmic, one panel "
        "for each of three real graphs.",
        compares="Theorem 5.3 with the paper's bound on the spread of reports and with the true spread of the "
        "worst start; and the sound claim from the overlap of all walks.",
        see="The printed curves fall slowly from far above the epsilon of one report; the sound one stays at "
        "that epsilon until all walks overlap and then drops by a factor of ten and more.",
        paper="Privacy improves with the rounds and converges at about the mixing time, ln n / alpha (section 5.4).",
        no_bound=NO_BOUND,
    ),
    needs=tuple(inputs.graph_file(name) for name in _GRAPHS),
)

_SEED: Final = 5
_DEGREES: Final = (4, 6, 8, 16)
_USERS: Final = 1000
_USERS_QUICK: Final = 120
_LAST: Final = 60
_LAST_QUICK_5: Final = 30
_SOUND_AT: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
_NEAR: Final = 1.05


def _walk(n: int, degree: int, last: int) -> dict[str, JSON]:
    walk = walk_matrix(make_graph(GraphPart("regular", degree=degree), n, _SEED))
    laws = np.eye(n)
    printed, single, sound = [], [], {}
    for t in range(1, last + 1):
        laws = walk.backward @ laws
        spread = np.einsum("ij,ij->j", laws, laws)
        ratio = laws.max(axis=0) / np.where(laws > 0.0, laws, np.inf).min(axis=0)
        start = int(np.argmax(ratio**2 * spread))
        printed.append(printed_all(_EPSILON_0, n, float(spread[start]), float(ratio[start])))
        single.append(printed_all(_EPSILON_0, n, float(spread[0]), float(ratio[0])))
        if t in _SOUND_AT:
            sound[str(t)] = overlapped_worst(_EPSILON_0, overlaps_of_laws(np.ascontiguousarray(laws.T), t), DELTA)[1]
    return {"printed": printed, "one_start": single, "sound": sound, "at_rest": printed_all(_EPSILON_0, n, 1.0 / n)}


def _size(setting: Setting) -> tuple[int, int]:
    return (_USERS_QUICK, _LAST_QUICK_5) if setting.quick else (_USERS, _LAST)


def _pieces_5(setting: Setting) -> list[Piece]:
    n, last = _size(setting)
    facts = {"n": n, "last": last, "seed": _SEED, "epsilon_0": _EPSILON_0, "delta": DELTA}
    return [Piece(f"k-{k}", partial(_walk, n, k, last), {"k": k, **facts}) for k in _DEGREES]


def _converged(found: Answers) -> int | None:
    """Return the first round from which on the theorem's epsilon stays near its limit."""
    far = [t for t, epsilon in enumerate(found["printed"], 1) if epsilon > _NEAR * found["at_rest"]]
    first = (far[-1] if far else 0) + 1
    return first if first <= len(found["printed"]) else None


def _make_5(setting: Setting, answers: Answers) -> Made:
    n, last = _size(setting)
    found = {k: answers[f"k-{k}"] for k in _DEGREES}
    times = {k: _converged(found[k]) or last + 1 for k in _DEGREES}
    rises = [k for k in _DEGREES if np.any(np.diff(found[k]["one_start"]) > 0.0)]
    lines = [
        holds(
            "rounds until Theorem 5.4 is near its limit, for k = " + ", ".join(map(str, _DEGREES)),
            ", ".join(str(times[k]) if times[k] <= last else f"over {last}" for k in _DEGREES),
            "the larger k, the faster",
            true=all(times[a] >= times[b] for a, b in pairwise(_DEGREES)),
            why="caption; near means within 5 %",
        ),
        holds(
            "epsilon of one start rises in some round, for k =",
            ", ".join(map(str, rises)) or "none",
            "non-monotonic in early times",
            true=bool(rises),
            why="section 5.4; it is the factor rho that rises, the sum of P^2 falls in every round",
        ),
        *(
            unknown(
                f"k = {k}: sound epsilon after {max(map(int, found[k]['sound']))} rounds, n = {n}",
                list(found[k]["sound"].values())[-1],
                f"Theorem 5.4 tends to {found[k]['at_rest']:.3g}; the paper prints no numbers of this figure",
            )
            for k in _DEGREES
        ),
    ]
    rows: list[list[float | str]] = [
        [k, t, found[k]["printed"][t - 1], found[k]["one_start"][t - 1], found[k]["sound"].get(str(t), "")]
        for k in _DEGREES
        for t in range(1, last + 1)
    ]
    columns = ("k", "rounds", "epsilon by Theorem 5.4, worst start", "of user 0", "epsilon sound")
    rounds = list(range(1, len(found[_DEGREES[0]]["printed"]) + 1))
    printed = [Curve(f"k = {k}", rounds, found[k]["printed"], look=at) for at, k in enumerate(_DEGREES)]
    sound = [
        Curve(f"k = {k}", [int(t) for t in found[k]["sound"]], list(found[k]["sound"].values()), look=at)
        for at, k in enumerate(_DEGREES)
    ]
    level = _EPSILON_0, ONE_REPORT, "-"
    shown = [
        Panel("Theorem 5.4 as printed (no bound)", "rounds t", printed, level=level, y=TOWARDS_CURATOR),
        Panel("sound: overlap of walks, pair by pair", "rounds t", sound, level=level, y=TOWARDS_CURATOR),
    ]
    title = f"Network shuffling on k-regular graphs of {n:,} users"
    picture = panels((7.2, 3.7), shown, title=title, columns=5, share="x")
    return Made((Table("", columns, rows),), tuple(lines), (picture,))


FIGURE_5: Final = Experiment(
    "003-fig5",
    "Privacy against rounds on regular graphs",
    _pieces_5,
    _make_5,
    caption=Caption(
        shows="Two panels of epsilon towards the curator against the number of rounds, both logarithmic, with a"
        " curve for each number k of neighbours; each panel has an axis of its own.",
        compares="Left Theorem 5.4 as printed, at its worst start; right the sound claim, by how much the walks of"
        " any two users overlap. The grey line is the epsilon of one report.",
        see="The larger k, the sooner a curve settles. The theorem's curves rise at first, far above what one"
        " report tells by itself; the sound ones start at that line and fall.",
        paper="The larger k, the faster privacy converges; it is not monotonic in early rounds (section 5.4).",
        no_bound="Theorem 5.4 as printed is no bound: its proof takes all reports to follow one law. Above the "
        "grey line it says less than nothing.",
    ),
    seeds=(_SEED,),
)
