"""The charge of a run to those who take part, and the check that it fits what they allow.

A run is charged before it takes place, by the best sound claim a priori (`auditor.a_priori`) for each observer that the
owner has in mind, and of these observers the one who learns most. Such a claim rests on facts that bootstrap signed:
the number of users, the graph's digest, and the spec. A charge has to hold whatever happens afterwards. On random walks
and in shuffling, the behaviour, lateness and exclusion of others change how much is hidden. There a charge is what the
node itself enforces (`auditor.a_priori`) or the local ceiling, whoever the observer is. Models and published formulas
that are no bound are never charged.

The computation takes scipy and memory, so a node leaves it to a process of its own (`node.helper`):

    python -m p2pdp.runs.budgeting

`Reckoning` answers in that process, and `Reckoner` asks for the node, which first names the run, as it is offered or
signed, and then puts its questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from p2pdp.auditor.a_priori import claims_a_priori, covers, enforced_limit
from p2pdp.auditor.claims import cost_of
from p2pdp.core.claims import Claim, Method, Observer
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.spec import DataPart, Spec
from p2pdp.core.words import observer_name, unit_words
from p2pdp.crypto.roster import Roster
from p2pdp.files.node_config import NodeConfig
from p2pdp.files.reading import read_bytes, read_plain
from p2pdp.files.spec import parse_spec, spec_to_toml
from p2pdp.ledger.records import read
from p2pdp.node.budget import BudgetLedger, Charge, Limit, Offers
from p2pdp.node.helper import Helper, serve
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
from p2pdp.runs.costing import CLASSES, Cost, costs_of, offered_run, signed_run, spent_of, terms_of
from p2pdp.runs.plan import check_accountable

_PURE: Final = ("laplace", "randomized_response", "privunit")
_SHARES: Final = (0.1, 0.2, 0.5, 1.0)  # of the owner's delta that a run may take, the least that fits
_ROUNDED_DOWN: Final = 1.0 - 1e-12


def charge_of(run: RunPlan, observer: str, delta: float | None = None) -> tuple[Charge, str]:
    """Return the charge of a run, by default at the spec's delta, and in words against whom.

    `Refused` where nothing finite can be.
    """
    delta = run.spec.privacy.delta if delta is None else delta
    assert delta is not None
    claims = _lasting(run, delta)
    best = {one: _best(claims, one) for one in CLASSES[observer]}
    worst = max(best, key=lambda one: _epsilon(best[one]))
    if _epsilon(best[worst]) == math.inf:
        raise Refused(f"no finite budget covers this run: {observer_name(worst)} could learn a user's value exactly")
    against = _against(worst, best[worst])
    chosen = [claim for claim in best.values() if claim is not None]
    mus = [claim.mu_max for claim in chosen if claim.mu_max is not None]
    if len(mus) == len(chosen):
        return Charge(mu_squared=max(mus) ** 2 * (1.0 + 1e-12)), against
    deltas = [_delta(run, claim) for claim in chosen]
    return Charge(epsilon=_epsilon(best[worst]), delta=max(deltas)), against


def _lasting(run: RunPlan, delta: float) -> list[Claim]:
    """Return the claims that hold whoever is late or excluded."""
    limit = enforced_limit(run, delta)
    if limit is not None:
        return [limit]
    found = claims_a_priori(run, delta, run.spec.privacy.colluders, one_value=False).claims
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
    """Return the delta that a claim needs: for pure mechanisms only what estimates from the data took before."""
    if claim.method != Method.LOCAL or run.plan.noise.name not in _PURE:
        return claim.delta
    cost = cost_of(run.spec)
    return 0.0 if cost is None else cost.delta


def limits_of(spec: Spec) -> list[Limit]:
    """Return what the spec itself allows."""
    if spec.privacy.budget is None:
        return []
    assert spec.privacy.delta is not None
    return [Limit("[privacy] budget", spec.privacy.budget, spec.privacy.delta)]


def check_local(run: RunPlan) -> None:
    """Check a run all of whose users are here: nothing but the spec limits them."""
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
    """The limits of one node's owner. Where the configuration has no `[budget]`, the spec alone sets a limit."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._own = config.budget

    def consider(self, spec: Spec, reckoner: Reckoner) -> Charge | None:
        """Check before the node enrols that the offered run fits. Return what it would cost, if there is a limit."""
        limits = self._limits(spec)
        if not limits:
            return None
        if self._own is None:
            return self._within(reckoner, limits)
        self._check_unit(spec)
        found, against = self._charge(reckoner, self._own.observer)
        offers = self._offers(reckoner, found)
        return BudgetLedger(self._own.ledger, self._own.unit).check(
            data_names(self._config.data), offers, limits, against
        )

    def reserve(self, spec: Spec, roster: Roster, reckoner: Reckoner) -> None:
        """Charge the claim for the signed participants, once the roster is checked and before the node is ready.

        A run that was charged before, to which this node comes back, is neither charged nor computed again.
        """
        limits = self._limits(spec)
        if not limits:
            return
        if self._own is None:
            reckoner.sign(spec, dict(roster.facts))
            self._within(reckoner, limits)
            return
        name = charge_name(roster.run_id, self._config)
        ledger = BudgetLedger(self._own.ledger, self._own.unit)
        if ledger.holds(name):
            return
        self._check_unit(spec)
        reckoner.sign(spec, dict(roster.facts))
        found, against = self._charge(reckoner, self._own.observer)
        ledger.reserve(name, data_names(self._config.data), self._offers(reckoner, found), limits, against)

    def _check_unit(self, spec: Spec) -> None:
        """Refuse a run whose claims are not about what the budget is of."""
        assert self._own is not None
        if spec.privacy.unit != self._own.unit:
            raise Refused(
                f"{self._config.path} [budget] unit: this run protects {unit_words(spec.privacy.unit).data}, and the "
                f'budget is of unit "{self._own.unit}"'
            )

    def _within(self, reckoner: Reckoner, limits: Sequence[Limit]) -> Charge:
        charge, against = self._charge(reckoner, Observer.NETWORK)
        for limit in limits:
            limit.check((), charge, against)
        return charge

    def _offers(self, reckoner: Reckoner, at_spec: Charge) -> Offers:
        """Return charges in order, of which the first that fits is taken; a smaller delta goes with a larger epsilon.

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
        """Return the charge at this delta; infinite where the run has no finite one."""
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


def charge_name(run_id: bytes, config: NodeConfig) -> str:
    """Return under which name this node's part of a run is charged."""
    return f"{run_id.hex()} {config.identity.public.hex()}"


