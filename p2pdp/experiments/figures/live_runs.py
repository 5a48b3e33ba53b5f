"""Live against simulated: the same specs among real processes over sockets, and in the simulated world.

On a ring the schedule is public, so both must claim the same to the last digit. On the complete graph the route is
drawn anew in each run, so claims are compared by their means. Errors of live runs must have the variance that the plan
announces: of R independent Gaussian errors the sum of squares follows a chi-square law. Live noise comes from the
operating system: numbers differ from call to call, and a verdict is wrong once in a million times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.experiments.contract import Answers, Caption, Experiment, Made, Picture, Piece, Setting, Table, holds
from p2pdp.experiments.style import COLOURS, MARKERS, name_axes
from p2pdp.files.reproduction import scratch_folder
from p2pdp.files.spec import parse_spec
from p2pdp.runs.live import run_spec
from p2pdp.runs.prepared import on_seed
from p2pdp.runs.simulate import simulate_spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2pdp.experiments.contract import Line

SEED: Final = 11
_SPEC: Final = """[run]
protocol = "walk.sum"
nodes = {nodes}
seed = {seed}
[graph]
kind = "{graph}"
[walk]
{walk}
[noise]
mechanism = "gaussian"
sigma = 2.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
[privacy]
delta = 1e-5
"""
_CASES: Final = {
    "ring": {"nodes": 8, "graph": "ring", "walk": 'order = "ring"\nlaps = 3'},
    "complete": {"nodes": 8, "graph": "complete", "walk": 'order = "random"\nhops = 160'},
}
_SHOWN: Final = {"ring": "ring of 8, 3 laps", "complete": "complete graph of 8, 160 hops"}
_RUNS: Final = 40
_RUNS_QUICK: Final = 2
_TAIL: Final = 5e-7  # on each side


def runs(setting: Setting) -> int:
    return _RUNS_QUICK if setting.quick else _RUNS


def measured(case: str, count: int, *, live: bool) -> dict[str, Any]:
    """Return for each run its error over the announced deviation, and what was claimed about one other user."""
    errors, claims, means = [], [], []
    with scratch_folder() as place:
        for number in range(count):
            text = _SPEC.format(seed=SEED, **_CASES[case])
            spec = parse_spec(text, None)
            folder = place / str(number)
            if live:
                result = run_spec(spec, folder, lambda _event: None)
            else:
                result = simulate_spec(
                    on_seed(spec, SEED + number), folder, None, fast=False, faults=None, progress=None
                )
            assert isinstance(result.error, float)
            assert isinstance(result.standard_error, float)
            errors.append(result.error / result.standard_error)
            claim = _claim(folder)
            claims.append(claim["epsilon_max"])
            means.append(claim["epsilon_mean"])
    return {"errors": errors, "claims": claims, "means": means}


def _claim(folder: Path) -> dict[str, Any]:
    """Return the first bound about one other user that the audit of a run made."""
    from p2pdp.files.folder import AUDIT_FILE, read_json

    found: Sequence[dict[str, Any]] = read_json(folder / AUDIT_FILE)["claims"]
    return next(claim for claim in found if claim["observer"] == "node" and claim["bound"])


def _pieces(setting: Setting) -> list[Piece]:
    return [
        Piece(
            f"{case}-{'live' if live else 'simulated'}",
            partial(measured, case, runs(setting), live=live),
            {**terms, "runs": runs(setting), "live": live},
        )
        for case, terms in _CASES.items()
        for live in (True, False)
    ]


def _lines(answers: Answers) -> list[Line]:
    from scipy.stats import chi2

    found = []
    for case, shown in _SHOWN.items():
        live, simulated = answers[f"{case}-live"], answers[f"{case}-simulated"]
        for name, one in (("live", live), ("simulated", simulated)):
            total, count = sum(error**2 for error in one["errors"]), len(one["errors"])
            low, high = (math.sqrt(chi2.ppf(tail, count) / count) for tail in (_TAIL, 1.0 - _TAIL))
            rms = math.sqrt(total / count)
            found.append(
                holds(
                    f"{shown}: errors, {name}",
                    f"{rms:.3g} of the announced deviation (root mean square, {count} runs)",
                    "1, as announced by our plan", true=low <= rms <= high,
                    why=f"agrees between {low:.3g} and {high:.3g}, which chance leaves once in a million times",
                )
            )  # fmt: skip
        found.append(_same_claims(shown, live, simulated, public=case == "ring"))
    return found


def _same_claims(shown: str, live: dict[str, Any], simulated: dict[str, Any], *, public: bool) -> Line:
    if public:
        mine, theirs = set(live["claims"]), set(simulated["claims"])
        return holds(
            f"{shown}: epsilon claimed", ", ".join(f"{one:.9g}" for one in sorted(mine)) + " live",
            ", ".join(f"{one:.9g}" for one in sorted(theirs)) + " simulated", true=mine == theirs and len(mine) == 1,
            why="the schedule is public, so every run claims the same, to the last digit",
        )  # fmt: skip
    a, b = np.array(live["means"]), np.array(simulated["means"])
    error = math.sqrt((a.var(ddof=1) if len(a) > 1 else 0.0) / len(a) + (b.var(ddof=1) if len(b) > 1 else 0.0) / len(b))
    from scipy.stats import t

    wide = float(t.ppf(1.0 - _TAIL, max(1, min(len(a), len(b)) - 1)))
    return holds(
        f"{shown}: epsilon claimed, mean over pairs", f"{a.mean():.4g} live", f"{b.mean():.4g} simulated",
        true=abs(a.mean() - b.mean()) <= wide * error + 1e-12,
        why=f"the route is drawn anew: agrees within {wide:.3g} standard errors of the difference, {error:.2g}",
    )  # fmt: skip


def _make(_setting: Setting, answers: Answers) -> Made:
    rows = [
        (*key.split("-"), number, *values)
        for key, one in answers.items()
        for number, values in enumerate(zip(one["errors"], one["claims"], one["means"], strict=True))
    ]
    table = Table("", ("case", "how", "run", "error_over_deviation", "epsilon_max", "epsilon_mean"), rows)
    return Made((table,), tuple(_lines(answers)), (Picture("", 7.2, 3.6, partial(_draw, answers)),))


def _draw(answers: Answers, figure: Figure) -> None:
    panels: Any = figure.subplots(1, 2, width_ratios=(3, 2))
    left, right = panels
    order = np.linspace(-3.0, 3.0, 121)
    from scipy.stats import norm

    left.plot(order, norm.cdf(order), color="0.6", label="normal law, as announced")
    for place, (key, one) in enumerate(answers.items()):
        errors = np.sort(one["errors"])
        heights = (np.arange(len(errors)) + 0.5) / len(errors)
        kind = {"color": COLOURS[place], "marker": MARKERS[place]}
        case, how = key.split("-")
        left.plot(errors, heights, linestyle="none", markersize=3.5, label=f"{_SHOWN[case]}, {how}", **kind)
        right.plot([place] * len(errors), one["means"], linestyle="none", markersize=4, alpha=0.6, **kind)
    name_axes(left, "errors of the sum", "error / announced deviation", "share of runs below")
    name_axes(right, "claims about one other user", "", "ε, mean over pairs (δ = 1e-5)")
    right.set_xticks(range(len(answers)), [key.replace("-", "\n") for key in answers])
    right.set_xlim(-0.6, len(answers) - 0.4)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)


LIVE: Final = Experiment(
    name="ours-live",
    title="live runs against simulated ones: errors and claims of walk.sum",
    pieces=_pieces,
    make=_make,
    caption=Caption(
        shows="Left the distribution of errors of runs, each over its announced deviation, with the normal law "
        "as a line; right the claimed epsilons, as means over pairs, in four columns of dots.",
        compares="Runs of real processes over sockets, and simulated ones, of the same two specs.",
        see="Errors of both follow the normal law. On the ring all claims are equal to the last digit; on the"
        " complete graph routes differ from run to run, and claims scatter alike.",
        paper="What plan announces, and that simulated runs say the same as live ones.",
    ),
    seeds=(SEED,),
)
