"""Bounds for each step of descent what the rounding of floats adds to what a model that walks tells, beside dithers.

Claims by iteration are about the ideal run, whose numbers are real. A step starts from the message x that came, takes
the gradient g(x) over its user's rows, adds noise, u = g(x) + noise, moves, y = P((1 - r lambda) x - r u) with P the
projection, and what leaves is m = y + z, z normal with deviation S. The next step starts from m. The noise z only
post-processes: given all z, which do not depend on data, each step is still a contraction with noise before the
projection, so amplification by iteration holds for each z, hence for the view together with all z.

The real machine (`protocols/walk/sgd.py`) does the same in floats, puts y on the fine grid, of step D, and adds k steps
of it, k being normal noise rounded to whole numbers (`mechanisms/dither.py`). Let m be the state on the grid plus
normal noise; the real message is the grid point M next to m, and the next step starts from M. Noise of gradients is
taken to be continuous, which claims list as an assumption.

Compared are the laws, on one and the same data, of the sequence of all u and m of the run, of all users and tokens, in
the order in which they come to be. Who holds a token when is independent of the data and given. Given everything
before it, the next term is normal in both runs, with the same deviation around different means:

* u has the deviation sigma of the gradient's noise, around g(x). The real run has x at the grid point next to the
  message that is given, at most half a step off in each number, so the exact gradient, whose slope is at most
  `smoothness`, is off by that times the distance; the run computes the gradient in floats; and it brings the gradient
  to the grid on which noise is drawn.
* m has the deviation S, around y. Given x and u the two runs differ by that half step, of which 1 - r lambda leaves
  more the smaller a later rate is, by the floats of one step and of its projection, which moves no two points apart,
  and by half a step for the grid.

If the means are at most E apart, the term is a Gaussian mechanism with a shift of E over its deviation. By adaptive
composition no test tells the sequences better than N(0, 1) from N(nu, 1), nu^2 being the sum of all squared shifts.
Errors do not add up from step to step, since each step starts from a message that is given: also where a token stays
with its user, for what it then goes on from carries a dither like any other.

A view is the same function of the sequence in both runs: messages are the grid points next to m; what is published is
computed from messages; what members of a coalition know of their own draws follows from their own data, which do not
differ, and from u and m at their steps; a message that is sent again is the same one; and who sends when depends on no
data. So the real view of D is told from the ideal view of D like N(0, 1) from N(nu, 1) at best, that from the ideal
view of D' like N(0, 1) from N(mu, 1) where the claim by iteration is mu, and this from the real view of D' like the
first again. Trade-off functions of normal pairs chain by adding their shifts: mu + 2 nu. It holds for users,
coalitions, curator and public alike. Beside claims that are not Gaussian stands `rounding.beside`. Nobody
learns more of a user than all of its noised gradients tell, whatever floats do, so the local ceiling stays.

Floats. One operation is off by at most U = 2^-53 of its result, a sum or product of k terms in any order by k U of the
sum of their sizes. Sizes are Euclidean lengths of vectors. Numbers of models are below `range_`, which receivers check,
and noise is below 64 deviations. Errors of second order, below 1e-3 of the first, are in `_SLACK`.

* A step: regularization times x, its sum with u, the product with the rate and the difference are four operations on
  numbers within range_ (1 + r lambda) + r (clip + 64 sigma). Shortening to the radius is off by (d/2 + 6) U of it.
* The gradient of a margin model: margins are off by d U |a| |x|, times the slope's slope and |a|, hence smoothness d U
  |x|. All else is off by multiples of U of what was clipped: limits and slopes by d/2 + 16, the mean over the rows by
  their number and 2, the last shortening by d/2 + 6. The mean of vectors has no margins: its distances are off by d/2 +
  6, as limits are. In gossip it goes by the same bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from p2pdp.mechanisms.grid import NOISE_TAIL

_U: Final = 2.0**-53
_SLACK: Final = 1.0 + 2e-3


def floats_of_mean(dimension: int, clip: float, rows: int) -> float:
    """Bound how far the mean of clipped gradients is from that of exact ones, if each is off by its own last bits."""
    return _U * (dimension + rows + 32.0) * clip


@dataclass(frozen=True)
class Steps:
    """The public facts about all steps of a run. `fine` and `coarse` are one step of the grids of models and of noise.

    `rate` is the largest, `sigma` the deviation of a gradient's noise in data units, `rows` at most how many a gradient
    is over, `radius` None where there is no projection. `own` is for an objective of the caller's own: it may project
    a model when it comes and when it leaves, each time off by `received` at most, which is assumed, and its gradients
    are taken to be off by `floats`, as ours are.
    """

    dimension: int
    fine: float
    coarse: float
    range_: float
    rate: float
    clip: float
    sigma: float
    smoothness: float
    regularization: float
    radius: float | None
    rows: int
    own: bool = False

    @property
    def received(self) -> float:
        """Bound how far a message is from the grid point that the next step starts from."""
        return math.sqrt(self.dimension) * self.fine / 2.0

    @property
    def message(self) -> float:
        """Bound how far the mean of a message may be from that of the ideal run, given all before it."""
        size = self.range_ * (1.0 + self.rate * self.regularization) + self.rate * (self.clip + NOISE_TAIL * self.sigma)
        floats = 4.0 * _U * math.sqrt(self.dimension) * size
        projected = 0.0 if self.radius is None else (self.dimension / 2.0 + 6.0) * _U * self.radius
        begun = self.received * (1.0 + self.own)
        return (2.0 * begun + floats + projected) * _SLACK

    @property
    def floats(self) -> float:
        """Bound how far a gradient that is computed in floats may be off."""
        length = math.sqrt(self.dimension) * self.range_
        margins = _U * self.smoothness * self.dimension * length
        return margins + floats_of_mean(self.dimension, self.clip, self.rows)

    @property
    def gradient(self) -> float:
        """Bound how far a noised gradient may be off."""
        snapped = math.sqrt(self.dimension) * self.coarse / 2.0
        begun = self.received * (1.0 + self.own)
        return (snapped + self.smoothness * begun + self.floats) * _SLACK

    def square(self, deviation: float) -> float:
        """Return what one step adds to nu^2, if the dither of its message has this deviation in data units."""
        return (self.message / deviation) ** 2 + (self.gradient / self.sigma) ** 2
