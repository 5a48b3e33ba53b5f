"""The linear account: the exact leak of each pair from each observer's rows, in linear protocols with Gaussian draws.

Rows over sources are expanded from the transcript, and each draw has the scale of its record; nothing depends on a
particular protocol. Leaks never exceed the local ceiling, for all that any observer sees is made of the noised
contributions.

A draw that two users share is known to an observer that holds one of its ends, and a secret draw to one that was sent
enough parts of it. Uniform masks that an observer does not know hide all combinations of rows but those in which they
cancel (`privacy/linear/masks.py`). Sources that a pair unfolds from its key, or a user from a seed, are pseudo-random:
claims name that.

Claims follow from what each pair leaks as a Gaussian, given the realised route: the worst pair and the mean of all, for
one node, a coalition, curator, public and network. This is the account of every linear protocol with Gaussian noise
that has none of its own, and the oracle of those that have one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from p2pdp.auditor.claims import gaussian_claim, members_of, views_of
from p2pdp.auditor.context import PUBLIC_ROUTE, AccountResult, AuditContext, refused
from p2pdp.auditor.pairs import Gathering, blocks_of
from p2pdp.core.arrays import Bools, Floats, Ints
from p2pdp.core.claims import Claim, Method, Name, Observer
from p2pdp.core.draws import NO_NOISE, UNIFORM
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.values import PAIR
from p2pdp.privacy.gaussian_curve import epsilon_of_each, epsilons_of
from p2pdp.privacy.linear.masks import combined
from p2pdp.privacy.linear.view import ROUNDED_UP, disjoint_leaks, general_leaks
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.contributions import Recorded
from p2pdp.replay.rows import Layout, TooLarge, stretches
from p2pdp.replay.transcript import Transcript

_INPUT, _DRAW, _UNKNOWN, _MASK = range(4)
_KINDS: Final = {"input": _INPUT, "report": _INPUT, "draw": _DRAW, PAIR: _DRAW}
_ROLES: Final = (BOOTSTRAP, CURATOR)


def ceiling(own: Sequence[Recorded]) -> float:
    """Return the leak of a user if all its contributions are seen, each with the Gaussian noise of its own."""
    total = 0.0
    for recorded in own:
        variance = sum(mechanism.scale**2 for mechanism in recorded if mechanism.name == "gaussian")
        total += 1.0 / variance if variance > 0.0 else np.inf
    return total


@dataclass(frozen=True)
class Leaks:
    """The mu^2 / sensitivity^2 of each user for one observer; NaN for members. None where it is not known."""

    values: Floats | None


class ExactAuditor:
    """Lays a transcript out once and then answers for any set of observers.

    Leaks are in steps of the grid; `unit` is one step in units of a contribution. Raises `TooLarge`.
    """

    def __init__(self, transcript: Transcript, users: int, unit: float = 1.0) -> None:
        self._transcript = transcript
        self._unit = unit
        self._users = users
        self._layout = Layout()
        self._received = {
            peer: [self._layout.place(form) for form in forms] for peer, forms in transcript.received.items()
        }
        self._totals = [self._layout.place(form) for form in transcript.seen_by_roles]
        published = transcript.published
        self._published = [self._layout.place(form) for form in published or ()]
        self._tabulate()
        self._ceiling = np.full(users, np.inf)
        for user, own in transcript.own_noise.items():
            self._ceiling[user] = ceiling(own)

    def _tabulate(self) -> None:
        """Put the terms of all chains, in order, into one table."""
        kinds, owners, others, numbers, variances, named, weights, offsets = [], [], [], [], [], [], [], [0]
        for chain in range(self._layout.chains):
            arrays = self._layout.chain(chain)
            for source in arrays.sources:
                drawn = self._transcript.mechanism(source) if source.kind in ("draw", PAIR) else NO_NOISE
                kinds.append(_MASK if drawn == UNIFORM else _KINDS.get(source.kind, _UNKNOWN))
                owners.append(source.peer)
                others.append(source.other)
                numbers.append(source.number)
                named.append(drawn is not NO_NOISE)
                variances.append((drawn.scale / self._unit) ** 2 if drawn.name == "gaussian" else 0.0)
            weights.append(arrays.weights)
            offsets.append(offsets[-1] + len(arrays.sources))
        self._kind = np.array(kinds, dtype=np.int8)
        self._owner = np.array(owners, dtype=np.int64)
        self._other = np.array(others, dtype=np.int64)
        self._number = np.array(numbers, dtype=np.int64)
        # Names of draws follow from what they are: the order of columns, hence the last digits, depend on nothing else.
        self._numbers, self._others = int(self._number.max(initial=0)) + 1, int(self._other.max(initial=0)) + 4
        names = (self._owner * self._numbers + self._number) * self._others + self._other + 3
        self._name = np.where(np.array(named, dtype=np.bool_), names, -1)
        self._variance = np.array(variances, dtype=np.float64)
        self._weight = np.concatenate(weights) if weights else np.zeros(0)
        self._offset = np.array(offsets, dtype=np.int64)
        drawn_terms = self._kind == _DRAW
        self._draws_once = len(np.unique(self._name[drawn_terms])) == np.count_nonzero(drawn_terms)
        self._last = np.zeros(len(self._kind), dtype=np.int64)

    def nodes(self, members: Sequence[Peer]) -> Leaks:
        """Return the leaks for a user, or for users who pool what they saw, know and drew."""
        placed = [form for member in members for form in self._received[member]]
        return self._leaks([*placed, *self._published], members)

    def curator(self, members: Sequence[Peer] = ()) -> Leaks:
        """Return the leaks for the curator, or for it and users who pool with it what they saw, know and drew."""
        placed = [form for member in members for form in self._received[member]]
        return self._leaks([*placed, *self._totals, *self._published], members, _ROLES)

    def public(self) -> Leaks:
        return self._leaks(self._published, ())

    def network(self) -> Leaks:
        """Return the leaks for an observer of all views, who knows nobody's inputs and draws."""
        placed = [form for forms in self._received.values() for form in forms]
        return self._leaks([*placed, *self._totals, *self._published], (), (*_ROLES, *range(self._users)))

    def _leaks(
        self, placed: Iterable[dict[tuple[int, int], float]], members: Sequence[Peer], beside: Sequence[Peer] = ()
    ) -> Leaks:
        """Return what rows tell members, who know their inputs and draws, and peers `beside` who only saw them."""
        if self._transcript.published is None:  # it belongs to every view, and what it was cannot be told
            return Leaks(None)
        forms = list(placed)
        mixed = sum(len(form) != 1 or next(iter(form.values())) != 1.0 for form in forms)
        terms = stretches(forms)
        at = self._offset[terms.chain] + terms.place
        foreign = ~np.isin(self._owner[at], members) & ~np.isin(self._other[at], members)
        known = [
            (one.peer * self._numbers + one.number) * self._others + one.other + 3
            for one in self._transcript.known_to((*members, *beside))
            if one.number < self._numbers and one.other + 3 < self._others
        ]
        foreign &= ~np.isin(self._name[at], known) if known else True
        kind, row, weight = self._kind[at], terms.row, self._weight[at] * terms.weight
        if np.any(kind == _UNKNOWN):
            return Leaks(None)
        drawn, inputs, masks = ((kind == one) & foreign for one in (_DRAW, _INPUT, _MASK))
        if np.any(masks):
            left = combined(terms.rows, row[masks], self._name[at[masks]], weight[masks])
            row, weight = left.of_row[row], weight * left.sign[row]
            leaks = self._general(left.rows, at, row, weight, drawn & (row >= 0), inputs & (row >= 0))
        elif self._draws_once and mixed <= 1 and not np.any(weight < 0.0) and self._are_distinct(at):
            leaks = disjoint_leaks(
                terms.rows,
                self._users,
                row[drawn],
                self._variance[at[drawn]] * weight[drawn] ** 2,
                row[inputs],
                self._owner[at[inputs]],
                weight[inputs],
            )
        else:
            leaks = self._general(terms.rows, at, row, weight, drawn, inputs)
        leaks = np.minimum(leaks, self._ceiling)
        leaks[list(members)] = np.nan
        return Leaks(leaks)

    def _general(self, rows: int, at: Ints, row: Ints, weight: Floats, drawn: Bools, inputs: Bools) -> Floats:
        return general_leaks(
            rows,
            self._users,
            row[drawn],
            self._name[at[drawn]],
            weight[drawn] * np.sqrt(self._variance[at[drawn]]),
            row[inputs],
            self._owner[at[inputs]],
            self._number[at[inputs]],
            weight[inputs],
        )

    def _are_distinct(self, at: Ints) -> bool:
        """Return whether no two places are equal: the later of two would overwrite the earlier one."""
        order = np.arange(len(at))
        self._last[at] = order
        return bool(np.array_equal(self._last[at], order))


