"""Network shuffling: privacy against the epsilon of one report.

[LTT22, Figure 6]: epsilon against epsilon_0 on five graphs, all reports sent on, after the mixing time.

By Theorem 5.3 as printed, with sum of P^2 by equation (7), and by the sound claim after the rounds that our own rule
asks for. Of the Google graph only n and Gamma are known, as Table 4 prints them: its curves take the walk to have
mixed, and for the sound claim to overlap as our rule makes it.

[LTT22, Figure 7]: all reports sent on against a single one of each user, on the Twitch and Google graphs.

By Theorems 5.3 and 5.5 as printed; the sound claim is one for both protocols, because sending one report is computed
from sending all. Of the Google graph only n and Gamma are known, as Table 4 prints them.

[LTT22, Figure 8]: epsilon against epsilon_0 for walks at rest, by users n, irregularity Gamma and protocol.

By Theorems 5.3 and 5.5 as printed, for Gamma = 1 and 10. The sound claim at rest depends on neither Gamma nor
protocol, so it has one curve for each n. The paper's text prints no values of n; these are one near each of its graphs.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Final

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
    holds,
    unknown,
)
from p2pdp.experiments.shuffles import (
    DELTA,
    GOOGLE_PRINTED,
    KAPPA_AUTO,
    NO_BOUND,
    ONE_REPORT,
    SOCIAL,
    TOWARDS_CURATOR,
    Rested,
    printed_all,
    printed_single,
    rested,
    social_graph,
    sound,
)
from p2pdp.experiments.style import Curve, Panel, panels

_EPSILONS: Final = tuple(round(0.1 * k, 1) for k in range(1, 13))
_ALL: Final = (*SOCIAL, "google")


def _curves(setting: Setting, name: str) -> dict[str, JSON]:
    if name == "google":
        n, gamma = GOOGLE_PRINTED
        found = Rested(n, 0, gamma / n, 0, KAPPA_AUTO)
    else:
        found = rested(social_graph(setting, name))
    return {
        "n": found.n,
        "sum_p2": found.sum_p2,
        "auto": found.auto,
        "printed": [printed_all(e, found.n, found.sum_p2) for e in _EPSILONS],
        "sound": [sound(e, found.n, found.kappa) for e in _EPSILONS],
    }


def _pieces_6(setting: Setting) -> list[Piece]:
    facts = {"epsilons": list(_EPSILONS), "delta": DELTA}
    return [Piece(name, partial(_curves, setting, name), {"graph": name, **facts}) for name in _ALL]


def _make_6(setting: Setting, answers: Answers) -> Made:
    printed = {name: np.array(answers[name]["printed"]) for name in _ALL}
    amplified = {name: [e for e, p in zip(_EPSILONS, printed[name], strict=True) if p < e] for name in _ALL}
    lines = [
        holds(
            "the graph with the least epsilon by Theorem 5.3 at every epsilon_0",
            min(_ALL, key=lambda name: float(printed[name].sum())),
            "google",
            true=all(np.all(printed["google"] <= printed[name]) for name in SOCIAL),
            why="caption of figure 6; n and Gamma of google are those that Table 4 prints",
        ),
        holds(
            "Theorem 5.3 is below epsilon_0 up to epsilon_0 = 1.2 on graphs",
            ", ".join(f"{name} up to {max(amplified[name], default=0.0)}" for name in _ALL),
            "amplification for epsilon_0 from 0.1 to 1.2",
            true=all(max(amplified[name], default=0.0) >= max(_EPSILONS) for name in _ALL),
            why="beyond that the theorem prints more than what a report tells alone",
        ),
    ]
    lines += [
        unknown(
            f"{name}: sound epsilon at epsilon_0 = 1 after {answers[name]['auto'] or 'enough'} rounds",
            answers[name]["sound"][_EPSILONS.index(1.0)],
            f"Theorem 5.3: {answers[name]['printed'][_EPSILONS.index(1.0)]:.4g}; figure 6 prints no numbers",
        )
        for name in _ALL
    ]
    if setting.data is None:
        lines = [unknown(line.what, line.ours, "of stand-ins, not of the paper's graphs") for line in lines]
    rows = [
        [name, e, p, s]
        for name in _ALL
        for e, p, s in zip(_EPSILONS, answers[name]["printed"], answers[name]["sound"], strict=True)
    ]
    table = Table("", ("graph", "epsilon_0", "epsilon by Theorem 5.3", "epsilon sound"), rows)
    shown = []
    for key, title in (
        ("printed", "Theorem 5.3 as printed (no bound)"),
        ("sound", "sound, after rounds enough to overlap"),
    ):
        curves = [
            Curve(f"{name}, n = {answers[name]['n']:,}", _EPSILONS, answers[name][key], look=at)
            for at, name in enumerate(_ALL)
        ]
        shown.append(Panel(title, ONE_REPORT, curves, log="y", ceiling=_EPSILONS))
    title = "Network shuffling of all reports on real graphs"
    return Made((table,), tuple(lines), (panels((7.2, 3.8), shown, y=TOWARDS_CURATOR, title=title, columns=3),))


FIGURE_6: Final = Experiment(
    "003-fig6",
    "Amplification on five real graphs",
    _pieces_6,
    _make_6,
    caption=Caption(
        shows="Two panels of epsilon towards the curator, logarithmic, against the epsilon of one report, with "
        "a curve for each of five real graphs.",
        compares="Left Theorem 5.3 as printed, after the mixing time; right the sound claim after as many rounds "
        "as make all walks overlap. The grey line is what one report tells alone.",
        see="Google, the largest graph, has the lowest curve on both sides. The theorem's curves cross the "
        "grey line, from where on they promise nothing; the sound ones stay far below it.",
        paper="The larger and the more regular the graph, the stronger the amplification.",
        no_bound=NO_BOUND,
    ),
    needs=tuple(inputs.graph_file(name) for name in SOCIAL),
)

_EPSILONS_7: Final = tuple(round(0.2 * k, 1) for k in range(1, 11))
_GRAPHS: Final = ("twitch", "google")


def _curves_7(setting: Setting, name: str) -> dict[str, JSON]:
    if name == "google":
        n, gamma = GOOGLE_PRINTED
        found = Rested(n, 0, gamma / n, 0, KAPPA_AUTO)
    else:
        found = rested(social_graph(setting, name))
    return {
        "n": found.n,
        "all": [printed_all(e, found.n, found.sum_p2) for e in _EPSILONS_7],
        "single": [printed_single(e, found.sum_p2) for e in _EPSILONS_7],
        "sound": [sound(e, found.n, found.kappa) for e in _EPSILONS_7],
    }


def _pieces_7(setting: Setting) -> list[Piece]:
    facts = {"epsilons": list(_EPSILONS_7), "delta": DELTA}
    return [Piece(name, partial(_curves_7, setting, name), {"graph": name, **facts}) for name in _GRAPHS]


def _make_7(setting: Setting, answers: Answers) -> Made:
    lines = []
    for name in _GRAPHS:
        found = answers[name]
        ratio = found["all"][-1] / found["single"][-1]
        lines += [
            holds(
                f"{name}: Theorem 5.3 over Theorem 5.5 at epsilon_0 = {_EPSILONS_7[-1]}",
                ratio,
                "single amplifies more at large epsilon_0",
                true=ratio > 1.0,
                why="caption of figure 7; e^(3 epsilon_0) against e^(2 epsilon_0)",
            ),
            unknown(
                f"{name}: sound epsilon of both protocols at epsilon_0 = 1",
                found["sound"][_EPSILONS_7.index(1.0)],
                f"printed: {found['all'][_EPSILONS_7.index(1.0)]:.4g} all, "
                f"{found['single'][_EPSILONS_7.index(1.0)]:.4g} single; figure 7 prints no numbers",
            ),
        ]
    if setting.data is None:
        lines = [unknown(line.what, line.ours, "of a stand-in, not of the paper's graph") for line in lines]
    rows = [
        [name, *numbers]
        for name in _GRAPHS
        for numbers in zip(_EPSILONS_7, *(answers[name][key] for key in ("all", "single", "sound")), strict=True)
    ]
    table = Table("", ("graph", "epsilon_0", "all, Theorem 5.3", "single, Theorem 5.5", "sound, both"), rows)
    shown = []
    for name in _GRAPHS:
        found = answers[name]
        curves = [
            Curve("all, Theorem 5.3 (no bound)", _EPSILONS_7, found["all"], look=1),
            Curve("single, Theorem 5.5 (no bound)", _EPSILONS_7, found["single"], look=2),
            Curve("sound, both protocols", _EPSILONS_7, found["sound"], look=0),
        ]
        shown.append(Panel(f"{name}, n = {found['n']:,}", ONE_REPORT, curves, log="y", ceiling=_EPSILONS_7))
    title = "Network shuffling: all reports sent on, or one of each user"
    return Made((table,), tuple(lines), (panels((7.2, 3.6), shown, y=TOWARDS_CURATOR, title=title),))


FIGURE_7: Final = Experiment(
    "003-fig7",
    "All reports or a single one of each user",
    _pieces_7,
    _make_7,
    caption=Caption(
        shows="Two panels, for the Twitch and Google graphs, of epsilon towards the curator, logarithmic, "
        "against the epsilon of one report.",
        compares="Sending on all reports (Theorem 5.3), a single one of each user (Theorem 5.5), and the sound "
        "claim, which is one for both. The grey line is what one report tells alone.",
        see="By the theorems a single report amplifies more, the more so for a large epsilon; soundly both "
        "protocols give the same, far below.",
        paper="The single protocol amplifies more at large epsilon.",
        no_bound=NO_BOUND,
    ),
    needs=(inputs.graph_file("twitch"),),
)

_EPSILONS_8: Final = tuple(round(0.2 * k, 1) for k in range(1, 11))
_USERS: Final = (10_000, 1_000_000)
_GAMMAS: Final = (1.0, 10.0)
_NAMES: Final = ("all", "single")


def _curves_8(n: int) -> dict[str, JSON]:
    found: dict[str, JSON] = {"sound": [sound(e, n, 1.0) for e in _EPSILONS_8]}
    for gamma in _GAMMAS:
        found[f"all-{gamma:g}"] = [printed_all(e, n, gamma / n) for e in _EPSILONS_8]
        found[f"single-{gamma:g}"] = [printed_single(e, gamma / n) for e in _EPSILONS_8]
    return found


def _pieces_8(_setting: Setting) -> list[Piece]:
    facts = {"epsilons": list(_EPSILONS_8), "gammas": list(_GAMMAS), "delta": DELTA}
    return [Piece(f"n-{n}", partial(_curves_8, n), {"n": n, **facts}) for n in _USERS]


def _make_8(_setting: Setting, answers: Answers) -> Made:
    few, many = (answers[f"n-{n}"] for n in _USERS)
    keys = [key for key in few if key != "sound"]
    ratio = max(s / min(few[key][at] for key in keys) for at, s in enumerate(few["sound"]))
    lines = [
        holds(
            "more users, less epsilon, for every protocol and Gamma",
            f"{few['all-1'][0] / many['all-1'][0]:.3g} times less at epsilon_0 = {_EPSILONS_8[0]}, all, Gamma = 1",
            "population size matters most",
            true=all(a > b for key in keys for a, b in zip(few[key], many[key], strict=True)),
            why="section 5.6, about figure 6",
        ),
        holds(
            "Gamma = 10 over Gamma = 1, single, epsilon_0 = 0.2",
            few["single-10"][0] / few["single-1"][0],
            "irregular graphs amplify less",
            true=all(a >= b for name in _NAMES for a, b in zip(few[f"{name}-10"], few[f"{name}-1"], strict=True)),
            why="dashed curves of figure 8; soundly, walks at rest do not depend on Gamma at all",
        ),
        Line(
            "the sound claim over the least printed one, at worst",
            ratio,
            "1, the printed one itself",
            "agrees" if ratio <= 1.0 else "differs",
            "agrees where it is at most 1: what is proved is also less than what is printed",
        ),
    ]  # fmt: skip
    rows = [
        [n, *numbers]
        for n in _USERS
        for numbers in zip(_EPSILONS_8, *(answers[f"n-{n}"][key] for key in (*keys, "sound")), strict=True)
    ]
    table = Table("", ("n", "epsilon_0", *(key.replace("-", ", Gamma = ") for key in keys), "sound"), rows)
    shown = []
    for n in _USERS:
        found = answers[f"n-{n}"]
        curves = [
            Curve(rf"{name}, $\Gamma$ = {gamma:g} (no bound)", _EPSILONS_8, found[f"{name}-{gamma:g}"], look=at)
            for at, (name, gamma) in enumerate(product(_NAMES, _GAMMAS), 1)
        ]
        curves.append(Curve(r"sound, any $\Gamma$, both protocols", _EPSILONS_8, found["sound"], look=0))
        shown.append(Panel(f"n = {n:,}, walks at rest", ONE_REPORT, curves, log="y", ceiling=_EPSILONS_8))
    title = "Network shuffling: what users, irregularity and protocol change"
    return Made((table,), tuple(lines), (panels((7.2, 3.8), shown, y=TOWARDS_CURATOR, title=title),))


FIGURE_8: Final = Experiment(
    "003-fig8",
    "What users, irregularity and protocol change",
    _pieces_8,
    _make_8,
    caption=Caption(
        shows="Two panels, for ten thousand and a million users, of epsilon towards the curator, logarithmic, "
        "against the epsilon of one report.",
        compares="All reports or a single one, on regular graphs (irregularity 1) and on irregular ones (10), by "
        "the printed theorems; and the sound claim for walks at rest, which depends on neither.",
        see="More users lower every curve. The sound curve is the lowest, and one for both protocols and "
        "every irregularity.",
        paper="The number of users matters most; irregular graphs amplify less (section 5.6).",
        no_bound=NO_BOUND,
    ),
)
