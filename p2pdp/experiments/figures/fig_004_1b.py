"""[CEBM22, Figure 1b]: who learns how much about one user of a Facebook ego graph.

By equation (6) and exactly. The paper does not say which of the ten graphs it shows, nor which user.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.experiments.contract import Answers, Experiment, Made, Picture, Piece, Setting
from p2pdp.experiments.ego_leaks import SEED, draw_ego, ego_lines, ego_pieces, ego_table, joined
from p2pdp.experiments.inputs import EGO_FILE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN: Final = 0


def _pieces(setting: Setting) -> list[Piece]:
    return ego_pieces(setting, [SHOWN])


def _make(setting: Setting, answers: Answers) -> Made:
    found = joined(answers)
    picture = Picture("", 7.4, 3.6, partial(_draw, one=found[SHOWN]))
    return Made((ego_table(found),), tuple(ego_lines(setting, found)), (picture,))


def _draw(figure: Figure, one: dict[str, Any]) -> None:
    panes = figure.subplots(1, 2)
    drawn: Any = None
    for axes, name, title in zip(
        panes, ("printed", "exact"), ("by equation (6), no bound for pairs", "exactly"), strict=True
    ):
        drawn = draw_ego(axes, one, name, 14.0)
        axes.set_title(title)
    figure.colorbar(drawn, ax=panes, label="leak of the crossed user's value (1: local)", shrink=0.9)
    figure.suptitle(f"Who learns by gossip about one of {one['n']} friends (ego graph {SHOWN})?", fontsize=10)


EXPERIMENT: Final = Experiment(
    "004-fig1b",
    "Muffliato, figure 1b",
    "Who learns about one user of a social graph",
    _pieces,
    _make,
    needs=(EGO_FILE,),
    seeds=(SEED,),
)