class PairLeaks(Protocol):
    """The mu^2 / sensitivity^2 of each user, for any observer."""

    def nodes(self, members: Sequence[Peer]) -> Leaks: ...

    def curator(self, members: Sequence[Peer] = ()) -> Leaks: ...

    def public(self) -> Leaks: ...

    def network(self) -> Leaks: ...


def account_of_pairs(
    context: AuditContext,
    leaks_of: PairLeaks,
    method: str,
    *assumptions: str,
    rounding: float = 0.0,
    ceilings: Floats | None = None,
) -> AccountResult:
    """Return claims about every pair, a coalition, curator, public and network.

    Claims add to mu what `rounding` of floats may tell, up to the ceiling of each user where these are known.
    """
    run = context.run
    claims = PairClaims(context, method, PUBLIC_ROUTE, *assumptions, rounding=rounding, ceilings=ceilings)
    roles = {
        Observer.CURATOR: lambda: leaks_of.curator().values,
        Observer.PUBLIC: lambda: leaks_of.public().values,
        Observer.NETWORK: lambda: leaks_of.network().values,
    }
    if context.in_blocks:
        return _in_blocks(context, leaks_of, claims, method, roles)
    users = _of_users(context, leaks_of, _at_hand(context))
    views, refusals = views_of(
        context,
        method,
        lambda members: users[members[0]] if len(members) == 1 else leaks_of.nodes(members).values,
        roles,
        lambda members: leaks_of.curator(members).values,
    )
    leaks = np.full((run.n, run.n), np.nan)
    observers: list[int] = []
    for (user,), values in ((members_of(name), values) for name, values in views.get(Observer.NODE, ())):
        leaks[:, user] = values
        observers.append(user)
    mu = claims.mu(leaks)
    made: list[Claim] = []
    if run.n > 1 and observers:
        made.append(claims.claim(Observer.NODE, mu[:, observers], observers))
    finding = AccountResult(made, refusals, mu, _in_sigmas(run, leaks), claims.epsilons(mu))
    _beside_users(finding, context, claims, views, roles)
    return finding


