"""Steps of descent whose users are drawn uniformly and in secret: a bound on what all models tell, for any loss.

Guarantee: `known(k)` and `averaged` are at least what T steps tell of a user, where replacing the user moves its noised
gradient by `ratio` standard deviations at most, and whoever looks sees every model but of all steps knows only
k of the user's to be the user's. A step whose user was drawn from `others` in secret is a Gaussian on a sample of one,
so its curve is at most delta'(ln(1 + (e^eps - 1)/others)) = delta(eps)/others in both directions [BBG18,
Theorem 2]; a step that is known to be the user's is a Gaussian. All compose adaptively as losses on a
grid (`privacy/pld`). A user's gradient must depend on nothing but the model and its own examples, not on its
visits so far.
The draws must be independent also given all else that is seen: a curator's are; those of a token show in its times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.privacy.gaussian_curve import gaussian_deltas
from p2pdp.privacy.pld.crossing import crossing
from p2pdp.privacy.pld.losses import Curve, from_curves
from p2pdp.privacy.pld.sums import Composed, compose

_GRID: Final = 1024  # steps of the grid within the losses that count
_FAR: Final = 1e-6  # of delta: what all losses beyond the grid's end may weigh together
_EPSILON_MAX: Final = 5000.0
RATIO_MAX: Final = 16.0  # beyond it a step that is known tells more than is worth counting


class SampledSteps:
    """`steps` are hidden ones; ratios above `RATIO_MAX` give infinity."""

    def __init__(self, ratio: float, others: int, steps: int, delta: float) -> None:
        self._mu = np.array(ratio)
        self._others = others
        self._steps = steps
        self._delta = delta
        self._told = ratio > RATIO_MAX
        self.known = cache(self._known)
        self._composed = cache(self._compose)

    def _known(self, k: int) -> float:
        """Return epsilon where k steps are known to be the user's."""
        if self._told:
            return math.inf
        if self._steps + k == 0:
            return 0.0
        return self._composed(k, self._delta).epsilon_upper(self._delta)

    def averaged(self, chances: Sequence[float]) -> float:
        """Return epsilon if k steps are known to be the user's with chance `chances[k]`; chances left out are lost."""
        left = self._delta - max(0.0, 1.0 - math.fsum(chances))
        if self._told or left <= 0.0:
            return math.inf
        parts = [
            (chance, self._composed(k, _decade(left / chance))) for k, chance in enumerate(chances) if chance > 0.0
        ]

        def told(epsilon: float) -> float:
            return math.fsum(chance * part.delta_upper(epsilon) for chance, part in parts)

        return crossing(told, left, _EPSILON_MAX)[1] if told(_EPSILON_MAX) <= left else math.inf

    def _compose(self, k: int, delta: float) -> Composed:
        cut = _FAR * self._delta / (self._steps + k)
        hidden, seen = _end(self._hidden, cut), _end(self._seen, cut) if k else 1.0
        width = min(1.0, (hidden if self._steps else seen) / _GRID)
        parts = []
        if self._steps:
            parts.append((from_curves(self._hidden, self._hidden, width, hidden), self._steps))
        if k:
            parts.append((from_curves(self._seen, self._seen, width, seen), k))
        return compose(parts, delta)

    def _hidden(self, epsilons: Floats) -> Floats:
        inner = np.logaddexp(math.log(self._others) + np.log(np.maximum(np.expm1(epsilons), 1e-300)), 0.0)
        return np.asarray(gaussian_deltas(inner, self._mu) / self._others)

    def _seen(self, epsilons: Floats) -> Floats:
        return np.asarray(gaussian_deltas(epsilons, self._mu))


def _decade(delta: float) -> float:
    """Return a delta near enough for a composition to be exact there, and the same one for many questions."""
    return min(0.1, 10.0 ** math.floor(math.log10(delta)))


def _end(curve: Curve, cut: float) -> float:
    """Return a loss beyond which no more than this is left."""
    end = 1e-6
    while float(curve(np.array([end]))[0]) > cut:
        end *= 1.3
    return end
