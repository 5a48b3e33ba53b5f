"""[CB20, Figure 2b]: losses of a real sum on walks that took place, mean, best and worst over pairs.

Drawn are the paper's recipe (`accounting.published_walks`), which is no bound, and what is: the hidden path given each
observer's own view, upper and lower end, which enclose what is told. Local privacy is shown by the paper's composition
and by the Gaussian curve. All pairs of all walks; of the largest number of users the hidden path is
worked out for some walks only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.accounting.composition import advanced
from p2pdp.accounting.gaussian_curve import epsilons_of
from p2pdp.accounting.hidden_path.complete import complete_graph
from p2pdp.experiments import walk_losses, walks
from p2pdp.experiments.contract import Answers, Experiment, Made, Piece, Setting, holds, unknown
from p2pdp.experiments.published_walks import pair_losses
from p2pdp.experiments.walk_losses import Account

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


def _pieces(setting: Setting) -> list[Piece]:
    return walk_losses.pieces(setting, losses, {"delta": walks.SOUND_DELTA})


def _lines(setting: Setting, answers: Answers) -> list[Line]:
    last = walks.nodes(setting)[-1]
    found: list[Line] = []
    for epsilon_0 in walks.EPSILONS:
        at = {
            n: {
                account.name: walks.gathered(walk_losses.answers_of(setting, answers, n, epsilon_0), account.name)
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


def _make(setting: Setting, answers: Answers) -> Made:
    title = "Sum by a walk of T = 100 n steps: mean over pairs and walks; bars from best to worst pair"
    return walk_losses.made(setting, answers, ACCOUNTS, title, _lines(setting, answers))


EXPERIMENT: Final = Experiment(
    name="000-fig2b",
    paper="Privacy Amplification by Decentralization, figure 2b",
    title="losses of a real sum on walks that took place: the paper's recipe, and what is told",
    pieces=_pieces,
    make=_make,
    seeds=(walks.SEED,),
)
