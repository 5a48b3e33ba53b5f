"""[ABR23, Figure 7]: the same descent with 2,000 nodes and with 200."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p2pdp.experiments.contract import Answers, Experiment, Made, Piece, Setting, unknown
from p2pdp.experiments.descent_figures import above, curves_picture, curves_table, listed, near, noise_table
from p2pdp.experiments.descents import OURS, SEED, Case, named, piece
from p2pdp.experiments.inputs import table_file

_CASES: Final = {"nodes-2000": Case(), "nodes-200": replace(Case(), n=200)}
_SMALL: Final = 0.03  # of accuracy
_SMALL_LOSS: Final = ("the network DP is impacted only in small proportions compared to central DP", "6.2")
_DROP: Final = ("an important drop in its accuracy", "6.2")
_SUFFERS: Final = ("Local DP suffers from an important drop in accuracy from this modification", "6.2")


def _pieces(setting: Setting) -> list[Piece]:
    return [piece(setting, key, case) for key, case in _CASES.items()]


def _make(setting: Setting, answers: Answers) -> Made:
    sizes = {key: named(setting, case, epsilon=False) for key, case in _CASES.items()}
    many, few = _CASES
    lines = (
        near(
            answers, "network, 2,000 nodes and 200", _SMALL_LOSS, ((many, "network", -1), (few, "network", -1)), _SMALL
        ),
        above(answers, "central, 2,000 nodes and 200", _DROP, ((many, "central", -1), (few, "central", -1)), _SMALL),
        above(answers, "local, 2,000 nodes and 200", _SUFFERS, ((many, "local", -1), (few, "local", -1)), _SMALL),
        unknown(
            "walk.sgd with noise by its sound account", listed(answers, list(_CASES), OURS),
            "the paper has no such method",
        ),
    )  # fmt: skip
    title = "Logistic regression on houses, ε = 10: mean of trials, ± 1 standard deviation"
    tables = (curves_table(answers, "nodes", sizes), noise_table(answers, "nodes", sizes))
    return Made(tables, lines, (curves_picture(answers, sizes, title),))


EXPERIMENT: Final = Experiment(
    name="001-fig7",
    paper="Report on Privacy Amplification by Decentralization, figure 7",
    title="central, local and network DP-SGD with 2,000 and with 200 nodes",
    pieces=_pieces,
    make=_make,
    needs=(table_file("houses"),),
    seeds=(SEED,),
)
