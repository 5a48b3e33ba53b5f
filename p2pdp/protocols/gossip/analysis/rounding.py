"""The effect of the rounding of a run's states on its claims: `privacy/rounding.py` for what really happened.

The scale of a user's dithers is that of its recorded draw, and so is the scale of noise on messages. Gradients that
are affine in the state, as those of a mean, are released under the noise of the plan, which the caller compares with
the records.

Where messages were late, lost or skipped, or the graph changed, no formula gives the course of an error in a state.
So the user's machine is run again as in `player.py`, with `Blur`s in place of values: an upper bound for how far
rounding moved each message, given all that came to the user. What came in errs by half a step of its grid, every
operation of floats adds its rounding, and every return to the fine grid makes one error of it all, which goes on
linearly from there, with its sign. An upper bound for the error of a message is the sum of their sizes. Old errors of
which next to nothing is left are counted into the one that the next return makes, without their signs, so a replay
takes time in proportion to the rounds: a message counts the errors of its last rounds only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from p2pdp.auditor.context import AuditContext
from p2pdp.core.arrays import Floats
from p2pdp.core.draws import DITHER, Mechanism, Shape
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import FINISHED, OUT
from p2pdp.ledger.records import (
    CLOSED,
    OPENED,
    RECEIVED,
    SENT,
    Contents,
    carries_message,
    carries_value,
    packed_message,
    public_message,
)
from p2pdp.mechanisms import dither
from p2pdp.privacy.descent_rounding import floats_of_mean
from p2pdp.privacy.rounding import PAIR_ERROR, errors, shift
from p2pdp.protocols.gossip.plan import EXCHANGE, SKIPPED, AveragingPlan, GossipPlan
from p2pdp.protocols.gossip.sgd import GossipSgdPlan
from p2pdp.protocols.learning import ROWS_MAX
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.player import CutShort, Player
from p2pdp.topology.graphs import Graph

_SAID: Final = (
    "float rounding moves what was sent by at most {:.1e} deviations of its noise in all; twice that is in mu"
)
_IN_RANGE: Final = "accelerated states stay within 2^51 steps of their grid although messages were late or lost"
_ERROR_MOST: Final = 1e100
_LEFT_OUT: Final = SKIPPED, OUT
_NO_DITHER: Final = "some user's messages carry no dither, so that their last bits may tell anything"


@dataclass(frozen=True)
class Rounding:
    """The effect of rounding: `nu` as in the accounting, and the assumptions that it rests on."""

    nu: float
    assumptions: tuple[str, ...]

    def added_to(self, mu: Floats, mu_local: float) -> Floats:
        """Return mu with rounding, for pairs with a leak; the leak of the user's noised value is the most."""
        with np.errstate(invalid="ignore"):
            return np.where(mu > 0.0, np.maximum(mu, np.minimum(mu + 2.0 * self.nu, mu_local)), mu)


def rounding_of(context: AuditContext, graph: Graph | None) -> Rounding:
    """Return the rounding of a run of gossip; `graph` is the one on which all of its rounds were, if there is one."""
    plan: Any = context.run.plan
    if plan.noise.name == "none":
        return Rounding(0.0, ())
    squares = 0.0
    regular = _is_regular(context, graph)
    for user, drawn in context.transcript.draws.items():
        contents = context.views.get(user)
        if not is_user(user) or contents is None or not contents.records:
            continue
        dithered, noised = (
            _squares_on_graph(plan, graph, user, published=_publishes(contents))
            if regular and graph is not None
            else _squares_of_pairs(context, contents)
            if not plan.in_rounds
            else _squares_of_machine(context, user, contents)
        )
        scales = _scales(plan, drawn)
        for square, scale in ((dithered, scales[0]), (noised, scales[1])):
            if square and scale == 0.0:
                return Rounding(math.inf, (_NO_DITHER,))
            squares += square / scale**2 if square else 0.0
        if plan.learns:
            squares += plan.gradients * _square_of_gradient(plan, math.sqrt(dithered + noised))
    late = () if regular or not plan.in_rounds or plan.gamma == 1.0 else (_IN_RANGE,)
    return _rounding(plan, squares, *late)


