"""Dithered states of gossip and of walks that learn: each is put on a public grid, with fresh noise on top.

States are kept on the *fine grid*, whose step is so small that every state that can occur is a float of its own and
differences of states are exact. Every state that is sent gets noise of `mechanisms/dither.py`, a whole number of
steps, so nothing below the grid is sent and the last bits of a state are never seen. A user's messages of one round
carry one state, so they share one dither: users who pool their views have nothing to average. If the spec adds
noise to messages (`message_sigma`), which is fresh for each message and much larger, each message also has a dither
of its own: noise drawn in steps of its own, coarser grid would let the last bits through. Published states are
dithered too. The user's own state stays clean.

A model that walks (`walk/sgd.py`) gets a dither at every step, even if it stays with its user: the next step starts
from the value that would have been sent, so rounding errors do not add up over the steps, no clean model is kept
anywhere, and staying changes nothing about a model.

A run without noise of the users' own (`mechanism = "none"`) has no dither: whatever is sent counts as disclosed,
and sums stay exact to the last bit.

A user draws one seed, once, and expands it into all dithers that it needs; the seed is recorded like any draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

from p2pdp.core.draws import Draws, Mechanism, Shape
from p2pdp.core.values import LinearForm, snapped
from p2pdp.mechanisms import dither
from p2pdp.mechanisms.grid import NOISE_TAIL

REACH_BITS: Final = 51
"""States are below 2^51 steps and their differences below 2^52; a float holds all whole numbers up to 2^53."""

SHORT_BITS: Final = 39
"""The same for states that are sent in five bytes a number. A dither is then 2^-17 of their range."""

_SHORT_ROOM: Final = 1.0 + 2.0**-11  # so that a state with its dither, below 2^27 steps, stays below 2^39

GAUSSIAN_TAIL: Final = 12.0
"""In deviations: what a normal variable exceeds with a chance below 4e-33."""
MODEL_BITS: Final = 46
"""Models that walk are below 2^46 steps, so that the float errors of one step of descent are well below a step."""

_HALFWAY: Final = 1.5 * 2.0**52
"""In steps: floats within 2^51 steps of it are the whole numbers of steps, and sums round to the nearest of them."""

_BLOCK_NUMBERS: Final = 1024  # expanded at a time
_BLOCK_DRAWS: Final = 128


@dataclass(frozen=True)
class Reach:
    """The range of states, which they leave with negligible probability only.

    A plain state is a weighted mean of the users' values: within `values` except for noise, whose deviation is `sigma`
    at most, with `shared` for noise of pairs; what of that is taken back comes in later. Noise on messages adds up over
    `rounds`. Accelerated states are polynomials of symmetric weights that are
    nowhere above 1 on the spectrum: rows of length 1 at most, whose entries add up to sqrt(n) at most. Terms that enter
    later, such as noise on messages, grow by up to 1 / (2 - gamma).
    """

    values: float
    sigma: float
    message_sigma: float
    rounds: int
    n: int
    gamma: float = 1.0
    shared: float = 0.0

    def dithering(self, noise: Mechanism, *, short: bool = False) -> dict[str, Any]:
        """Return the fields of a plan that say what dither there is; states may be sent in fewer bytes."""
        if noise.name == "none":
            return {}
        tail = NOISE_TAIL if noise.name == "laplace" else GAUSSIAN_TAIL
        late = GAUSSIAN_TAIL * self.message_sigma * math.sqrt(self.rounds + 1.0) / (2.0 - self.gamma)
        late += GAUSSIAN_TAIL * self.shared / (2.0 - self.gamma)
        plain = self.values + tail * math.hypot(self.sigma, self.shared) + late
        reach = plain * (math.sqrt(self.n) if self.gamma != 1.0 else 1.0)
        return dithers(reach * _SHORT_ROOM, SHORT_BITS) if short else dithers(reach, REACH_BITS)


def dithers(reach: float, bits: int) -> dict[str, Any]:
    """Return the fields of a plan whose states are below so many bits of steps of the fine grid."""
    return {"dither": dither.MECHANISM, "fine_exponent": math.frexp(reach)[1] - bits}


class Dithered(Protocol):
    """The dithers of a plan, in steps of the grid `fine`, for states of `shape`; None stands for no dither."""

    @property
    def dither(self) -> Mechanism | None: ...

    @property
    def fine(self) -> float: ...

    @property
    def shape(self) -> Shape: ...


class Dithers:
    """The dithers of one user; `offset` is added to each of their numbers."""

    def __init__(self, plan: Dithered, offset: float = 0.0) -> None:
        self._public = plan
        self._offset = offset
        self._seed: Any = None
        self._counter = 0
        self._left: list[Any] = []  # expanded and not used yet, in data units, the next one last

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._counter} blocks)"

    def settled(self, state: Any) -> Any:
        """Return the state on the fine grid."""
        return state if self._public.dither is None else snapped(state, self._public.fine)

    def dithered(self, state: Any, draws: Draws) -> Any:
        """Return a settled state with a dither that nothing else has."""
        if self._public.dither is None:
            return state
        dithers = self._next(draws, isinstance(state, LinearForm))
        return state if dithers is None else state + dithers

    def _next(self, draws: Draws, is_form: bool) -> Any:
        """Return the dithers of one state; None for a form, since independent noise can only reduce its leak."""
        if self._seed is None:
            assert self._public.dither is not None
            self._seed = draws.noise(self._public.dither, dither.SEED_SHAPE)
        if is_form:
            return None
        self.prepare()
        return self._left.pop()

    def prepare(self) -> None:
        """Unfold the dithers of the next states, once there is a seed."""
        if self._left or self._seed is None:
            return
        shape, fine = self._public.shape, self._public.fine
        size = math.prod(shape)
        count = max(1, min(_BLOCK_DRAWS, _BLOCK_NUMBERS // size))
        steps = dither.unfolded(self._seed, self._counter, count * size).reshape(count, *shape)
        block = steps * fine
        block += self._offset
        self._left = list(block) if shape else block.tolist()
        self._counter += 1


class DitheredModels(Dithers):
    """The dithers of one user's models on a walk: each is put on the grid and dithered at once, at the end of its step.

    The number that is added to a model together with the dither, and then subtracted, is so large that floats next to
    it are whole steps.
    """

    def __init__(self, plan: Dithered) -> None:
        self._halfway = _HALFWAY * plan.fine
        super().__init__(plan, -self._halfway)
        self._is_bare = plan.dither is None

    def left(self, state: Any, draws: Draws) -> Any:
        if self._is_bare:
            return state
        dithers = self._next(draws, isinstance(state, LinearForm))
        if dithers is None:
            return state
        found = state + self._halfway
        found += dithers
        return found
