"""Claims about descent by a walk, given the realised path: amplification by iteration, where steps contract.

Every condition is checked; if one does not hold the account refuses, and the local ceiling stands.

A token's form in a replay of `walk.sgd` is a trace of its contributions (`tasks/inputs.py`), so an observer received
moments of a path that is known step by step (`TraceAuditor`). A published mean of several models counts as if each of
them were published.

The effect of rounding (`privacy/descent_rounding.py`) is added to each claim. The scale of a user's dithers is that of
its recorded draw. If a user sent a model and drew no dither, its last bits may disclose anything, so claims by
iteration are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.auditor.context import AccountResult, AuditContext, refused, sensitivity_of, unlike_plan
from p2pdp.auditor.exact import Leaks, account_of_pairs
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.claims import Method, Observer
from p2pdp.core.draws import DITHER
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.values import GRADIENT, LinearForm
from p2pdp.privacy.descent_rounding import Steps
from p2pdp.privacy.iteration.path import exposures
from p2pdp.protocols.learning import ROWS_MAX, is_built_in
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.replay.rows import Layout, Prefix
from p2pdp.replay.transcript import UNKNOWN, Transcript

CONTRACTS: Final = (
    "no step moves two models further apart: the loss is convex and smooth, gradients are clipped such that they stay "
    "those of a convex loss, rates are at most 2/smoothness, and noise comes before the projection on a convex set"
)
SAMPLED: Final = (
    "rows of minibatches are drawn in secret, and steps over as many rows as chance has it may move models apart: only "
    "steps over all rows are accounted for by iteration"
)
PROMISED: Final = (
    "the objective is the caller's own: convex, Lipschitz and smooth as it promises to be, and it keeps no state"
)


def iteration_account(context: AuditContext) -> AccountResult:
    plan = context.run.plan
    reason = why_not(plan) or unlike_plan(context)
    rounding = reason or rounding_of(context)
    if isinstance(rounding, str):
        observers = (
            [Observer.NODE] * (context.run.n > 1)
            + [Observer.CURATOR, Observer.PUBLIC]
            + [Observer.COALITION, Observer.POOLED] * bool(context.colluders)
        )
        return refused(observers, Method.ITERATION, rounding)
    return account_of_pairs(
        context,
        TraceAuditor(context.transcript, plan),
        Method.ITERATION,
        *terms(context.run),
        *rounding.assumptions,
        rounding=2.0 * rounding.nu,
        ceilings=rounding.ceilings,
    )


def why_not(plan: SgdPlan) -> str | None:
    """Return the reason why nothing is claimed by iteration of a run of this plan, or None."""
    if plan.descent.samples:
        return SAMPLED
    return plan.descent.why_not_contracting(plan.rate)  # no later step is larger


def terms(run: RunPlan) -> tuple[str, ...]:
    """Return the assumptions of such claims besides the noise."""
    return (CONTRACTS, *(() if is_built_in(run.spec) else [PROMISED]))


@dataclass(frozen=True)
class _Chain:
    """The steps of one chain: user, per-user index, and prefix counts of known and unknown steps."""

    users: Ints
    numbers: Ints
    steps: Ints
    unknown: Ints


class TraceAuditor:
    """A transcript, laid out once to answer for any set of observers; see `pair_claims.PairLeaks`."""

    def __init__(self, transcript: Transcript, plan: SgdPlan) -> None:
        self._plan = plan
        self._published_at_all = transcript.published is not None
        layout = Layout()

        def placed(forms: Iterable[LinearForm]) -> list[Prefix]:
            return [prefix for form in forms for prefix in layout.place(form)]

        self._received = {peer: placed(forms) for peer, forms in transcript.received.items()}
        self._totals = placed(transcript.seen_by_roles)
        self._published = placed(transcript.published or ())
        self._chains = [_chain(layout, number) for number in range(layout.chains)]
        everything = [(chain.users, chain.numbers) for chain in self._chains]
        self._once = not everything or _all_differ(*(np.concatenate(parts) for parts in zip(*everything, strict=True)))
        self._rates = np.array(plan.rates)
        scale = plan.noise.scale if plan.noise.name == "gaussian" else 0.0
        self._variance = scale**2

    def nodes(self, members: Sequence[Peer]) -> Leaks:
        return self._leaks([prefix for member in members for prefix in self._received[member]], members)

    def curator(self, members: Sequence[Peer] = ()) -> Leaks:
        pooled = (prefix for member in members for prefix in self._received[member])
        return self._leaks([*self._totals, *pooled], members)

    def public(self) -> Leaks:
        return self._leaks([], ())

    def network(self) -> Leaks:
        """Return the leaks of all messages: of all steps but those of users who pass a token to themselves."""
        return self._leaks([*self._totals, *(prefix for seen in self._received.values() for prefix in seen)], ())

    def _leaks(self, seen: Iterable[Prefix], members: Sequence[Peer]) -> Leaks:
        if not self._published_at_all:  # it belongs to every view, and is unknown
            return Leaks(None)
        ends: dict[int, set[int]] = {}
        for at, end in [*seen, *self._published]:
            ends.setdefault(at, set()).add(end)
        users, numbers, rates, sizes = [], [], [], []
        for at, places in sorted(ends.items()):
            chain = self._chains[at]
            cuts = np.unique(chain.steps[[0, *sorted(places)]])
            if chain.unknown[max(places)]:
                return Leaks(None)
            users.append(chain.users[: cuts[-1]])
            numbers.append(chain.numbers[: cuts[-1]])
            rates.append(self._rates[: cuts[-1]])
            sizes += np.diff(cuts).tolist()
        if not users:
            return Leaks(self._values(np.zeros(self._plan.n), members))
        who = np.concatenate(users)
        if not self._once and not _all_differ(who, np.concatenate(numbers)):
            return Leaks(None)  # two copies of a token share noise, which the account of one path does not cover
        gap = np.repeat(np.arange(len(sizes)), sizes)
        foreign = ~np.isin(who, np.array(members, dtype=np.int64))
        totals = exposures(gap[foreign], who[foreign], np.concatenate(rates)[foreign], self._plan.n)
        return Leaks(self._values(totals, members))

    def _values(self, totals: Floats, members: Sequence[Peer]) -> Floats:
        values = np.where(totals > 0.0, np.inf, 0.0) if self._variance == 0.0 else totals / self._variance
        values[list(members)] = np.nan
        return values


def _all_differ(users: Ints, numbers: Ints) -> bool:
    names = users * (int(numbers.max(initial=0)) + 1) + numbers
    return len(np.unique(names)) == len(names)


def _chain(layout: Layout, number: int) -> _Chain:
    sources = layout.chain(number).sources
    steps = np.concatenate([[0], np.cumsum([source.kind == GRADIENT for source in sources])]).astype(np.int64)
    unknown = np.concatenate([[0], np.cumsum([source.kind == UNKNOWN for source in sources])]).astype(np.int64)
    taken = [source for source in sources if source.kind == GRADIENT]
    users = np.array([source.peer for source in taken], dtype=np.int64)
    return _Chain(users, np.array([source.number for source in taken], dtype=np.int64), steps, unknown)


NO_DITHER: Final = "user {}: its models carry no dither, so that their last bits may tell anything"
_SAID: Final = (
    "float rounding moves models and gradients by at most {:.1e} deviations of their noise in all; twice that is added"
)
_OWN: Final = (
    "the objective's own code computes gradients to within {:.1e} and projections to within {:.1e}, and leaves all "
    "numbers of a model within {:.6g}"
)


@dataclass(frozen=True)
class Rounding:
    """The effect of rounding: `nu` as in the accounting, its assumptions, and mu of all of a user's gradients."""

    nu: float
    assumptions: tuple[str, ...]
    ceilings: Floats