def foreseen(run: RunPlan, graph: Graph) -> Rounding:
    """Return the rounding of a run without delay, on a fixed graph, from the draws of its plan."""
    plan: GossipPlan = run.plan
    if plan.noise.name == "none" or plan.dither is None:
        return Rounding(0.0, ())
    scales = _scales(plan, [one for one in plan.mechanisms if one is not plan.noise])
    squares = 0.0
    for user in range(run.n):
        found = _squares_on_graph(plan, graph, user, published=plan.publishes(user))
        squares += sum(square / scale**2 for square, scale in zip(found, scales, strict=True) if square)
    return _rounding(plan, squares)


def at_most(run: RunPlan) -> Rounding:
    """Return a bound on the rounding of any run of this plan, whatever is late or lost.

    Weights that are used add up to between 0 and 1, whichever messages come, so an error is multiplied by at most 1
    before acceleration. Each round adds at most the errors that `rounding_of` counts.
    """
    plan: Any = run.plan
    if plan.noise.name == "none" or plan.dither is None:
        return Rounding(0.0, ())
    scales = _scales(plan, [one for one in plan.mechanisms if one is not plan.noise])
    assumptions: tuple[str, ...] = ()
    if plan.in_rounds:
        sent, last = _growing(plan.rounds, plan.gamma, plan.degree_max)
        sent *= run.n * (1 if plan.message_noise is None else plan.degree_max)
        assumptions = () if plan.gamma == 1.0 else (_IN_RANGE,)
    else:
        sent, last = run.exchanges * PAIR_ERROR**2, PAIR_ERROR**2
    results = run.n * last * (plan.publish != "none")
    squares = sent / scales[plan.message_noise is not None] ** 2 + results / scales[0] ** 2
    return Rounding(shift(squares, math.prod(plan.shape), plan.fine, 1.0), assumptions)


@lru_cache(maxsize=64)
def _growing(rounds: int, gamma: float, degree: int) -> tuple[float, float]:
    """Return the sum of the squared errors of what a user sends in all rounds, and that of its last state, in steps."""
    fresh = gamma * (4.0 + degree / 2.0) + 3.0
    error, before, squares = 1.0, 0.0, 0.0
    for _ in range(rounds):
        squares += error * error
        error, before = gamma * error + (gamma - 1.0) * before + fresh, error
        if error > _ERROR_MOST:
            return math.inf, math.inf
    return squares, error * error


def _square_of_gradient(plan: GossipSgdPlan, error: float) -> float:
    """Return the squared error of each gradient that is affine in a state with at most this error, in its own noise.

    A gradient goes to the nearest step of the grid, after the floats of a mean over rows. Of gradients that are not
    affine nothing is claimed beyond what all of them disclose under their own noise, whatever floats do.
    """
    descent = plan.descent
    rows = min(descent.batch or ROWS_MAX, ROWS_MAX)
    floats = floats_of_mean(descent.dimension, descent.clip, rows) / math.sqrt(descent.dimension)
    return (((plan.step / 2.0 + floats) / plan.fine + error) / (plan.noise.scale * plan.step)) ** 2


def _rounding(plan: AveragingPlan, squares: float, *stated: str) -> Rounding:
    nu = shift(squares, math.prod(plan.shape), plan.fine, 1.0)
    return Rounding(nu, (_SAID.format(nu), *stated))


def _scales(plan: AveragingPlan, drawn: Sequence[Mechanism]) -> tuple[float, float]:
    """Return lower bounds on the deviations of a user's dithers and of its noise on messages, in data units."""
    dithers = [one.scale for one in drawn if one.name == DITHER]
    others = [one.scale for one in drawn if one.name != DITHER] if plan.message_noise is not None else []
    return min(dithers, default=0.0) * plan.fine, min(others, default=0.0) * plan.step


def _is_regular(context: AuditContext, graph: Graph | None) -> bool:
    """Return whether every user took part in every round with all of its neighbours."""
    plan = context.run.plan
    if graph is None or not plan.in_rounds or plan.coin is not None or context.transcript.unknown:
        return False
    whole = all(context.is_at_hand(user) for user in range(context.run.n))
    return whole and not any(_says_skipped(contents) for contents in context.views.values())


