"""[CEBM22, Figure 5]: as figure 1b, on the nine other Facebook ego graphs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.experiments.contract import Answers, Experiment, Made, Picture, Piece, Setting
from p2pdp.experiments.ego_leaks import SEED, draw_ego, ego_lines, ego_pieces, ego_table, joined
from p2pdp.experiments.figures.fig_004_1b import SHOWN
from p2pdp.experiments.inputs import EGO_FILE
from p2pdp.files.paper_data import EGO_COUNTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EGOS: Final = tuple(ego for ego in EGO_COUNTS if ego != SHOWN)
_EGOS_QUICK: Final = (348, 414, 686, 698, 3980)  # the small ones
_ACROSS: Final = 3


def _pieces(setting: Setting) -> list[Piece]:
    return ego_pieces(setting, _EGOS_QUICK if setting.quick and setting.data is not None else _EGOS)


def _make(setting: Setting, answers: Answers) -> Made:
    found = joined(answers)
    height = 0.9 + 1.55 * -(-len(found) // _ACROSS)
    picture = Picture("", 8.4, height, partial(_draw, found=found))
    return Made((ego_table(found),), tuple(ego_lines(setting, found)), (picture,))


def _draw(figure: Figure, found: dict[int, dict[str, Any]]) -> None:
    panes = figure.subplots(-(-len(found) // _ACROSS), 2 * _ACROSS, squeeze=False)
    drawn: Any = None
    for at, (ego, one) in enumerate(found.items()):
        row, column = divmod(at, _ACROSS)
        for side, name in enumerate(("printed", "exact")):
            axes = panes[row, 2 * column + side]
            drawn = draw_ego(axes, one, name, 3.0)
            axes.set_title(f"{ego}: {'equation (6)' if side == 0 else 'exact'}", fontsize=8)
    for axes in panes.flat[2 * len(found) :]:
        axes.set_visible(False)
    figure.colorbar(drawn, ax=panes, label="leak of the crossed user's value (1: local)", shrink=0.7)
    figure.suptitle("Who learns by gossip about one user? Facebook ego graphs by number", fontsize=10)


EXPERIMENT: Final = Experiment(
    "004-fig5",
    "Muffliato, figure 5",
    "Who learns about one user of nine social graphs",
    _pieces,
    _make,
    needs=(EGO_FILE,),
    seeds=(SEED,),
)
