"""Exact against published, for every protocol that walks: what one other user learns at most, by each account.

Sound are the claims that `plan` makes of these runs (of the ring's histogram the worst pair's, which stands next to the
first holder). Published are the papers' theorems on the same run, `bound` or not. Local is the ceiling for whoever sees
all messages; on a ring, where few contributions have noise of their own, there is none.

For learning on any graph the published account [CBU24] is of Rényi divergences, so both are
shown at order 2, for sensitivity 1 and sigma 1: the published formula, and the account that misses no repeats, averaged
over walks that took place.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.auditor.a_priori import claims_a_priori
from p2pdp.core.claims import Claim
from p2pdp.experiments.contract import Answers, Caption, Experiment, Made, Picture, Piece, Setting, Table, holds
from p2pdp.experiments.style import COLOURS, MARKERS
from p2pdp.experiments.walks import seen_by
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import randomized_response
from p2pdp.privacy.contract import account
from p2pdp.privacy.iteration.path import exposures
from p2pdp.privacy.shuffle.several import Kind, upper_epsilons
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.walk.analysis.fast import path_of
from p2pdp.protocols.walk.analysis.published import published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2pdp.experiments.contract import Line

SEED: Final = 23
_DELTA: Final = 1e-5
_GAUSSIAN: Final = '[noise]\nmechanism = "gaussian"\nepsilon = 0.4\ndelta = 1e-7'
_UNIFORM: Final = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]'
_RING: Final = '[graph]\nkind = "ring"\n[walk]\norder = "ring"\nlaps = {laps}'
_COMPLETE: Final = '[graph]\nkind = "complete"\n[walk]\norder = "random"\nhops = {hops}'
_SPECS: Final = {
    "ring-sum": f"{_RING}\n{_GAUSSIAN}\n{_UNIFORM}",
    "ring-histogram": f'{_RING}\n[noise]\nmechanism = "randomized_response"\nepsilon = 0.4\n'
    '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 5',
    "complete-sum": f"{_COMPLETE}\n{_GAUSSIAN}\n{_UNIFORM}",
    "complete-sgd": f'{_COMPLETE}\n{_GAUSSIAN}\n{_UNIFORM}\n[task]\nkind = "mean"\nclip = 1.0\nrate = 0.1',
}
_PROTOCOLS: Final = {"sum": "walk.sum", "histogram": "walk.histogram", "sgd": "walk.sgd"}
SHOWN: Final = {
    "ring-sum": "walk.sum, ring of {n}, 3 laps",
    "ring-histogram": "walk.histogram, ring of {n}, 1 lap",
    "complete-sum": "walk.sum, complete graph of {n}, T = 100 n",
    "complete-sgd": "walk.sgd, complete graph of {n}, T = 100 n",
    "graph-sgd": "walk.sgd, 4-regular graph of {n}, T = 100 n\n(mean divergence at order 2, σ = 1)",
}
_NODES: Final = {"ring-sum": 100, "ring-histogram": 2000, "complete-sum": 100, "complete-sgd": 100, "graph-sgd": 100}
_NODES_QUICK: Final = _NODES | {"complete-sum": 12, "complete-sgd": 12, "graph-sgd": 16}
_LABELS: Final = {
    "sound": "sound", "published": "published, a bound", "published-first": "published first version, no bound",
    "published-no-bound": "published, no bound", "local": "local DP (whoever sees all)",
}  # fmt: skip
_LOOKS: Final = {"sound": 1, "published": 3, "published-no-bound": 2, "published-first": 5, "local": 0}
_WALKS: Final = 10
_DEGREE: Final = 4


def nodes(setting: Setting) -> dict[str, int]:
    return _NODES_QUICK if setting.quick else _NODES


def _run(case: str, n: int) -> RunPlan:
    head = f'[run]\nprotocol = "{_PROTOCOLS[case.split("-")[1]]}"\nnodes = {n}\n[privacy]\ndelta = {_DELTA}\n'
    laps = 1 if case == "ring-histogram" else 3
    return plan_run(parse_spec(head + _SPECS[case].format(laps=laps, hops=100 * n), None), n, 1, None)


def claims(case: str, n: int) -> dict[str, float]:
    """Return epsilon by each kind of account, without infinite ones."""
    run = _run(case, n)
    if case == "ring-histogram":
        found, said = {"sound": _next_to_the_first(run), "local": 0.4}, published(run, _DELTA)
    else:
        all_claims = claims_a_priori(run, _DELTA, (), one_value=True).claims
        sound = [one for one in all_claims if one.bound and not one.method.startswith("published")]
        found = {
            name: min(one.epsilon_max or 0.0 for one in sound if one.observer == observer)
            for name, observer in (("sound", "node"), ("local", "network"))
        }
        said = [one for one in all_claims if one.method.startswith("published")]
    for one in said:
        if isinstance(one, Claim) and one.epsilon_max is not None:
            first = one.method.endswith("_v1")
            found["published-first" if first else "published" if one.bound else "published-no-bound"] = one.epsilon_max
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _next_to_the_first(run: RunPlan) -> float:
    """Return user 0's epsilon among the first uniform elements alone: later observers see more reports with it."""
    plan = run.plan
    epsilon_0 = randomized_response.epsilon_of(plan.noise.scale, plan.noise.categories)
    kind = Kind(0, plan.dummies)
    return float(upper_epsilons(epsilon_0, plan.noise.categories, [{kind: 1}], _DELTA)[0])


