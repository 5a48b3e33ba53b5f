"""How far rounding can have moved what one user sent, given all that came to it: its own machine, run over errors.

Where messages were late, lost or skipped, or the graph changed, no formula says how an error in a state goes on. So
the user's machine is run again as in `player.py`, with `Blur`s in place of values: what came in errs by half a step of
its grid, every operation of floats adds its rounding, and every return to the fine grid makes one error of it all,
which goes on linearly from there, with its sign. An upper end for the error of a message is the sum of their sizes.
Old errors of which next to nothing is left are counted into the one that the next return makes, without their signs,
so a replay takes time in proportion to the rounds: a message counts the errors of its last rounds only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.draws import DITHER, Mechanism, Shape
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import FINISHED
from p2pdp.ledger.records import CLOSED, OPENED, RECEIVED, Contents
from p2pdp.mechanisms import dither
from p2pdp.protocols.gossip.messages import EXCHANGE
from p2pdp.protocols.gossip.plan import AveragingPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.player import CutShort, Player

_LITTLE: Final = 2.0**-40
"""In steps of the grid: parts up to here lose their signs."""


class _Errors:
    """Counts the errors of one user; `rounding` is that of one operation of floats."""

    def __init__(self, rounding: float) -> None:
        self.count = 0
        self.rounding = rounding

    def zero(self, fresh: float = 0.0) -> Blur:
        return Blur(self, self.count, np.zeros(0), fresh)


class Blur:
    """Errors from number `first` on, each with what became of it, and those since the last return to the grid."""

    __slots__ = ("errors", "first", "fresh", "parts")
    __array_ufunc__ = None

    def __init__(self, errors: _Errors, first: int, parts: Floats, fresh: float) -> None:
        self.errors = errors
        self.first = first
        self.parts = parts
        self.fresh = fresh

    @property
    def size(self) -> float:
        return float(np.abs(self.parts).sum()) + self.fresh

    def __add__(self, other: Any) -> Blur:
        if not isinstance(other, Blur):
            return self  # a number that both worlds have alike
        first, parts = _sum(self, other)
        return Blur(self.errors, first, parts, self.fresh + other.fresh + self.errors.rounding)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Blur:
        return self + other * -1.0 if isinstance(other, Blur) else self

    def __mul__(self, factor: float) -> Blur:
        size = abs(factor)
        return Blur(self.errors, self.first, self.parts * factor, size * (self.fresh + 2.0 * self.errors.rounding))

    __rmul__ = __mul__

    def __truediv__(self, step: float) -> _Steps:
        return _Steps(self, step)


def _sum(one: Blur, other: Blur) -> tuple[int, Floats]:
    if not len(one.parts) or not len(other.parts):
        some = one if len(one.parts) else other
        return some.first, some.parts
    first = min(one.first, other.first)
    found = np.zeros(max(one.first + len(one.parts), other.first + len(other.parts)) - first)
    for blur in (one, other):
        found[blur.first - first : blur.first - first + len(blur.parts)] += blur.parts
    return first, found


class _Steps:
    """A blurred value on its way onto a grid: `core.values.snapped` divides, rounds and multiplies."""

    def __init__(self, blur: Blur, step: float) -> None:
        self._blur, self._step = blur, step

    def round(self) -> _Steps:
        return self

    def __mul__(self, step: float) -> Blur:
        blur, errors = self._blur, self._blur.errors
        sizes = np.abs(blur.parts)
        large = (sizes > _LITTLE * self._step).nonzero()[0]
        gone = int(large[0]) if len(large) else len(sizes)
        first = blur.first + gone if len(large) else errors.count
        found = np.zeros(errors.count + 1 - first)
        found[: len(sizes) - gone] = blur.parts[gone:]
        found[-1] = blur.fresh + float(sizes[:gone].sum()) + self._step / 2.0
        errors.count += 1
        return Blur(errors, first, found, 0.0)


class _Inputs:
    """Values and gradients are the same in both worlds, once states are given."""

    def __init__(self, errors: _Errors) -> None:
        self._errors = errors
        self.made, self.models, self.randomized = 0, {}, {}  # type: ignore[var-annotated]

    def zero(self) -> Blur:
        return self._errors.zero()

    def contribution(self, visit: int) -> Blur:
        return self._errors.zero()

    def gradient(self, model: Blur, visit: int) -> Blur:
        return self._errors.zero()


class _Blurring(Player):
    def __init__(self, run: RunPlan, user: Peer, contents: Contents) -> None:
        plan: AveragingPlan = run.plan
        self._errors = _Errors(plan.fine / 2.0)  # everything stays below 2^52 steps
        super().__init__(run, user, contents)

    def _symbols(self, user: Peer, values: int) -> Any:
        return _Inputs(self._errors)

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        super().noise(mechanism, shape)
        return np.zeros(dither.SEED_SHAPE, dtype=np.int64) if mechanism.name == DITHER else self._errors.zero()

    def came(self) -> Any:
        record = self.records[self.cursor]
        told = record.kind == RECEIVED and is_user(record.body.sender)
        return self._errors.zero(self._errors.rounding) if told else None


def errors_sent(run: RunPlan, user: Peer, contents: Contents) -> Iterator[tuple[str, float]]:
    """Yield the type and the error of each value that the user sent, in data units; one for each that is its own.

    The caller owes records that the replay found to follow from the protocol.
    """
    player = _Blurring(run, user, contents)
    last: Any = None
    while player.cursor < len(player.records):
        if player.records[player.cursor].kind in (OPENED, CLOSED):
            player.cursor += 1
            continue
        try:
            sent = player.run_event(player.event(player.came()))
        except CutShort:
            return
        for _, message in sent:
            if message.type in (EXCHANGE, FINISHED) and isinstance(message.value, Blur) and message.value is not last:
                last = message.value
                yield message.type, last.size
