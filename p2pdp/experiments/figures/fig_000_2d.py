"""[CB20, Figure 2d]: losses of gradient descent on walks that took place, by amplification by iteration.

As published each contribution is amplified by itself by the steps that follow it before the observer's next visit, and
the amplified ones are added up; a user's repeated contributions in one gap share that noise, so this is no bound
(`accounting.published_walks`). Sound is the account that spreads them together (`accounting.iteration_path`). Both are
read on the Gaussian curve, so that nothing but this differs, and both take the path to be known and the loss to be
convex, Lipschitz and smooth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.accounting.composition import advanced
from p2pdp.accounting.gaussian_curve import epsilons_of
from p2pdp.accounting.iteration.path import exposures
from p2pdp.experiments import walk_losses, walks
from p2pdp.experiments.contract import Answers, Experiment, Made, Piece, Setting, holds, unknown
from p2pdp.experiments.published_walks import separate_exposures
from p2pdp.experiments.walk_losses import Account

if TYPE_CHECKING:
    from p2pdp.experiments.contract import Line

ACCOUNTS: Final = (
    Account("local", "local DP, the paper's composition", 0),
    Account("published", "network DP, contributions added up (no bound)", 2),
    Account("local-sound", "local DP, sound (δ = 1e-5)", 7),
    Account("sound", "network DP, sound, path known (δ = 1e-5)", 1),
)


def losses(n: int, walk: int, epsilon_0: float) -> dict[str, dict[str, float]]:
    path = walks.path(n, walk)
    visits = np.bincount(path, minlength=n).astype(np.float64)
    mu = walks.ratio(epsilon_0)
    apart, sound = np.full((n, n), np.nan), np.full((n, n), np.nan)
    for observer in range(n):
        gap, user = walks.seen_by(path, observer)
        apart[:, observer] = separate_exposures(gap, user, n)
        sound[:, observer] = exposures(gap, user, np.ones(len(gap)), n)
    np.fill_diagonal(apart, np.nan)
    np.fill_diagonal(sound, np.nan)
    composed = np.array([min(k * epsilon_0, advanced(epsilon_0, k, walks.DELTA)) for k in visits.tolist()])
    return {
        "local": walks.spread(composed),
        "local-sound": walks.spread(epsilons_of(walks.SOUND_DELTA, mu * np.sqrt(visits))),
        "published": walks.spread(epsilons_of(walks.SOUND_DELTA, mu * np.sqrt(apart))),
        "sound": walks.spread(epsilons_of(walks.SOUND_DELTA, mu * np.sqrt(sound))),
        "missed": walks.spread(sound / np.where(apart > 0.0, apart, np.nan)),
    }


def _pieces(setting: Setting) -> list[Piece]:
    return walk_losses.pieces(setting, losses, {"delta": walks.SOUND_DELTA})


def _lines(setting: Setting, answers: Answers) -> list[Line]:
    found: list[Line] = []
    for epsilon_0 in walks.EPSILONS:
        gains, missed = [], 0.0
        for n in walks.nodes(setting):
            each = walk_losses.answers_of(setting, answers, n, epsilon_0)
            sound, plain, more = (walks.gathered(each, name) for name in ("sound", "local-sound", "missed"))
            assert sound is not None and plain is not None and more is not None  # noqa: PT018
            gains.append((n, plain[0] / sound[0]))
            missed = max(missed, more[2])
        shown = ", ".join(f"{gain:.2g} at n = {n}" for n, gain in gains)
        found += [
            holds(
                f"mean gain over local DP, soundly, epsilon_0 = {epsilon_0:g}", shown,
                '"also significant for these two tasks" (section 5.2)', true=gains[-1][1] > 1.5,
                why="above 1.5 at the largest n",
            ),
            holds(
                f"contributions may be added up, epsilon_0 = {epsilon_0:g}",
                f"mu^2 is up to {missed:.4g} times as much",
                "they are (Algorithm 4's account)", true=missed <= 1.0 + 1e-9,
                why="u, u, v: added up 1/2 + 1, in truth 2, in units of the loss of one contribution",
            ),
        ]  # fmt: skip
    found.append(unknown("the curve's points", "see the table", "the paper prints no number of this figure"))
    return found


def _make(setting: Setting, answers: Answers) -> Made:
    title = "Descent by a walk of T = 100 n steps: mean over pairs and walks; bars from best to worst pair"
    return walk_losses.made(setting, answers, ACCOUNTS, title, _lines(setting, answers))


EXPERIMENT: Final = Experiment(
    name="000-fig2d",
    paper="Privacy Amplification by Decentralization, figure 2d",
    title="losses of gradient descent on walks that took place, by amplification by iteration",
    pieces=_pieces,
    make=_make,
    seeds=(walks.SEED,),
)