def divergences(n: int) -> dict[str, float]:
    """Return means over pairs at order 2 on a regular graph: 2 mu^2 / 2 with mu^2 the exposure."""
    found = account("walk_any_graph", {
        "graph": "regular", "degree": _DEGREE, "n": n, "hops": 100 * n, "sigma": 1.0, "alpha": 2.0, "seed": SEED,
    }).outputs  # fmt: skip
    head = f'[run]\nprotocol = "walk.sum"\nnodes = {n}\nseed = {SEED}\n[graph]\nkind = "regular"\ndegree = {_DEGREE}\n'
    text = f'{head}[walk]\norder = "random"\nhops = {100 * n}\n{_GAUSSIAN}\n{_UNIFORM}\n[privacy]\ndelta = {_DELTA}\n'
    run = plan_run(parse_spec(text, None), n, 1, None, sampler="seeded")
    sums = []
    for walk in range(_WALKS):
        path = path_of(run, 0, np.random.Generator(np.random.Philox(key=[SEED, walk])))[0]
        for observer in range(n):
            gap, user = seen_by(path, observer)
            sums.append(float(exposures(gap, user, np.ones(len(gap)), n).sum()) / (n - 1))
    return {"sound": float(np.mean(sums)), "published-no-bound": found["epsilon_mean"], "local": found["epsilon_local"]}


def _pieces(setting: Setting) -> list[Piece]:
    sizes = nodes(setting)
    found = [
        Piece(case, partial(claims, case, sizes[case]), {"n": sizes[case], "spec": text})
        for case, text in reversed(_SPECS.items())
    ]
    n = sizes["graph-sgd"]
    return [*found, Piece("graph-sgd", partial(divergences, n), {"n": n, "seed": SEED, "walks": _WALKS})]


def _make(setting: Setting, answers: Answers) -> Made:
    sizes = nodes(setting)
    titles = {case: shown.format(n=f"{sizes[case]:,}") for case, shown in SHOWN.items()}
    table = [(case, sizes[case], name, value) for case in SHOWN for name, value in answers[case].items()]
    lines: list[Line] = []
    for case, title in titles.items():
        told = answers[case]
        for name, label in _LABELS.items():
            if name.startswith("published") and name in told:
                lines.append(
                    holds(
                        f"{title.splitlines()[0]}: {label}", f"{told['sound']:.4g}", f"{told[name]:.4g}",
                        true=told[name] >= told["sound"] * (1.0 - 1e-9),
                        why="agrees where the published number covers the sound one; no bound may do so by luck",
                    )
                )  # fmt: skip
    picture = Picture("", 7.2, 4.0, partial(_draw, answers, titles))
    return Made((Table("", ("case", "n", "account", "epsilon"), table),), tuple(lines), (picture,))


def _draw(answers: Answers, titles: dict[str, str], figure: Figure) -> None:
    axes: Any = figure.subplots()
    for row, case in enumerate(reversed(titles)):
        told = answers[case]
        axes.plot([min(told.values()), max(told.values())], [row, row], color="0.7", linewidth=1, zorder=1)
        for name, value in told.items():
            look = _LOOKS[name]
            axes.plot(
                [value], [row], color=COLOURS[look], marker=MARKERS[look], linestyle="none", markersize=7,
                label=_LABELS[name],
            )  # fmt: skip
    axes.set_yticks(range(len(titles)), list(reversed(titles.values())))
    axes.set_xscale("log")
    axes.set_ylim(-0.6, len(titles) - 0.4)
    axes.set_xlabel("privacy loss ε to one other user (δ = 1e-5); each contribution ε₀ = 0.4", loc="right")
    handles, labels = axes.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=3)


EXACT_WALKS: Final = Experiment(
    name="ours-exact-walks",
    title="what walks tell one other user: sound accounts against published ones",
    pieces=_pieces,
    make=_make,
    caption=Caption(
        shows="Dots on a logarithmic axis of the privacy loss to one other user, a line for each protocol that walks.",
        compares="Our sound accounts, published ones, and local DP, which is the ceiling for whoever sees all.",
        see="On every line the sound dot is the furthest to the left: the exact account proves less loss than"
        " published theorems print.",
        paper="The theorems of Privacy Amplification by Decentralization and of later work, on the same runs.",
        no_bound="Dots named so in the legend are no bound, although here they stand to the right of the sound ones.",
    ),
    seeds=(SEED,),
)
