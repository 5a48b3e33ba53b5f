"""[ABR23, Figure 5]: accuracy by how often a user may contribute, from 1 to 50 times."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p2pdp.experiments.contract import Answers, Experiment, Made, Piece, Setting, unknown
from p2pdp.experiments.descent_figures import final, final_picture, final_table, listed, says
from p2pdp.experiments.descents import METHODS, OURS, SEED, Case, named, piece
from p2pdp.experiments.inputs import table_file

_UPDATES: Final = (1, 2, 5, 10, 20, 30, 50)
_UPDATES_QUICK: Final = (1, 10, 50)
_LITTLE: Final = 0.03  # of accuracy
_OURS_WHY: Final = "the paper has no such method; it has no limit of contributions, so only chance differs"


def _keys(setting: Setting) -> dict[str, float]:
    return {f"updates-{updates}": updates for updates in (_UPDATES_QUICK if setting.quick else _UPDATES)}


def _pieces(setting: Setting) -> list[Piece]:
    return [piece(setting, key, replace(Case(), updates=int(value))) for key, value in _keys(setting).items()]


def _make(setting: Setting, answers: Answers) -> Made:
    keys = _keys(setting)
    lines = []
    for method in METHODS:
        ends = [final(answers, key, method) for key in keys]
        lines.append(
            says(
                f"{method}, over the numbers of updates", listed(answers, list(keys), method),
                "increasing the updates per nodes reduces very minimally the accuracy", "6.2",
                true=max(ends) - min(ends) <= _LITTLE, why=f"agrees where all are within {_LITTLE:g} of each other",
            )
        )  # fmt: skip
    lines.append(unknown("walk.sgd with noise by its sound account", listed(answers, list(keys), OURS), _OURS_WHY))
    title = f"houses, {named(setting, Case())}: mean of trials, ± 1 standard deviation"
    x = "contributions that a user is allowed"
    return Made((final_table(answers, "updates", keys),), tuple(lines), (final_picture(answers, keys, title, x),))


EXPERIMENT: Final = Experiment(
    name="001-fig5",
    paper="Report on Privacy Amplification by Decentralization, figure 5",
    title="accuracy by the number of updates a node, 1 to 50",
    pieces=_pieces,
    make=_make,
    needs=(table_file("houses"),),
    seeds=(SEED,),
)
