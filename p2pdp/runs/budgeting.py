"""What a run is charged with to those who take part, and whether it fits what they allow.

A run is charged before it takes place, by the best sound claim a priori (`audit.beforehand`) for each observer that the
owner has in mind, and of these observers the one who learns most. Such a claim rests on facts that bootstrap signed:
the number of users, the graph's digest, and the spec. A charge has to hold whatever happens afterwards. On random walks
and for shuffling what others do, are late with, or leave undone by being excluded, changes how much is hidden, so there
a charge is what the node itself enforces (`audit.enforced`) or the local ceiling, whoever the observer is. Models and
published formulas that are no bound are never charged by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from p2pdp.audit.beforehand import beforehand, covers
from p2pdp.audit.enforced import enforced_limit
from p2pdp.audit.estimates import cost_of
from p2pdp.core.claims import Claim, Method, Observer
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.spec import DataPart, Spec
from p2pdp.core.words import observer_name
from p2pdp.crypto.roster import Roster
from p2pdp.files.node_config import NodeConfig
from p2pdp.files.reading import read_bytes
from p2pdp.node.budget import BudgetLedger, Charge, Limit, Offers
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.runs.costing import CLASSES

if TYPE_CHECKING:
    from p2pdp.runs.reckoning import Reckoner

_PURE: Final = ("laplace", "randomized_response", "privunit")
_SHARES: Final = (0.1, 0.2, 0.5, 1.0)  # of the owner's delta that a run may take, the least that fits
_ROUNDED_DOWN: Final = 1.0 - 1e-12


def charge_of(run: RunPlan, observer: str, delta: float | None = None) -> tuple[Charge, str]:
    """What is charged for a run, at the spec's delta if no other is given, and against whom, in words.

    `Refused` where nothing finite can be.
    """
    delta = run.spec.privacy.delta if delta is None else delta
    assert delta is not None
    claims = _lasting(run, delta)
    best = {one: _best(claims, one) for one in CLASSES[observer]}
    worst = max(best, key=lambda one: _epsilon(best[one]))
    if _epsilon(best[worst]) == math.inf:
        raise Refused(
            f"no budget allows that {observer_name(worst)} could learn everything about some user, as in this run"
        )
    against = _against(worst, best[worst])
    chosen = [claim for claim in best.values() if claim is not None]
    mus = [claim.mu_max for claim in chosen if claim.mu_max is not None]
    if len(mus) == len(chosen):
        return Charge(mu_squared=max(mus) ** 2 * (1.0 + 1e-12)), against
    deltas = [_delta(run, claim) for claim in chosen]
    return Charge(epsilon=_epsilon(best[worst]), delta=max(deltas)), against


def _lasting(run: RunPlan, delta: float) -> list[Claim]:
    """The claims that hold whoever is late or excluded."""
    limit = enforced_limit(run, delta)
    if limit is not None:
        return [limit]
    found = beforehand(run, delta, run.spec.privacy.colluders, one_value=False).claims
    return run.protocol.analysis().lasting(found)


def _against(observer: Observer, claim: Claim | None) -> str:
    if claim is None or claim.observer == observer:
        return observer_name(observer)
    charged = observer_name(claim.observer)
    return f"{observer_name(observer)} (charged as for {charged}, which holds whatever other users do)"


def _best(claims: Sequence[Claim], observer: Observer) -> Claim | None:
    fitting = [claim for claim in claims if covers(claim, observer)]
    return min(fitting, key=_epsilon, default=None)


def _epsilon(claim: Claim | None) -> float:
    return math.inf if claim is None or claim.epsilon_max is None else claim.epsilon_max


def _delta(run: RunPlan, claim: Claim) -> float:
    """What of a claim's delta is needed: of pure mechanisms only what estimates from the data took before."""
    if claim.method != Method.LOCAL or run.plan.noise.name not in _PURE:
        return claim.delta
    cost = cost_of(run.spec)
    return 0.0 if cost is None else cost.delta


def limits_of(spec: Spec) -> list[Limit]:
    """What the spec itself allows."""
    if spec.privacy.budget is None:
        return []
    assert spec.privacy.delta is not None
    return [Limit("[privacy] budget", spec.privacy.budget, spec.privacy.delta)]


