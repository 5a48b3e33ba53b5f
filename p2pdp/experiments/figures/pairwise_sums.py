"""The cost of a mean by each protocol at the same epsilon: local noise, gossip, a walk, pairwise noise, and a curator.

The observers are not the same. Local noise holds against everybody. Gossip without pair noise tells neighbours all that
local noise allows, so its epsilon is that of local noise in the worst pair. The walk's is against one other user,
and nobody may collude. Pairwise noise is against whoever sees every masked value and has the secrets of a tenth of the
users. The curator sees all values itself.

Amounts of pairwise noise follow from the smallest honest component that is left once colluders are placed at random.
Where users vanish, own noise is that for two thirds of all, and settled masks leave it alone in the sum; Gaussian pair
noise that is not settled stays in the sum for each edge to somebody who is gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.experiments.contract import Answers, Caption, Experiment, Line, Made, Picture, Piece, Setting, Table, holds
from p2pdp.experiments.pairwise import DELTA, SEED, SLACKS, pair_noise_of, regular
from p2pdp.experiments.style import Curve, draw_curves, name_axes
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import mask_leaks, own_sigma
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.runs.plan import costs_of
from p2pdp.runs.target import Planned, target_of
from p2pdp.topology.components import ends_of, placements, taken_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_N: Final = 256
_N_QUICK: Final = 24
_DEGREE: Final = 6
_DENSER: Final = 10  # where a third of the users may vanish
_EPSILONS: Final = (0.25, 0.5, 1.0, 2.0, 4.37717809568122, 8.0)
_EPSILONS_QUICK: Final = (1.0, 4.37717809568122)
_ONE: Final = 4.37717809568122  # the epsilon of mu = 1
_AMONG: Final = 1.0  # the epsilon of the other two panels
_DEGREES: Final = (4, 6, 10, 20)
_VISITS: Final = 10
_POINTS: Final = 16
_HEAD: Final = """
[run]
protocol = "{protocol}"
nodes = {n}
seed = {seed}
[data]
kind = "uniform"
clip = [0.0, 1.0]
[task]
kind = "mean"
[noise]
mechanism = "gaussian"
sigma = 1.0
[privacy]
delta = {delta}
"""
_GOSSIP: Final = '[graph]\nkind = "regular"\ndegree = {degree}\n[gossip]\nrounds = "auto"\naccelerated = true\n'
_WALK: Final = '[graph]\nkind = "complete"\n[walk]\norder = "random"\nhops = {hops}\n'


def _size(setting: Setting) -> tuple[int, tuple[float, ...]]:
    return (_N_QUICK, _EPSILONS_QUICK) if setting.quick else (_N, _EPSILONS)


def _run(protocol: str, n: int, text: str) -> RunPlan:
    head = _HEAD.format(protocol=protocol, n=n, seed=SEED, delta=DELTA)
    return plan_run(parse_spec(head + text, None), n, 1, None, sampler="seeded")


def walk_error(n: int, epsilon: float) -> dict[str, float]:
    """Return the error of the mean by a walk with the least noise for this epsilon against one other user."""
    run = _run("walk.sum", n, _WALK.format(hops=_VISITS * n))
    sigma = target_of(Planned(run, None, one_value=True), epsilon).value
    noisy = replace(run.spec, noise=replace(run.spec.noise, sigma=sigma))
    error = costs_of(plan_run(noisy, n, 1, None, sampler="seeded"), epsilon, DELTA).standard_error
    assert isinstance(error, float)
    return {"error": error}


def gossip_error(n: int) -> dict[str, float]:
    """Return the error of users' results by gossip with sigma = 1, whose worst pair has mu = 1."""
    error = costs_of(_run("gossip.average", n, _GOSSIP.format(degree=_DEGREE)), None, DELTA).standard_error
    assert isinstance(error, float)
    return {"error": error}


def pairwise_errors(n: int) -> dict[str, Any]:
    """Return errors of the mean for mu = 1 against a tenth of the users: with masks and with Gaussian pair noise."""
    colluders = n // 10
    away = taken_out(range(n), colluders, SEED, 0)
    gaussian_noise = pair_noise_of(n, _DEGREE, colluders, 1.0, SLACKS[0])
    sigma = own_sigma(1.0, gaussian_noise.hidden)
    return {
        "hidden": gaussian_noise.hidden,
        "mu": math.sqrt(float(np.nanmax(mask_leaks(regular(n, _DEGREE), sigma, away)))),
        "masks": sigma / math.sqrt(n),
        "gaussian": gaussian_noise.sigma / math.sqrt(n),
        "pair": gaussian_noise.pair_sigma,
    }


