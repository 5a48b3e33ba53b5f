"""[ABR23, Figure 4]: the same descent on a small table of many columns, and on a large one."""

from __future__ import annotations

from typing import Final

from p2pdp.experiments.contract import Answers, Experiment, Made, Piece, Setting, unknown
from p2pdp.experiments.descent_figures import (
    above,
    curves_picture,
    curves_table,
    final,
    listed,
    near,
    noise_table,
    says,
)
from p2pdp.experiments.descents import METHODS, OURS, SEED, Case, named, piece
from p2pdp.experiments.inputs import table_file

_CASES: Final = {"spambase": Case(data="spambase"), "cardio": Case(data="cardio")}
_SHOWN: Final = {"spambase": "spambase (57 columns)", "cardio": "cardio (11 columns)"}
_NEAR: Final = 0.02  # of accuracy
_WORSE: Final = ("its performances are worse than the centralized DP-SGD", "6.1")
_BETTER: Final = ("we still obtain better results than Local DP-SGD", "6.1")
_CLOSE: Final = ("quite close to the ones of centralized", "6.1")
_AGAIN: Final = "cardio: network at the end and halfway"
_MORE: Final = ("get better with more iterations", "6.1")


def _pieces(setting: Setting) -> list[Piece]:
    return [piece(setting, key, case) for key, case in _CASES.items()]


def _make(setting: Setting, answers: Answers) -> Made:
    columns = {key: answers[key]["columns"] for key in _CASES}
    halfway = len(answers["cardio"]["steps"]) // 2
    spam, cardio = ({method: (key, method, -1) for method in METHODS} for key in _CASES)
    accuracies = [final(answers, key, "local") for key in _CASES]
    lines = (
        above(answers, "spambase: central beside network", _WORSE, (spam["central"], spam["network"])),
        above(answers, "spambase: network beside local", _BETTER, (spam["network"], spam["local"])),
        near(answers, "cardio: network beside central", _CLOSE, (cardio["network"], cardio["central"]), _NEAR),
        above(answers, _AGAIN, _MORE, (cardio["network"], ("cardio", "network", halfway))),
        says(
            f"local, {columns['cardio']} columns (cardio) beside {columns['spambase']} (spambase)",
            f"accuracy {accuracies[1]:.3f} and {accuracies[0]:.3f}",
            "with higher-dimension data the Local DP-SGD performances worsen", "6.1",
            true=columns["cardio"] > columns["spambase"] and accuracies[1] < accuracies[0],
            why="said of cardio: agrees where it is the table of more columns, and accuracy lower",
        ),
        unknown(
            "walk.sgd with noise by its sound account, spambase and cardio", listed(answers, list(_CASES), OURS),
            "the paper has no such method",
        ),
    )  # fmt: skip
    title = f"Logistic regression, {named(setting, Case())}: mean of trials, ± 1 standard deviation"
    tables = (curves_table(answers, "data", _SHOWN), noise_table(answers, "data", _SHOWN))
    return Made(tables, lines, (curves_picture(answers, _SHOWN, title),))


EXPERIMENT: Final = Experiment(
    name="001-fig4",
    paper="Report on Privacy Amplification by Decentralization, figure 4",
    title="central, local and network DP-SGD on spambase and cardio",
    pieces=_pieces,
    make=_make,
    needs=(table_file("spambase"), table_file("cardio")),
    seeds=(SEED,),
)