def data_names(data: DataPart) -> tuple[str, ...]:
    """Return the names of a data set: its content, and where it is. Made-up data is one set for each kind."""
    if data.path is None:
        return (f"made up: {data.kind}",)
    content = blake2b(read_bytes(Path(data.path)), digest_size=32, person=b"p2pdp data set").hexdigest()
    return f"content {content}", f"file {Path(data.path).resolve()}"


_MODULE: Final = "p2pdp.runs.budgeting"


class Reckoning:
    """Answers questions about one run. Requests and answers are JSON."""

    def __init__(self) -> None:
        self._run: RunPlan | None = None
        self._signed: tuple[str, Mapping[str, Any]] | None = None

    def answer(self, request: Mapping[str, Any]) -> Any:
        facts = dict(request)
        does: dict[str, Callable[..., Any]] = {
            "offer": self._offer,
            "sign": self._sign,
            "costs": self._costs,
            "charge": self._charge,
            "spent": self._spent,
        }
        return does[facts.pop("do")](**facts)

    def _offer(self, spec: str, dimensions: int, rows: int | None) -> dict[str, Any] | None:
        offered = parse_spec(spec, None)
        check_accountable(offered)
        self._signed = None
        self._run = offered_run(offered, dimensions, rows)
        if self._run is not None:
            check_accountable(offered, self._run.plan)
        return None if self._run is None else {"terms": terms_of(self._run), "rounds": rounds_of(self._run)}

    def _sign(self, spec: str, facts: Mapping[str, Any]) -> None:
        if self._signed != (spec, facts):
            of = parse_spec(spec, None)
            check_accountable(of, plan_of_facts(of, facts).plan)
            self._run = signed_run(of, facts)
            self._signed = spec, facts

    def _named(self) -> RunPlan:
        if self._run is None:
            raise UsageError("no run was named yet")
        return self._run

    def _costs(self, shares: bool) -> list[dict[str, Any]]:
        return [one.to_json() for one in costs_of(self._named(), shares=shares)]

    def _charge(self, observer: str, delta: float | None) -> list[Any]:
        charge, against = charge_of(self._named(), observer, delta)
        return [charge.mu_squared, charge.epsilon, charge.delta, against]

    def _spent(self, user: int, ledger: str, costs: list[dict[str, Any]] | None, shares: bool) -> list[dict[str, Any]]:
        contents = read(read_plain(Path(ledger)))
        before = None if costs is None else [Cost.from_json(one) for one in costs]
        return [one.to_json() for one in spent_of(self._named(), user, contents, before, shares=shares)]


def rounds_of(run: RunPlan) -> int:
    """Return the rounds that a node may limit; 0 where there are none."""
    return run.protocol.rounds(run.plan)


@dataclass(frozen=True)
class Offered:
    """The facts of an offered run before any roster; `terms` is the digest that its costs follow from."""

    terms: str
    rounds: int


class Reckoner:
    """Asks a `Reckoning` with `ask`, by a `Helper` or in the same process. `shares`: see `costing.costs_of`."""

    def __init__(self, ask: Callable[[Mapping[str, Any]], Any], *, shares: bool = False) -> None:
        self._ask, self.shares = ask, shares

    def offer(self, spec: Spec, dimensions: int, rows: int | None = None) -> Offered | None:
        """Name the run of all `nodes`, each with so many rows; None where its graph is not known yet."""
        found = self._ask({"do": "offer", "spec": spec_to_toml(spec), "dimensions": dimensions, "rows": rows})
        return None if found is None else Offered(**found)

    def sign(self, spec: Spec, facts: Mapping[str, Any]) -> None:
        """Name the run of a signed roster; `Refused` where facts that follow from its graph are not those signed."""
        self._ask({"do": "sign", "spec": spec_to_toml(spec), "facts": dict(facts)})

    def costs(self) -> list[Cost]:
        return [Cost.from_json(one) for one in self._ask({"do": "costs", "shares": self.shares})]

    def charge(self, observer: str, delta: float | None = None) -> tuple[Charge, str]:
        """Ask for the answer of `budgeting.charge_of`."""
        *charge, against = self._ask({"do": "charge", "observer": observer, "delta": delta})
        return Charge(*charge), against

    def spent(self, user: int, ledger: Path, costs: Sequence[Cost] | None = None) -> list[Cost]:
        """Ask for the answer of `costing.spent_of`."""
        before = None if costs is None else [one.to_json() for one in costs]
        asked = {"do": "spent", "user": user, "ledger": str(ledger.absolute()), "costs": before, "shares": self.shares}
        return [Cost.from_json(one) for one in self._ask(asked)]


def reckoning() -> Helper:
    """Return the process, which starts with the first question; the caller closes it."""
    return Helper(_MODULE, "what this run costs")


if __name__ == "__main__":
    serve(Reckoning().answer)