def against_colluders(n: int, degree: int) -> dict[str, Any]:
    """Return the error of a sum with masks over a curator's, for growing numbers of colluders: quantiles."""
    counts = sorted({round(share * n) for share in np.linspace(0.0, 0.6, _POINTS)})
    found = [np.sqrt(n / np.array(placements(regular(n, degree), count, SEED).smallest)) for count in counts]
    low, middle, high = (np.quantile(found, at, axis=1).tolist() for at in (0.1, 0.5, 0.9))
    return {"counts": counts, "low": low, "middle": middle, "high": high}


def after_vanishing(n: int) -> dict[str, Any]:
    """Return the error of the mean over the survivors for growing numbers of users that vanish."""
    mu = gaussian.mu_of_curve(_AMONG, DELTA)
    colluders, least = n // 10, math.ceil(2 * n / 3)
    random = placements(regular(n, _DENSER), n - least + colluders, SEED)
    sigma = own_sigma(mu, random.typical)
    unsettled = pair_noise_of(n, _DENSER, colluders, mu, SLACKS[0])
    heads, tails = ends_of(regular(n, _DENSER))
    counts = sorted({round(share * (n - least)) for share in np.linspace(0.0, 1.0, _POINTS)})
    found: dict[str, Any] = {"counts": counts, "typical": random.typical, "broken": random.broken}
    found |= {name: [] for name in ("settled", "unsettled", "local", "curator")}
    for count in counts:
        gone = np.zeros(n, dtype=np.bool_)
        gone[taken_out(range(n), count, SEED + 1, 0)] = True
        left, cut = n - count, int(np.count_nonzero(gone[heads] != gone[tails]))
        found["settled"].append(sigma / math.sqrt(left))
        found["unsettled"].append(math.sqrt(left * unsettled.sigma**2 + cut * unsettled.pair_sigma**2) / left)
        found["local"].append(1.0 / (mu * math.sqrt(left)))
        found["curator"].append(1.0 / (mu * left))
    return found


def _pieces(setting: Setting) -> list[Piece]:
    n, epsilons = _size(setting)
    facts = {"n": n, "seed": SEED, "degrees": [_DEGREE, _DENSER]}
    walks = [
        Piece(f"walk-{at}", partial(walk_error, n, epsilon), {**facts, "epsilon": epsilon, "visits": _VISITS})
        for at, epsilon in enumerate(epsilons)
    ]
    colluders = [
        Piece(f"colluders-{degree}", partial(against_colluders, n, degree), {**facts, "degree": degree})
        for degree in _DEGREES
    ]
    rest = {"gossip": gossip_error, "pairwise": pairwise_errors, "vanishing": after_vanishing}
    return [*walks, *colluders, *(Piece(key, partial(work, n), facts) for key, work in rest.items())]


def _errors(n: int, epsilons: Sequence[float], answers: Answers) -> dict[str, list[float]]:
    """Return the errors of the mean at each epsilon."""
    mus = [gaussian.mu_of_curve(epsilon, DELTA) for epsilon in epsilons]
    pairwise = answers["pairwise"]
    return {
        "local": [1.0 / (mu * math.sqrt(n)) for mu in mus],
        "gossip": [answers["gossip"]["error"] / mu for mu in mus],
        "walk": [answers[f"walk-{at}"]["error"] for at in range(len(mus))],
        "gaussian": [pairwise["gaussian"] / mu for mu in mus],
        "masks": [pairwise["masks"] / mu for mu in mus],
        "curator": [1.0 / (mu * n) for mu in mus],
    }


_LABELS: Final = {
    "local": "local noise (against all)",
    "gossip": "gossip (a neighbour)",
    "walk": "walk (one other user)",
    "gaussian": "Gaussian pair noise (all, 10 % collude)",
    "masks": "masks (all, 10 % collude)",
    "curator": "trusted curator",
}


def _lines(n: int, epsilons: Sequence[float], answers: Answers) -> list[Line]:
    errors, pairwise, vanishing = _errors(n, epsilons, answers), answers["pairwise"], answers["vanishing"]
    at = epsilons.index(_ONE)
    most = 0.0045 * _N / n
    named = f"n = {n}, {_DEGREE}-regular, {n // 10} colluders"
    last = {name: vanishing[name][-1] for name in ("settled", "local", "curator")}
    return [
        holds(f"{named}: error of the mean at epsilon {_ONE:.4g}", errors["masks"][at], f"at most {most:.3g}",
              true=errors["masks"][at] <= most, why=f"masks; {pairwise['hidden']} honest users hide each other"),
        holds(f"{named}: mu with that noise", pairwise["mu"], "at most 1", true=pairwise["mu"] <= 1.0 + 1e-9,
              why="from the components that are left"),
        holds("gossip over local noise, worst pair", errors["gossip"][at] / errors["local"][at],
              "gossip gains on local noise", true=errors["gossip"][at] < 0.99 * errors["local"][at],
              why="a neighbour receives the noised value itself"),
        holds("walk over local noise", errors["walk"][at] / errors["local"][at], "a walk gains on local noise",
              true=errors["walk"][at] < errors["local"][at], why=f"{_VISITS} visits a user, against one other user"),
        holds(f"a third vanish, {_DENSER}-regular, {n // 10} colluders: error over the curator's",
              last["settled"] / last["curator"], "below local noise", true=last["settled"] < last["local"],
              why=f"random placements leave the honest users unconnected in {vanishing['broken']:.1%}"),
    ]  # fmt: skip


