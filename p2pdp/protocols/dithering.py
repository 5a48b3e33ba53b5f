"""What leaves a user of gossip or of a walk that learns: its state on a public grid, with fresh noise on top.

States are kept on the *fine grid*, whose step is so small that every state that can occur is a float of its own and
differences of states are exact. To what is sent the noise of `mechanisms/dither.py` is added, a whole number of
steps, so nothing below the grid travels and the last bits of a state are never seen. A user's messages of one round
carry one state, so they share one dither: users who pool their views have nothing to average. Where the spec adds
noise to messages (`message_sigma`), which is fresh for each message and much larger, each has a dither of its own
besides: noise drawn in steps of its own, coarser grid would let the last bits through. What is published gets a dither
too. The user's own state stays clean.

A model that walks (`walk/sgd.py`) gets a dither at every step, also where it stays with its user: the next step starts
from what would have been sent, so errors of rounding do not add up from step to step, no clean model is kept anywhere,
and whether a model stayed changes nothing about it.

A run without noise of the users' own (`mechanism = "none"`) has no dither: whatever reaches anybody is taken to be
told there, and sums stay exact to the last bit.

A user draws one seed, once, and unfolds from it what it needs; it is recorded like any draw.
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

GAUSSIAN_TAIL: Final = 12.0
"""In deviations: what a normal variable exceeds with a chance below 4e-33."""
MODEL_BITS: Final = 46
"""Models that walk are below 2^46 steps, so that the float errors of one step of descent are well below a step."""

_HALFWAY: Final = 1.5 * 2.0**52
"""In steps: floats within 2^51 steps of it are the whole numbers of steps, and sums round to the nearest of them."""

_BLOCK_NUMBERS: Final = 1024  # that are unfolded at a time
_BLOCK_DRAWS: Final = 128


@dataclass(frozen=True)
class Reach:
    """How far states go, but for a chance that counts for nothing.

    A plain state is a weighted mean of what users put in: within `values` but for noise, whose deviation is `sigma` at
    most; noise on messages adds up over `rounds`. Accelerated states are polynomials of symmetric weights that are
    nowhere above 1 on the spectrum: rows of length 1 at most, whose entries add up to sqrt(n) at most. What comes in
    later, as noise on messages does, grows by up to 1 / (2 - gamma).
    """

    values: float
    sigma: float
    message_sigma: float
    rounds: int
    n: int
    gamma: float = 1.0

    def dithering(self, noise: Mechanism) -> dict[str, Any]:
        """Return the fields of a plan that say what dither there is."""
        if noise.name == "none":
            return {}
        tail = NOISE_TAIL if noise.name == "laplace" else GAUSSIAN_TAIL
        late = GAUSSIAN_TAIL * self.message_sigma * math.sqrt(self.rounds + 1.0) / (2.0 - self.gamma)
        plain = self.values + tail * self.sigma + late
        reach = plain * (math.sqrt(self.n) if self.gamma != 1.0 else 1.0)
        return dithers(reach, REACH_BITS)


def dithers(reach: float, bits: int) -> dict[str, Any]:
    """Return the fields of a plan whose states are below so many bits of steps of the fine grid."""
    return {"dither": dither.MECHANISM, "fine_exponent": math.frexp(reach)[1] - bits}


class Dithered(Protocol):
    """What a plan says of dithers: which, in steps of a grid of `fine`, for states of `shape`; None for no dither."""

    @property
    def dither(self) -> Mechanism | None: ...

    @property
    def fine(self) -> float: ...

    @property
    def shape(self) -> Shape: ...


class Dithers:
    """One user's dithers; to each number of them `offset` is added."""

    def __init__(self, plan: Dithered, offset: float = 0.0) -> None:
        self._public = plan
        self._offset = offset
        self._seed: Any = None
        self._counter = 0
        self._left: list[Any] = []  # unfolded and not used yet, in data units, the next one last

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
        """The dithers of one state; None for a form, since independent noise only takes away from what it tells."""
        if self._seed is None:
            assert self._public.dither is not None
            self._seed = draws.noise(self._public.dither, dither.SEED_SHAPE)
        if is_form:
            return None
        if not self._left:
            shape, fine = self._public.shape, self._public.fine
            size = math.prod(shape)
            count = max(1, min(_BLOCK_DRAWS, _BLOCK_NUMBERS // size))
            steps = dither.unfolded(self._seed, self._counter, count * size).reshape(count, *shape)
            block = steps * fine + self._offset
            self._left = list(block) if shape else block.tolist()
            self._counter += 1
        return self._left.pop()


class Leaving(Dithers):
    """One user's models on a walk: onto the grid and dithered in one, since each of them leaves its step so.

    What is added to a model and taken away again, with the dither, is so large that floats beside it are whole steps.
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
