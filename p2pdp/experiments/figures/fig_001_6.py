"""[ABR23, Figure 6]: accuracy by the length of the walk, from 2,000 to 100,000 steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p2pdp.experiments.contract import Answers, Experiment, Made, Piece, Setting
from p2pdp.experiments.descent_figures import above, final, final_picture, final_table, listed, says
from p2pdp.experiments.descents import SEED, Case, case_in, piece
from p2pdp.experiments.inputs import table_file

_STEPS: Final = (2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
_STEPS_QUICK: Final = (2_000, 20_000)
_STABLE: Final = 0.02  # of accuracy
_IMPROVES: Final = ("the performances of the network DP improve with an increase in iterations", "6.2")
_WORSENS: Final = ("the performances of the local DP are negatively impacted by it", "6.2")


def _keys(setting: Setting) -> dict[str, float]:
    return {f"steps-{steps}": steps for steps in (_STEPS_QUICK if setting.quick else _STEPS)}


def _pieces(setting: Setting) -> list[Piece]:
    """The longest first."""
    return [piece(setting, key, replace(Case(), steps=int(value))) for key, value in reversed(_keys(setting).items())]


def _make(setting: Setting, answers: Answers) -> Made:
    keys = _keys(setting)
    first, *_, last = keys
    central = [final(answers, key, "central") for key in keys]
    lines = (
        above(
            answers, "network, longest walk and shortest", _IMPROVES, ((last, "network", -1), (first, "network", -1))
        ),
        above(answers, "local, shortest walk and longest", _WORSENS, ((first, "local", -1), (last, "local", -1))),
        says(
            "central, over the lengths", listed(answers, list(keys), "central"),
            "the performances of central DP stay stable", "6.2", true=max(central) - min(central) <= _STABLE,
            why=f"agrees where all are within {_STABLE:g}",
        ),
    )  # fmt: skip
    title = f"houses, n = {case_in(setting, Case()).n:,} users, ε = 10: mean of trials, ± 1 standard deviation"
    picture = final_picture(
        answers, keys, title, "steps of the walk T" + (", of which a twentieth was run" if setting.quick else "")
    )
    return Made((final_table(answers, "steps", keys),), lines, (picture,))


EXPERIMENT: Final = Experiment(
    name="001-fig6",
    paper="Report on Privacy Amplification by Decentralization, figure 6",
    title="accuracy by the number of iterations, 2,000 to 100,000",
    pieces=_pieces,
    make=_make,
    needs=(table_file("houses"),),
    seeds=(SEED,),
)