def _make(setting: Setting, answers: Answers) -> Made:
    n, epsilons = _size(setting)
    errors, vanishing = _errors(n, epsilons, answers), answers["vanishing"]
    by_epsilon = [[epsilon, *(errors[name][at] for name in _LABELS)] for at, epsilon in enumerate(epsilons)]
    quantiles = ("low", "middle", "high")
    colluders = [
        [degree, count, *(answers[f"colluders-{degree}"][name][at] for name in quantiles)]
        for degree in _DEGREES
        for at, count in enumerate(answers[f"colluders-{degree}"]["counts"])
    ]
    names = ("settled", "unsettled", "local", "curator")
    gone = [[count, *(vanishing[name][at] for name in names)] for at, count in enumerate(vanishing["counts"])]
    tables = (
        Table("", ("epsilon", *_LABELS), by_epsilon),
        Table("colluders", ("degree", "colluders", "tenth", "median", "nine tenths"), colluders),
        Table("vanishing", ("vanished", *names), gone),
    )
    picture = Picture("", 10.0, 4.2, partial(_draw, n, epsilons, answers))
    return Made(tables, tuple(_lines(n, epsilons, answers)), (picture,))


def _draw(n: int, epsilons: Sequence[float], answers: Answers, figure: Figure) -> None:
    grid: Any = figure.subplots(1, 3)
    errors, vanishing = _errors(n, epsilons, answers), answers["vanishing"]
    draw_curves(grid[0], [Curve(_LABELS[name], epsilons, errors[name], look=at) for at, name in enumerate(_LABELS)])
    name_axes(grid[0], f"{n} users, {_DEGREE}-regular", r"$\varepsilon$, $\delta = 10^{-5}$", "error of the mean")
    for at, degree in enumerate(_DEGREES):
        told = answers[f"colluders-{degree}"]
        shown = Curve(f"degree {degree}", told["counts"], told["middle"], told["low"], told["high"], at, band=True)
        draw_curves(grid[1], [shown])
    grid[1].axhline(math.sqrt(n), color="0.4", linewidth=0.9, linestyle=":", label="local noise")
    name_axes(grid[1], "masks, bands: tenths of placements", "colluders", "error over a trusted curator's")
    labels = {"local": "local noise", "unsettled": "Gaussian, not settled", "settled": "masks, settled",
              "curator": "trusted curator"}  # fmt: skip
    looks = {"local": 0, "unsettled": 6, "settled": 4, "curator": 5}
    for name, label in labels.items():
        draw_curves(grid[2], [Curve(label, vanishing["counts"], vanishing[name], look=looks[name])])
    title = rf"$\varepsilon$ = {_AMONG:g}, {n // 10} colluders, {_DENSER}-regular"
    name_axes(grid[2], title, "users that vanish", "error of the survivors' mean")
    for axes in grid:
        axes.set_yscale("log")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    for axes in grid[1:]:
        axes.locator_params(axis="x", integer=True)
    grid[0].set_xscale("log")
    grid[0].set_xticks(epsilons, [f"{epsilon:.2g}" for epsilon in epsilons])
    grid[0].minorticks_off()


PAIRWISE_SUMS: Final = Experiment(
    name="ours-pairwise",
    title="a mean by each protocol at the same epsilon, colluders and vanishing users",
    pieces=_pieces,
    make=_make,
    caption=Caption(
        shows="Three panels with logarithmic errors: of the mean against epsilon, over a trusted curator's "
        "error against the number of colluders (bands hold eight tenths of placements), and against the "
        "number of users that vanish.",
        compares="Local noise, gossip, a walk, pair noise, masks and a trusted curator at the same epsilon, each "
        "against the observer in its name; graphs of several degrees; masks settled among survivors and "
        "not.",
        see="Pair noise and masks are next to the curator. Gossip is as local noise is, because a neighbour "
        "receives the noised value itself. Graphs of low degree break with many colluders, and unsettled "
        "noise with one vanishing user.",
        paper="What a mean costs at one epsilon; observers are not the same for all.",
    ),
    seeds=(SEED,),
)
