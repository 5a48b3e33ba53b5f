"""Leaks of one user of a social graph to all others by gossip.

[CEBM22, Figure 1b]: who learns how much about one user of a Facebook ego graph.

By equation (6) and exactly. The paper does not say which of the ten graphs it shows, nor which user.

[CEBM22, Figure 5]: as figure 1b, on the nine other Facebook ego graphs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.experiments.contract import Answers, Caption, Experiment, Made, Picture, Piece, Setting
from p2pdp.experiments.gossip_leaks import NO_BOUND, SEED, draw_ego, ego_lines, ego_pieces, ego_table, joined
from p2pdp.experiments.inputs import EGO_FILE
from p2pdp.files.paper_data import EGO_COUNTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN: Final = 0


def _pieces_1b(setting: Setting) -> list[Piece]:
    return ego_pieces(setting, [SHOWN])


def _make_1b(setting: Setting, answers: Answers) -> Made:
    found = joined(answers)
    picture = Picture("", 7.4, 3.6, partial(_draw_1b, one=found[SHOWN]))
    return Made((ego_table(found),), tuple(ego_lines(setting, found)), (picture,))


def _draw_1b(figure: Figure, one: dict[str, Any]) -> None:
    panes = figure.subplots(1, 2)
    drawn: Any = None
    for axes, name, title in zip(
        panes, ("printed", "exact"), ("by equation (6), no bound for pairs", "exactly"), strict=True
    ):
        drawn = draw_ego(axes, one, name, 14.0)
        axes.set_title(title)
    figure.colorbar(drawn, ax=panes, label="leak of the crossed user's value (1: local)", extend="both", shrink=0.9)
    figure.suptitle(f"Who learns by gossip about one of {one['n']} friends (ego graph {SHOWN})?", fontsize=10)


FIGURE_1B: Final = Experiment(
    "004-fig1b",
    "Who learns about one user of a social graph",
    _pieces_1b,
    _make_1b,
    caption=Caption(
        shows="A social graph drawn twice; each user is shaded by what it learns of the user at the white "
        "cross, from light, a hundredth of local privacy and less, to dark, all of it.",
        compares="Left by equation (6), right exactly.",
        see="Left the shade fades outside the crossed user's own community; right far users are darker, for "
        "the exact leak is much larger there.",
        paper="Leakage is limited outside the node's own community.",
        no_bound=NO_BOUND,
    ),
    needs=(EGO_FILE,),
    seeds=(SEED,),
)

_EGOS: Final = tuple(ego for ego in EGO_COUNTS if ego != SHOWN)
_EGOS_QUICK: Final = (348, 414, 686, 698, 3980)  # the small ones
_ACROSS: Final = 3


def _pieces_5(setting: Setting) -> list[Piece]:
    return ego_pieces(setting, _EGOS_QUICK if setting.quick and setting.data is not None else _EGOS)


def _make_5(setting: Setting, answers: Answers) -> Made:
    found = joined(answers)
    height = 0.9 + 1.55 * -(-len(found) // _ACROSS)
    picture = Picture("", 8.4, height, partial(_draw_5, found=found))
    return Made((ego_table(found),), tuple(ego_lines(setting, found)), (picture,))


def _draw_5(figure: Figure, found: dict[int, dict[str, Any]]) -> None:
    panes = figure.subplots(-(-len(found) // _ACROSS), 2 * _ACROSS, squeeze=False)
    drawn: Any = None
    for at, (ego, one) in enumerate(found.items()):
        row, column = divmod(at, _ACROSS)
        for side, name in enumerate(("printed", "exact")):
            axes = panes[row, 2 * column + side]
            drawn = draw_ego(axes, one, name, 6.0)
            axes.set_title(f"{ego}: {'eq. (6)' if side == 0 else 'exact'}", fontsize=8)
    for axes in panes.flat[2 * len(found) :]:
        axes.set_visible(False)
    figure.colorbar(drawn, ax=panes, label="leak of the crossed user's value (1: local)", extend="both", shrink=0.7)
    figure.suptitle("Who learns by gossip about one user? Facebook ego graphs by number", fontsize=10)


FIGURE_5: Final = Experiment(
    "004-fig5",
    "Who learns about one user of nine social graphs",
    _pieces_5,
    _make_5,
    caption=Caption(
        shows="Social graphs, each drawn twice; each user is shaded by what it learns of the user at the white "
        "cross, from light, a hundredth of local privacy and less, to dark, all of it.",
        compares="For each graph left by equation (6), right exactly.",
        see="By equation (6) shades fade outside the crossed user's community; exactly they fade less.",
        paper="Leakage is limited outside the node's own community.",
        no_bound=NO_BOUND,
    ),
    needs=(EGO_FILE,),
    seeds=(SEED,),
)
