"""The break and the repair of gossip averaging: what noise on messages leaves of the leaks, and what it costs.

Without it users far away are told about, on rings and hypercubes wholly, where [CEBM22] promises the less the
farther. With fresh noise on every message, of a part of a user's own noise, leaks of far users fall. Where gossip
mixes fast, some hundredths are enough for all pairs to be told at most what the paper prints, at little error; on rings
and tori, where it prints next to nothing for far users, that would take as much noise as one's own, or more, and many
times the error. Leaks with noise on messages are a bound that is at most a fifth above the exact replay
(`privacy/linear/krylov.py`); without it they are exact. Neighbours always learn all: a user's first message is its
noised value.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.spec import DataPart, GraphPart, NoisePart, PrivacyPart, RunPart, Spec, TaskPart
from p2pdp.experiments.contract import (
    JSON,
    Answers,
    Caption,
    Experiment,
    Line,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    holds,
)
from p2pdp.experiments.gossip_leaks import ROUNDING, Gossip, distances_from, printed_leaks
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes
from p2pdp.protocols.gossip.analysis.forecast import RATIOS, forecast, tradeoff_of
from p2pdp.protocols.gossip.options import GossipPart
from p2pdp.protocols.run_plan import plan_run
from p2pdp.runs.simulate import simulate_spec
from p2pdp.topology.weights import sparse_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 2
_DELTA: Final = 1e-6
_SIGMA: Final = 1.0
_KINDS: Final = {"hypercube": 256, "erdos_renyi": 256, "torus": 256, "ring": 64}
_KINDS_QUICK: Final = {"hypercube": 32, "erdos_renyi": 32, "torus": 36, "ring": 16}
_LABELS: Final = {"hypercube": "hypercube", "erdos_renyi": "Erdős–Rényi", "torus": "torus", "ring": "ring"}
_TRIALS: Final = 400
_TRIALS_QUICK: Final = 200
_MEASURED: Final = 0.1  # the ratio whose error is also measured
_SAME: Final = 0.2
_CHEAP: Final = 1.1  # times the standard error without noise on messages
_FEW: Final = 0.01  # of all pairs


def _spec(kind: str, n: int, ratio: float) -> Spec:
    return Spec(
        run=RunPart("gossip.average", n, seed=_SEED, audit=False),
        graph=GraphPart(kind),
        options=GossipPart(rounds="auto", accelerated=True, message_sigma=ratio * _SIGMA or None),
        noise=NoisePart("gaussian", sigma=_SIGMA),
        data=DataPart("uniform", clip=(0.0, 1.0)),
        task=TaskPart("mean"),
        privacy=PrivacyPart(delta=_DELTA),
    )


def _tradeoff(kind: str, n: int, trials: int) -> dict[str, JSON]:
    run = plan_run(_spec(kind, n, 0.0), n, 1, sampler="seeded")
    rows, found = tradeoff_of(run, _DELTA), forecast(run, RATIOS)
    assert rows is not None
    assert not isinstance(found, str)
    assert run.graph is not None
    plan: Any = run.plan
    on = Gossip(run.graph, sparse_weights(run.graph, plan.weights), plan.gap, plan.rounds)
    printed = printed_leaks(on, found.observers)
    away = np.array([distances_from(run.graph, observer) for observer in found.observers]).T
    others, far = away > 0, 2 * away > away.max()
    result = simulate_spec(_spec(kind, n, _MEASURED), None, trials, fast=True, faults=None, progress=None)
    errors: Any = [trial.error for trial in result.trials or []]
    return {
        "n": n,
        "rounds": plan.rounds,
        "ratio": list(RATIOS),
        "above": [float(np.mean((leak > printed * (1.0 + ROUNDING) + ROUNDING)[others])) for leak in found.leaks],
        "far": [float(leak[far].mean()) for leak in found.leaks],
        "mean": [float(leak[others].mean()) for leak in found.leaks],
        "most": [float(leak[far].max()) for leak in found.leaks],
        "error": [row.standard_error for row in rows],
        "epsilon_max": [row.epsilon_max for row in rows],
        "printed_far": float(printed[far].mean()),
        "measured": float(np.sqrt(np.mean(np.square(errors)))),
        "expected": result.standard_error,
    }


def _pieces(setting: Setting) -> list[Piece]:
    trials = _TRIALS_QUICK if setting.quick else _TRIALS
    facts = {"sigma": _SIGMA, "delta": _DELTA, "trials": trials, "seed": _SEED, "ratios": list(RATIOS)}
    kinds = _KINDS_QUICK if setting.quick else _KINDS
    return [
        Piece(kind, partial(_tradeoff, kind, n, trials), {"kind": kind, "n": n, **facts}) for kind, n in kinds.items()
    ]


def _lines(kind: str, found: Answers) -> list[Line]:
    ratios, above, error = found["ratio"], found["above"], found["error"]
    first = next((at for at, share in enumerate(above) if share <= _FEW), len(above) - 1)
    cost, off = error[first] / error[0], abs(found["measured"] / found["expected"] - 1.0)
    return [
        holds(
            f"{kind}: share of pairs told more than equation (6), without noise on messages",
            above[0],
            "none (Theorem 1)",
            true=above[0] == 0.0,
            why=f"n = {found['n']}, {found['rounds']} rounds",
        ),
        holds(
            f"{kind}: mean leak of users more than half as far as can be, without noise on messages",
            found["far"][0],
            f"{found['printed_far']:.3g} by equation (6)",
            true=found["far"][0] <= found["printed_far"],
            why=f"1 is local privacy; with noise of {ratios[3]:g} of one's own on messages it is {found['far'][3]:.3g}",
        ),
        Line(
            f"{kind}: noise on messages, over own noise, with which at most {_FEW:.0%} of pairs are told more",
            f"{ratios[first]:g}, for {cost:.3g} times the standard error",
            f"no repair; {_CHEAP} times at most would be a cheap one",
            "agrees" if above[first] <= _FEW and cost <= _CHEAP else "differs",
            f"agrees where one of the ratios {', '.join(f'{ratio:g}' for ratio in ratios)} does it for at most "
            f"{_CHEAP} times the error",
        ),
        Line(
            f"{kind}: measured over expected error at ratio {_MEASURED}",
            found["measured"] / found["expected"],
            "no repair; 1 is what we compute",
            "agrees" if off <= _SAME else "differs",
            f"root mean square of all users in many runs; within {_SAME:.0%}",
        ),
    ]


def _make(_setting: Setting, answers: Answers) -> Made:
    lines = [line for kind, found in answers.items() for line in _lines(kind, found)]
    columns = ("ratio", "above", "far", "most", "mean", "epsilon_max", "error")
    rows = [
        [kind, *numbers]
        for kind, found in answers.items()
        for numbers in zip(*(found[name] for name in columns), strict=True)
    ]
    names = ("graph", "message noise / own", "share of pairs above (6)", "far leak, mean", "far leak, most",
             "mean leak", "largest epsilon", "standard error")  # fmt: skip
    return Made((Table("", names, rows),), tuple(lines), (Picture("", 7.8, 3.8, partial(_draw, answers=answers)),))


def _draw(figure: Figure, answers: Answers) -> None:
    panes = figure.subplots(1, 3)
    titles = {
        "above": "pairs told more than equation (6)",
        "far": "mean leak of the far half",
        "error": "what it costs",
    }
    for axes, (key, title) in zip(panes, titles.items(), strict=True):
        for at, (kind, found) in enumerate(answers.items()):
            values = np.divide(found[key], found["error"][0] if key == "error" else 1.0).tolist()
            draw_curves(axes, [Curve(f"{_LABELS[kind]}, n = {found['n']}", found["ratio"], values, look=at)])
            if key == "far":
                axes.axhline(found["printed_far"], color=axes.lines[-1].get_color(), linewidth=0.8, linestyle=":")
        axes.set_xscale("symlog", linthresh=0.01)
        axes.set_xlim(-0.002, 1.4)
        axes.set_xticks([0.0, 0.01, 0.1, 1.0], ["0", "0.01", "0.1", "1"])
        axes.minorticks_off()
        axes.set_yscale("linear" if key == "above" else "log")
        name_axes(axes, title, "message noise / own noise", "")
    panes[0].set_ylabel("share of all pairs")
    panes[1].set_ylabel("leak (1: local; thin lines: equation (6))")
    panes[2].set_ylabel("standard error, times that without")
    figure.suptitle("Gossip: what noise on messages leaves of the leaks, and what it costs", fontsize=10)
    legend_below(figure, panes[0], 4)


BREAK_AND_REPAIR: Final = Experiment(
    "ours-break-and-repair",
    "Leak against noise on messages, with error",
    _pieces,
    _make,
    caption=Caption(
        shows="Three panels over the noise on messages as a part of a user's own: the share of pairs told more "
        "than equation (6), the mean leak of users far away (thin lines are equation (6)), and the "
        "standard error as a multiple of that without.",
        compares="Gossip averaging on four kinds of graphs.",
        see="Leaks of far users fall with the noise on messages. Where gossip mixes fast, some hundredths to tenths "
        "of the own noise suffice; on torus and ring it takes as much noise as the own, and many times the error.",
        paper="Equation (6) of the Muffliato paper, and what repairs it.",
    ),
    seeds=tuple(range(_SEED, _SEED + _TRIALS)),
)