def rounding_of(context: AuditContext) -> Rounding | str:
    """Return the rounding of what is recorded or, of a schedule, foreseen; or the reason why there is no bound."""
    run, transcript = context.run, context.transcript
    plan: SgdPlan = run.plan
    ceilings = np.full(run.n, math.inf)
    if plan.noise.name == "none":
        return Rounding(0.0, (), ceilings)
    one, squares = steps_of(run), 0.0
    assert plan.dither is not None
    for user, drawn in transcript.draws.items():
        taken = sum(1 for mechanism in drawn if mechanism.name != DITHER)
        if not is_user(user) or not taken:
            continue
        scale = min((mechanism.scale for mechanism in drawn if mechanism.name == DITHER), default=0.0)
        noise = transcript.noise.get(user)
        if scale == 0.0 and noise is not None and (noise.own or noise.others) and user not in transcript.rebuilt:
            return NO_DITHER.format(user)
        squares += taken * one.square((scale or plan.dither.scale) * plan.fine)
    if transcript.unknown:  # users whose steps are unknown
        return _rounding(run, squares + plan.length * one.square(plan.dither.scale * plan.fine), ceilings)
    for user, noise in transcript.noise.items():
        ceilings[user] = ratio_of(run) * math.sqrt(len(noise.own))
    return _rounding(run, squares, ceilings)


def foreseen(run: RunPlan) -> Rounding:
    """Return the rounding of a run in which nobody is excluded."""
    plan: SgdPlan = run.plan
    unlimited = np.full(run.n, math.inf)
    if plan.dither is None:
        return Rounding(0.0, (), unlimited)
    return _rounding(run, plan.length * steps_of(run).square(plan.dither.scale * plan.fine), unlimited)


def ratio_of(run: RunPlan) -> float:
    """Return how far one contribution can be moved, in standard deviations of its noise; infinite without any."""
    plan = run.plan
    return sensitivity_of(run) / plan.noise.scale if plan.noise.name == "gaussian" else math.inf


def steps_of(run: RunPlan) -> Steps:
    """Return the parameters of a step; the caller owes a plan with noise, and an objective of bounded slope."""
    plan: SgdPlan = run.plan
    descent = plan.descent
    return Steps(
        dimension=descent.dimension,
        fine=plan.fine,
        coarse=descent.step,
        range_=plan.model_range,
        rate=plan.rate,
        clip=descent.clip,
        sigma=plan.noise.scale * descent.step,
        smoothness=descent.guarantees.smoothness or 0.0,
        regularization=descent.regularization,
        radius=descent.radius,
        rows=min(descent.batch or ROWS_MAX, ROWS_MAX),
        own=not is_built_in(run.spec),
    )


def _rounding(run: RunPlan, squares: float, ceilings: Floats) -> Rounding:
    nu = math.sqrt(squares)
    assumptions = [_SAID.format(nu)]
    if not is_built_in(run.spec):
        one = steps_of(run)
        assumptions.append(_OWN.format(one.floats, one.received, one.range_))
    return Rounding(nu, tuple(assumptions), ceilings)
