"""[CB20, Figure 2c]: losses of a histogram on walks that took place, by amplification by shuffling.

The paper's recipe charges a gap of m reports with what m shuffled reports tell; in place of the bounds of 2019 that it
names stands the one by clones (Feldman, McMillan and Talwar 2021), which is less for any randomizer. No bound comes of
it, for what a user reports twice in a gap is left out. Sound are the losses of k-ary randomized response in the gaps
of an observer who is taken to know the path (`accounting.blanket_losses`), and the local ceiling.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.accounting.composition import advanced, optimal
from p2pdp.accounting.shuffle.krr import clones
from p2pdp.accounting.shuffle.several import Kind, kinds_of, upper_epsilons
from p2pdp.core.arrays import Floats, Ints
from p2pdp.experiments import walk_losses, walks
from p2pdp.experiments.contract import Answers, Experiment, Made, Piece, Setting, holds, unknown
from p2pdp.experiments.published_walks import pair_losses
from p2pdp.experiments.walk_losses import Account

if TYPE_CHECKING:
    from p2pdp.experiments.contract import Line

CATEGORIES: Final = 10
ACCOUNTS: Final = (
    Account("local", "local DP, the paper's composition", 0),
    Account("recipe", "network DP, the paper's recipe (no bound)", 2),
    Account("local-sound", "local DP, sound (δ = 1e-5)", 7),
    Account("sound", "network DP, sound, path known (δ = 1e-5)", 1),
)
_OBSERVERS: Final = 5  # of each walk, for the sound account: the first users after user 0


def losses(n: int, walk: int, epsilon_0: float) -> dict[str, dict[str, float]]:
    path = walks.path(n, walk)
    visits = np.bincount(path, minlength=n).tolist()
    composed = [min(k * epsilon_0, advanced(epsilon_0, k, walks.DELTA)) for k in visits]
    local = {k: optimal(epsilon_0, k, walks.SOUND_DELTA) for k in set(visits) if k}

    @cache
    def together(size: int) -> float:
        return clones(epsilon_0, size, walks.DELTA)[1]

    watching = [user for user in range(1, n) if user <= _OBSERVERS]
    sound = np.concatenate([_seen(path, n, observer, epsilon_0) for observer in watching])
    return {
        "local": walks.spread(np.array(composed)),
        "local-sound": walks.spread(np.array([local.get(k, 0.0) for k in visits])),
        "recipe": walks.spread(pair_losses(path, n, together, walks.DELTA)),
        "sound": walks.spread(sound),
    }


def _seen(path: Ints, n: int, observer: int, epsilon_0: float) -> Floats:
    """What one observer is told of each other user, the gap after its last visit included."""
    gap, user = walks.seen_by(path, observer)
    kinds: list[Counter[Kind]] = [Counter() for _ in range(n)]
    sizes = np.bincount(gap)
    reports, counts = np.unique(gap * n + user, return_counts=True)
    for place, count in zip(reports.tolist(), counts.tolist(), strict=True):
        kinds[place % n].update(kinds_of(count, int(sizes[place // n]) - count, 0))
    others = [one for one in range(n) if one != observer]
    return upper_epsilons(epsilon_0, CATEGORIES, [kinds[one] for one in others], walks.SOUND_DELTA)


def _pieces(setting: Setting) -> list[Piece]:
    return walk_losses.pieces(setting, losses, {"delta": walks.SOUND_DELTA, "categories": CATEGORIES})


def _lines(setting: Setting, answers: Answers) -> list[Line]:
    found: list[Line] = []
    for epsilon_0 in walks.EPSILONS:
        gains = []
        for n in walks.nodes(setting):
            each = walk_losses.answers_of(setting, answers, n, epsilon_0)
            recipe, local, sound, plain = (
                walks.gathered(each, name) for name in ("recipe", "local", "sound", "local-sound")
            )
            assert recipe is not None and local is not None and sound is not None and plain is not None  # noqa: PT018
            gains.append((n, local[0] / recipe[0], plain[0] / sound[0]))
        for what, place, why in (("by the recipe", 1, "clones' bound for a gap"), ("soundly", 2, "path known")):
            shown = ", ".join(f"{gain[place]:.2g} at n = {gain[0]}" for gain in gains)
            found.append(
                holds(
                    f"mean gain over local DP {what}, epsilon_0 = {epsilon_0:g}", shown,
                    '"also significant for these two tasks" (section 5.2)',
                    true=gains[-1][place] > 1.5, why=f"{why}; above 1.5 at the largest n",
                )
            )  # fmt: skip
    found.append(
        unknown(
            "the curve's points", "see the table",
            "the paper prints no number of this figure, and neither epsilon_0 nor the number of categories "
            f"({CATEGORIES} here)",
        )
    )  # fmt: skip
    return found


def _make(setting: Setting, answers: Answers) -> Made:
    title = "Histogram by a walk of T = 100 n steps: mean over pairs and walks; bars from best to worst pair"
    return walk_losses.made(setting, answers, ACCOUNTS, title, _lines(setting, answers))


EXPERIMENT: Final = Experiment(
    name="000-fig2c",
    paper="Privacy Amplification by Decentralization, figure 2c",
    title="losses of a histogram on walks that took place, by amplification by shuffling",
    pieces=_pieces,
    make=_make,
    seeds=(walks.SEED,),
)
