"""Losses on walks that took place: by the paper's recipes, and what is told.

[CB20, Figure 2b]: losses of a real sum on walks that took place, mean, best and worst over pairs.

Drawn are the paper's recipe (`experiments.walks`), which is no bound, and what is: the hidden path given each
observer's own view, upper and lower end, which enclose what is told. Local privacy is shown by the paper's composition
and by the Gaussian curve. All pairs of all walks; of the largest number of users the hidden path is
worked out for some walks only.

[CB20, Figure 2c]: losses of a histogram on walks that took place, by amplification by shuffling.

The paper's recipe charges a gap of m reports with what m shuffled reports tell; in place of the bounds of 2019 that it
names stands the one by clones (Feldman, McMillan and Talwar 2021), which is less for any randomizer. No bound comes of
it, for what a user reports twice in a gap is left out. Sound are the losses of k-ary randomized response in the gaps
of an observer who is taken to know the path (`privacy.shuffle.several`), and the local ceiling.

[CB20, Figure 2d]: losses of gradient descent on walks that took place, by amplification by iteration.

As published each contribution is amplified by itself by the steps that follow it before the observer's next visit, and
the amplified ones are added up; a user's repeated contributions in one gap share that noise, so this is no bound
(`experiments.walks`). Sound is the account that spreads them together (`privacy.iteration.path`). Both are
read on the Gaussian curve, so that nothing but this differs, and both take the path to be known and the loss to be
convex, Lipschitz and smooth.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.experiments import walks
from p2pdp.experiments.contract import Answers, Caption, Experiment, Made, Piece, Setting, holds, unknown
from p2pdp.experiments.walks import Account, pair_losses, separate_exposures
from p2pdp.privacy.composition import advanced, optimal
from p2pdp.privacy.gaussian_curve import epsilons_of
from p2pdp.privacy.hidden_path.complete import complete_graph
from p2pdp.privacy.iteration.path import exposures
from p2pdp.privacy.shuffle.krr import clones
from p2pdp.privacy.shuffle.several import Kind, kinds_of, upper_epsilons

if TYPE_CHECKING:
    from p2pdp.experiments.contract import Line

ACCOUNTS: Final = (
    Account("local", "local DP, the paper's composition", 0),
    Account("recipe", "network DP, the paper's recipe (no bound)", 2),
    Account("local-sound", "local DP, sound (δ = 1e-5)", 7),
    Account("sound", "network DP, sound upper end (δ = 1e-5)", 1),
    Account("sound-lower", "network DP, lower end (δ = 1e-5)", 3),
)
_ALL_WALKS_UP_TO: Final = 200  # users; above, hidden paths are worked out for the first walks
_SOUND_WALKS: Final = 2


def losses(n: int, walk: int, epsilon_0: float) -> dict[str, dict[str, float]]:
    path = walks.path(n, walk)
    visits = np.bincount(path, minlength=n).astype(np.float64)
    mu = walks.ratio(epsilon_0)
    composed = np.array([min(k * epsilon_0, advanced(epsilon_0, k, walks.DELTA)) for k in visits.tolist()])
    found = {
        "local": walks.spread(composed),
        "local-sound": walks.spread(epsilons_of(walks.SOUND_DELTA, mu * np.sqrt(visits))),
        "recipe": walks.spread(pair_losses(path, n, lambda m: epsilon_0 / math.sqrt(m), walks.DELTA)),
    }
    if n <= _ALL_WALKS_UP_TO or walk < _SOUND_WALKS:
        ends = complete_graph(n, walks.gaps(path, n), mu, mu, walks.SOUND_DELTA, all_lower=True)
        found |= {"sound": walks.spread(ends.upper), "sound-lower": walks.spread(ends.lower)}
    return found


def _pieces_2b(setting: Setting) -> list[Piece]:
    return walks.pieces(setting, losses, {"delta": walks.SOUND_DELTA})


def _lines_2b(setting: Setting, answers: Answers) -> list[Line]:
    last = walks.nodes(setting)[-1]
    found: list[Line] = []
    for epsilon_0 in walks.EPSILONS:
        at = {
            n: {
                account.name: walks.gathered(walks.answers_of(setting, answers, n, epsilon_0), account.name)
                or (math.nan,) * 3
                for account in ACCOUNTS
            }
            for n in walks.nodes(setting)
        }
        for how, network, local in (("by the paper's recipe", "recipe", "local"), ("soundly", "sound", "local-sound")):
            gains = {n: means[local][0] / means[network][0] for n, means in at.items()}
            shown = ", ".join(f"{gain:.2g} at n = {n}" for n, gain in gains.items())
            what = f"mean gain over local DP {how}, epsilon_0 = {epsilon_0:g}"
            text = '"significant even for small n" (section 5.2)'
            found.append(
                holds(what, shown, text, true=all(gain > 1.0 for gain in gains.values()), why="above 1 at all n")
            )
        recipe, upper, lower = (at[last][name][0] for name in ("recipe", "sound", "sound-lower"))
        found.append(
            holds(
                f"loss of a pair, mean, n = {last}, epsilon_0 = {epsilon_0:g}", f"between {lower:.3g} and {upper:.3g}",
                f'{recipe:.3g} by its recipe, called "the privacy loss" (section 5.2)', true=lower <= recipe <= upper,
                why="agrees where the recipe is between the sound ends at delta 1e-5",
            )
        )  # fmt: skip
    found.append(
        unknown(
            "the curve's points", "see the table",
            "the paper prints no number of this figure, nor its epsilon_0; 0.1 and 0.4 are those of the authors' code",
        )
    )  # fmt: skip
    return found


def _make_2b(setting: Setting, answers: Answers) -> Made:
    title = "Sum by a walk of T = 100 n steps: mean over pairs and walks; bars from best to worst pair"
    return walks.made(setting, answers, ACCOUNTS, title, _lines_2b(setting, answers))


FIGURE_2B: Final = Experiment(
    name="000-fig2b",
    title="losses of a real sum on walks that took place: the paper's recipe, and what is told",
    pieces=_pieces_2b,
    make=_make_2b,
    caption=Caption(
        shows="Curves of the privacy loss of a pair against the number of users n, both logarithmic, one panel "
        "for each epsilon of a contribution; points are means over pairs and walks, bars reach from the "
        "best to the worst pair.",
        compares="The paper's recipe for a sum on walks that took place, local DP by the paper's composition and "
        "soundly, and the sound hidden path, as an upper and a lower end.",
        see="The sound upper and lower ends lie close together and fall with n, while sound local DP stays "
        "level; the recipe falls too, from above the sound ends.",
        paper="Amplification is significant even for small n (section 5.2).",
        no_bound="The recipe charges contributions of one gap as if they were apart and leaves out the delta of "
        "single contributions, so it is no bound; sound curves stand at delta 1e-5.",
    ),
    seeds=(walks.SEED,),
)

CATEGORIES: Final = 10
ACCOUNTS_2C: Final = (
    Account("local", "local DP, the paper's composition", 0),
    Account("recipe", "network DP, the paper's recipe (no bound)", 2),
    Account("local-sound", "local DP, sound (δ = 1e-5)", 7),
    Account("sound", "network DP, sound, path known (δ = 1e-5)", 1),
)
_OBSERVERS: Final = 5  # of each walk, for the sound account: the first users after user 0


def losses_2c(n: int, walk: int, epsilon_0: float) -> dict[str, dict[str, float]]:
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
    """Return what one observer learns of each other user, the gap after its last visit included."""
    gap, user = walks.seen_by(path, observer)
    kinds: list[Counter[Kind]] = [Counter() for _ in range(n)]
    sizes = np.bincount(gap)
    reports, counts = np.unique(gap * n + user, return_counts=True)
    for place, count in zip(reports.tolist(), counts.tolist(), strict=True):
        kinds[place % n].update(kinds_of(count, int(sizes[place // n]) - count, 0))
    others = [one for one in range(n) if one != observer]
    return upper_epsilons(epsilon_0, CATEGORIES, [kinds[one] for one in others], walks.SOUND_DELTA)


def _pieces_2c(setting: Setting) -> list[Piece]:
    return walks.pieces(setting, losses_2c, {"delta": walks.SOUND_DELTA, "categories": CATEGORIES})


def _lines_2c(setting: Setting, answers: Answers) -> list[Line]:
    found: list[Line] = []
    for epsilon_0 in walks.EPSILONS:
        gains = []
        for n in walks.nodes(setting):
            each = walks.answers_of(setting, answers, n, epsilon_0)
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


def _make_2c(setting: Setting, answers: Answers) -> Made:
    title = "Histogram by a walk of T = 100 n steps: mean over pairs and walks; bars from best to worst pair"
    return walks.made(setting, answers, ACCOUNTS_2C, title, _lines_2c(setting, answers))


FIGURE_2C: Final = Experiment(
    name="000-fig2c",
    title="losses of a histogram on walks that took place, by amplification by shuffling",
    pieces=_pieces_2c,
    make=_make_2c,
    caption=Caption(
        shows="Curves of the privacy loss of a pair against the number of users n, both logarithmic, one panel "
        "for each epsilon of a contribution; points are means over pairs and walks, bars reach from the "
        "best to the worst pair.",
        compares="The paper's recipe for a histogram, with today's bound on shuffling in it; local DP by the "
        "paper's composition and soundly; and a sound account of randomized response that takes the path "
        "to be known.",
        see="The sound network curve is the lowest and falls with n, while sound local DP stays level.",
        paper="The gain is also significant for histograms (section 5.2).",
        no_bound="The recipe counts what a user reports twice in a gap once, so it is no bound; sound curves stand"
        " at delta 1e-5.",
    ),
    seeds=(walks.SEED,),
)

ACCOUNTS_2D: Final = (
    Account("local", "local DP, the paper's composition", 0),
    Account("published", "network DP, contributions added up (no bound)", 2),
    Account("local-sound", "local DP, sound (δ = 1e-5)", 7),
    Account("sound", "network DP, sound, path known (δ = 1e-5)", 1),
)


def losses_2d(n: int, walk: int, epsilon_0: float) -> dict[str, dict[str, float]]:
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


def _pieces_2d(setting: Setting) -> list[Piece]:
    return walks.pieces(setting, losses_2d, {"delta": walks.SOUND_DELTA})


def _lines_2d(setting: Setting, answers: Answers) -> list[Line]:
    found: list[Line] = []
    for epsilon_0 in walks.EPSILONS:
        gains, missed = [], 0.0
        for n in walks.nodes(setting):
            each = walks.answers_of(setting, answers, n, epsilon_0)
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


def _make_2d(setting: Setting, answers: Answers) -> Made:
    title = "Descent by a walk of T = 100 n steps: mean over pairs and walks; bars from best to worst pair"
    return walks.made(setting, answers, ACCOUNTS_2D, title, _lines_2d(setting, answers))


FIGURE_2D: Final = Experiment(
    name="000-fig2d",
    title="losses of gradient descent on walks that took place, by amplification by iteration",
    pieces=_pieces_2d,
    make=_make_2d,
    caption=Caption(
        shows="Curves of the privacy loss of a pair against the number of users n, both logarithmic, one panel "
        "for each epsilon of a contribution; points are means over pairs and walks, bars reach from the "
        "best to the worst pair.",
        compares="Amplification by iteration as published, where contributions are added up one by one, and the "
        "sound account that spreads them together; local DP by the paper's composition and soundly.",
        see="The published curve runs a little below the sound one, so it promises more than is true; both "
        "fall with n, and local DP stays level.",
        paper="The gain is also significant for gradient descent (section 5.2, Algorithm 4's account).",
        no_bound="The published account misses that a user's repeated contributions in one gap share the noise "
        "that hides them.",
    ),
    seeds=(walks.SEED,),
)
