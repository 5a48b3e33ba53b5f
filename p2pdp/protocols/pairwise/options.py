"""The section `[pairwise]`: its keys, their meaning, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p2pdp.core.readers import Whole, one_of
from p2pdp.core.spec import Spec
from p2pdp.protocols.options import Options, Rules

UNIFORM_MASKS: Final = "uniform"
GAUSSIAN_MASKS: Final = "gaussian"
SHARES: Final = "shares"


@dataclass(frozen=True, slots=True)
class PairwisePart:
    """The values of `[pairwise]`."""

    masks: str = UNIFORM_MASKS
    survivors_min: int | None = None
    settle: str = SHARES


def settles(spec: Spec) -> bool:
    """Return whether masks of users that are gone are taken out of the sum."""
    return bool(spec.options.settle == SHARES)


def all_needed(spec: Spec) -> bool:
    """Return whether a single missing mask would leave nothing of the sum."""
    return not settles(spec) and bool(spec.options.masks == UNIFORM_MASKS)


def survivors_min(spec: Spec, n: int) -> int:
    """Return how many users have to be left among the n that take part."""
    if spec.options.survivors_min is not None:
        return min(n, int(spec.options.survivors_min))
    return n if all_needed(spec) else -(-2 * n // 3)


def gaussian_masks(spec: Spec) -> bool:
    return bool(spec.options.masks == GAUSSIAN_MASKS)


OPTIONS: Final = Options(
    section="pairwise",
    part=PairwisePart,
    readers={
        "masks": one_of(UNIFORM_MASKS, GAUSSIAN_MASKS),
        "survivors_min": Whole(1, 10_000_000),
        "settle": one_of(SHARES, "none"),
    },
    rules=Rules(
        only={"noise.pair_sigma": (gaussian_masks, 'only masks = "gaussian" have a standard deviation.')},
        needed={"noise.pair_sigma": (gaussian_masks, 'masks = "gaussian" need their standard deviation.')},
        possible=(
            (
                "pairwise.survivors_min",
                lambda s: (s.options.survivors_min or 1) <= (s.run.min_nodes or s.run.nodes),
                lambda s: f"must not be above the {s.run.min_nodes} users with whom the run begins.",
            ),
            (
                "pairwise.survivors_min",
                lambda s: not all_needed(s) or s.options.survivors_min in (None, s.run.nodes),
                lambda s: (
                    'uniform masks that are not settled leave no sum if anybody is gone; give settle = "shares" or '
                    f"the {s.run.nodes} nodes of [run]."
                ),
            ),
            (
                "privacy.colluders_max",
                lambda s: s.privacy.colluders_max < survivors_min(s, s.run.min_nodes or s.run.nodes),
                lambda _: "somebody among survivors_min users has to be left who does not collude.",
            ),
        ),
    ),
    meaning="Protocol `pairwise.sum` only.",
    meanings={
        "masks": (
            "What two neighbours share: uniform bits, which hide a value from whoever does not know them, or Gaussian "
            "noise of `pair_sigma`, which hides it less and is small if it stays in the sum."
        ),
        "survivors_min": "Least number of users whose values are in the sum; by default two thirds, rounded up.",
        "settle": (
            'How the masks of users that are gone leave the sum: `"shares"` spreads a secret of each user among its '
            'neighbours; with `"none"` masks stay in the sum, which takes Gaussian masks or that nobody is gone.'
        ),
    },
)