def _in_blocks(
    context: AuditContext,
    leaks_of: PairLeaks,
    claims: PairClaims,
    method: str,
    roles: Mapping[Observer, Callable[[], Floats | None]],
) -> AccountResult:
    """Return the same claims without holding pairs."""
    gathering, users = Gathering(context.run.n, context.delta), _at_hand(context)
    known: set[Peer] = set()
    for block in blocks_of(len(users), context.run.n):
        told = [(user, values) for user, values in _of_users(context, leaks_of, users[block]).items()]
        there = [(user, values) for user, values in told if values is not None]
        if there:
            mu = claims.mu(np.stack([values for _, values in there], axis=1))
            gathering.add([user for user, _ in there], mu, claims.in_all(mu))
            known |= {user for user, _ in there}

    def view(members: Sequence[Peer]) -> Floats | None:
        """Return what colluders saw, and of a user as observer only that it is known."""
        if tuple(members) == tuple(context.colluders):
            return leaks_of.nodes(members).values
        return np.zeros(0) if members[0] in known else None

    views, refusals = views_of(context, method, view, roles, lambda members: leaks_of.curator(members).values)
    finding = AccountResult(refusals=refusals)
    if gathering.pairs:
        stated = claims.stated(Observer.NODE)
        finding.claims.append(gathering.claim(context.run.protected, method, stated))
        finding.totals = gathering.totals()
    _beside_users(finding, context, claims, views, roles)
    return finding


def _beside_users(
    finding: AccountResult,
    context: AuditContext,
    claims: PairClaims,
    views: Mapping[Observer, Sequence[tuple[Name, Floats]]],
    roles: Iterable[Observer],
) -> None:
    """Add the claims about all other observers than single users."""
    for observer in (Observer.COALITION, Observer.POOLED, *roles):
        for name, values in views.get(observer, ()):
            finding.claims.append(claims.claim(observer, claims.mu(values)[:, None], [name]))
    coalition = next((values for _, values in views.get(Observer.COALITION, ())), None)
    if coalition is not None:
        finding.mu_coalition, finding.leak_coalition = claims.mu(coalition), _in_sigmas(context.run, coalition)
        finding.epsilon_coalition = claims.epsilon_of_each(finding.mu_coalition)