def check_local(run: RunPlan) -> None:
    """For runs all of whose users are here: nothing but the spec limits them."""
    limits = limits_of(run.spec)
    if limits:
        try:
            charge, against = charge_of(run, Observer.NETWORK)
        except Refused as refused:
            raise Refused(
                f"[privacy] budget: {refused}; a local run counts what {observer_name(Observer.NETWORK)} could learn"
            ) from None
        for limit in limits:
            limit.check((), charge, against)


class NodeBudget:
    """What one node's owner allows. Where the configuration has no `[budget]`, the spec alone sets a limit."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._own = config.budget

    def consider(self, spec: Spec, reckoner: Reckoner) -> Charge | None:
        """Before the node enrols: whether the offered run fits. Gives what it would cost, if there is a limit."""
        limits = self._limits(spec)
        if not limits:
            return None
        if self._own is None:
            return self._within(reckoner, limits)
        found, against = self._charge(reckoner, self._own.observer)
        offers = self._offers(reckoner, found)
        return BudgetLedger(self._own.ledger).check(data_names(self._config.data), offers, limits, against)

    def reserve(self, spec: Spec, roster: Roster, reckoner: Reckoner) -> None:
        """Once the roster is checked, before the node is ready: charges the claim for who really takes part.

        A run that was charged before, to which this node comes back, is neither charged nor computed again.
        """
        limits = self._limits(spec)
        if not limits:
            return
        if self._own is None:
            reckoner.sign(spec, dict(roster.facts))
            self._within(reckoner, limits)
            return
        name = f"{roster.run_id.hex()} {self._config.identity.public.hex()}"
        ledger = BudgetLedger(self._own.ledger)
        if ledger.holds(name):
            return
        reckoner.sign(spec, dict(roster.facts))
        found, against = self._charge(reckoner, self._own.observer)
        ledger.reserve(name, data_names(self._config.data), self._offers(reckoner, found), limits, against)

    def _within(self, reckoner: Reckoner, limits: Sequence[Limit]) -> Charge:
        charge, against = self._charge(reckoner, Observer.NETWORK)
        for limit in limits:
            limit.check((), charge, against)
        return charge

    def _offers(self, reckoner: Reckoner, at_spec: Charge) -> Offers:
        """Charges in order, of which the first that fits is taken; a smaller delta goes with a larger epsilon.

        The spec's delta comes first if it is at most a tenth of the owner's, so that there is some left for other runs.
        Then come a tenth, larger shares, and all that is left.
        """
        own = self._own
        assert own is not None

        def offers(spent: Charge) -> Iterator[Charge]:
            if at_spec.delta <= _SHARES[0] * own.delta:
                yield at_spec
            if at_spec.delta > 0.0:
                left = own.delta - spent.delta
                for share in dict.fromkeys(min(share * own.delta, left) * _ROUNDED_DOWN for share in _SHARES):
                    if share > 0.0:
                        yield self._at(reckoner, own.observer, share)
            yield at_spec

        return offers

    def _at(self, reckoner: Reckoner, observer: str, delta: float) -> Charge:
        """At this delta; infinite where the run has no finite charge at it."""
        try:
            return self._charge(reckoner, observer, delta)[0]
        except (Refused, UsageError):
            return Charge(epsilon=math.inf)

    def _charge(self, reckoner: Reckoner, observer: str, delta: float | None = None) -> tuple[Charge, str]:
        try:
            return reckoner.charge(observer, delta)
        except Refused as refused:
            raise Refused(f'{self._config.path} [budget] observer: {refused}; it counts as "{observer}"') from None

    def _limits(self, spec: Spec) -> list[Limit]:
        own = self._own
        if own is None:
            return limits_of(spec)
        return [Limit(f"{self._config.path} [budget] epsilon", own.epsilon, own.delta), *limits_of(spec)]


def data_names(data: DataPart) -> tuple[str, ...]:
    """What a data set is known by: what is in the file, and where it is. Made-up data is one set for each kind."""
    if data.path is None:
        return (f"made up: {data.kind}",)
    content = blake2b(read_bytes(Path(data.path)), digest_size=32, person=b"p2pdp data set").hexdigest()
    return f"content {content}", f"file {Path(data.path).resolve()}"