def _says_skipped(contents: Contents) -> bool:
    """Return whether a message says that somebody was left out; messages are unpacked only if one may say so."""
    seen = [one for one in contents.records if carries_message(one)]
    packed = b"".join([packed_message(one) for one in seen])
    return any(word.encode() in packed for word in _LEFT_OUT) and any(
        public_message(one).type in _LEFT_OUT for one in seen
    )


def _sent(contents: Contents, kind: str) -> Iterable[Any]:
    for record in contents.records:
        if record.kind == SENT and carries_message(record) and public_message(record).type == kind:
            yield record


def _publishes(contents: Contents) -> bool:
    return any(one.body.receiver == CURATOR and carries_value(one) for one in _sent(contents, FINISHED))


def _squares_on_graph(plan: Any, graph: Graph, user: Peer, *, published: bool) -> tuple[float, float]:
    """Return sums of squares of errors, in steps, of messages with a dither only and of those with message noise."""
    degree = graph.degree(user)
    near = graph.neighbours[user]
    kappa = sum(plan.weight(degree, graph.degree(other)) for other in near)
    blocks = plan.gradients if plan.learns else 1
    sizes = errors(kappa, degree, plan.gamma, plan.block or plan.rounds, blocks)
    squares = float(np.sum(sizes[:-1] ** 2)) if degree else 0.0
    # The mean of a learner's models errs by as much as they do, and by its own sums.
    last = float(sizes.max()) + blocks / 4.0 + 2.0 if blocks > 1 else float(sizes[-1])
    last_squares = last**2 * published
    return (last_squares, squares * degree) if plan.message_noise is not None else (squares + last_squares, 0.0)


def _squares_of_pairs(context: AuditContext, contents: Contents) -> tuple[float, float]:
    square = PAIR_ERROR**2
    exchanged = square * sum(1 for _ in _sent(contents, EXCHANGE))
    last = square * _publishes(contents)
    return (last, exchanged) if context.run.plan.message_noise is not None else (exchanged + last, 0.0)


def _squares_of_machine(context: AuditContext, user: Peer, contents: Contents) -> tuple[float, float]:
    plan = context.run.plan
    exchanged = last = 0.0
    for kind, error in errors_sent(context.run, user, contents):
        if kind == EXCHANGE:
            exchanged += (error / plan.fine) ** 2
        else:
            last += (error / plan.fine) ** 2
    return (last, exchanged) if plan.message_noise is not None else (exchanged + last, 0.0)


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
    """The present sizes of errors from number `first` on, and of those since the last return to the grid."""

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
            return self  # a number that is the same in both worlds
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
    """Inputs without errors: values and gradients are the same in both worlds, once states are given."""

    def __init__(self, errors: _Errors, count: int) -> None:
        self._errors = errors
        self.count = count
        self.made, self.models, self.randomized = 0, {}, {}  # type: ignore[var-annotated]

    def zero(self) -> Blur:
        return self._errors.zero()

    def start(self) -> Blur:
        return self._errors.zero()

    def contribution(self, visit: int) -> Blur:
        return self._errors.zero()

    def gradient(self, model: Blur, visit: int, rows: Blur | None = None) -> Blur:
        return self._errors.zero()


class _Blurring(Player):
    def __init__(self, run: RunPlan, user: Peer, contents: Contents) -> None:
        plan: Any = run.plan
        self._errors = _Errors(plan.fine / 2.0)  # everything stays below 2^52 steps
        super().__init__(run, user, contents)

    def _symbols(self, user: Peer, values: int) -> Any:
        return _Inputs(self._errors, values)

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        super().noise(mechanism, shape)
        return np.zeros(dither.SEED_SHAPE, dtype=np.int64) if mechanism.name == DITHER else self._errors.zero()

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> Any:
        super().pair(peer, number, mechanism, shape)
        return self._errors.zero()

    def came(self) -> Any:
        record = self.records[self.cursor]
        from_user = record.kind == RECEIVED and is_user(record.body.sender)
        return self._errors.zero(self._errors.rounding) if from_user else None


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