def _at_hand(context: AuditContext) -> list[Peer]:
    return [user for user in range(context.run.n) if context.is_at_hand(user)]


def _of_users(context: AuditContext, leaks_of: PairLeaks, users: Sequence[Peer]) -> dict[Peer, Floats | None]:
    """Return what each of these users learned; None where that is not known."""

    def row(place: int) -> Floats:
        values = leaks_of.nodes(users[place : place + 1]).values
        return np.zeros(context.run.n + 1) if values is None else np.append(values, 1.0)

    rows = context.each(len(users), row)
    return {user: values[:-1] if values[-1] else None for user, values in zip(users, rows, strict=True)}


class PairClaims:
    """Turns leaks into claims by one method, at one delta."""

    def __init__(
        self,
        context: AuditContext,
        method: str,
        *assumptions: str,
        rounding: float = 0.0,
        ceilings: Floats | None = None,
    ) -> None:
        self._context = context
        self._rounding = rounding
        self._ceilings = np.full(context.run.n, math.inf) if ceilings is None else ceilings
        self._method = method
        self._delta = context.delta
        self._sensitivity = context.sensitivity
        self._assumptions = (*assumptions, *context.assumptions)

    def mu(self, leaks: Floats) -> Floats:
        return self._sensitivity * np.sqrt(leaks) * ROUNDED_UP

    def epsilons(self, mu: Floats) -> Floats:
        return epsilons_of(self._delta, self.in_all(mu))

    def epsilon_of_each(self, mu: Floats) -> Floats:
        """Return the epsilon of each user, for one observer."""
        return epsilon_of_each(self._delta, self.in_all(mu[:, None])[:, 0])

    def in_all(self, mu: Floats) -> Floats:
        """Return the mu that leaks and rounding have together; `mu` has a row per user."""
        most = self._ceilings[:, None] * ROUNDED_UP
        with np.errstate(invalid="ignore"):
            return np.where(mu > 0.0, np.maximum(mu, np.minimum(mu + self._rounding, most)), mu)

    def claim(self, observer: Observer, mu: Floats, names: Sequence[Name]) -> Claim:
        """Return the claim, with what rounding may tell; `mu` has a column for each observer in `names`."""
        stated = self.stated(observer)
        return gaussian_claim(
            self._context.run.protected, observer, self._method, self._delta, self.in_all(mu), names, stated
        )

    def stated(self, observer: Observer) -> tuple[str, ...]:
        """Return what claims about this observer rest on."""
        return (*self._assumptions, *self._context.shared(observer))


def _in_sigmas(run: RunPlan, leaks: Floats) -> Floats:
    """Return the leak in units of one contribution's own noise, as the papers state it: all or nothing without any."""
    unit = math.inf if run.plan.noise.name == "none" else run.plan.noise.scale**2
    with np.errstate(invalid="ignore"):
        return np.where(leaks == 0.0, 0.0, leaks * unit)


Rounded = tuple[float, tuple[str, ...]]  # nu, and what it rests on

OBSERVERS: Final = (Observer.NODE, Observer.CURATOR, Observer.PUBLIC, Observer.NETWORK)
_TOO_LARGE: Final = "the run is too large to write out what everybody saw: the local ceiling stands"
_FLOATS: Final = "sums are taken to be exact: what the rounding of floats tells is left out"


def exact_account(context: AuditContext, rounding: Callable[[], Rounded] | None = None) -> AccountResult:
    """Return the claims; `rounding` tells what the rounding of a run's numbers adds to them, where that is known."""
    run, transcript = context.run, context.transcript
    if transcript.models:
        return AccountResult()  # gradients depend on what was sent
    recorded = [own for contributions in transcript.own_noise.values() for own in contributions]
    others = {mechanism for noise in transcript.noise.values() for mechanism in noise.others}
    named = {mechanism.name for drawn in (*recorded, others) for mechanism in drawn} - {"gaussian"}
    if named:
        return refused(OBSERVERS, Method.EXACT, f"{min(named)} noise has no exact Gaussian leak")
    try:
        leaks = ExactAuditor(transcript, run.n, run.plan.unit)
    except TooLarge:
        return refused(OBSERVERS, Method.EXACT, _TOO_LARGE)
    if rounding is not None:
        nu, beside = rounding()
        return account_of_pairs(context, leaks, Method.EXACT, *beside, rounding=2.0 * nu)
    return account_of_pairs(context, leaks, Method.EXACT, *((_FLOATS,) if run.plan.unit != 1.0 else ()))
