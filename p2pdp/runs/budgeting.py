"""What a run would cost those who take part, and whether it fits what they allow.

A run is charged before it takes place, by the best sound claim a priori (`audit.beforehand`) for each observer that the
owner has in mind, and of these observers the one who learns most. Such a claim rests on facts that bootstrap signed:
the number of users, the graph's digest, and the spec. What is not among them is not used: how many values others
have, which the law of a hidden path would need, or a graph that the node cannot make again; then it is the local
ceiling. Models and published formulas that are no bound are never charged by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

from p2pdp.audit.beforehand import beforehand, covers
from p2pdp.audit.local import LOCAL
from p2pdp.core.claims import Claim
from p2pdp.core.errors import Refused, VerificationFailed
from p2pdp.core.spec import DataPart, Spec
from p2pdp.crypto.roster import Roster
from p2pdp.files.node_config import NodeConfig
from p2pdp.files.reading import read_bytes
from p2pdp.node.budget import BudgetLedger, Charge, Limit
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts, plan_run
from p2pdp.topology.graphs import make_graph

_CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    "node": ("node", "curator", "public"),
    "coalition": ("node", "coalition", "curator", "public"),
    "network": ("network",),  # who sees what all others do
}
_WORDS: Final = {
    "node": "one other user",
    "coalition": "users who collude",
    "curator": "the curator",
    "public": "everybody, from what is published",
    "network": "whoever sees all messages",
}
_RUNS: Final = 10  # that share the owner's delta, where so little of it is enough for each
_ROUNDED_DOWN: Final = 1.0 - 1e-12
NETWORK: Final = "network"  # who is thought of where nobody says it


def charge_of(run: RunPlan, observer: str, delta: float | None = None) -> tuple[Charge, str]:
    """What is charged for a run, at the spec's delta if no other is given, and against whom, in words.

    `Refused` where nothing finite can be.
    """
    delta = run.spec.privacy.delta if delta is None else delta
    assert delta is not None
    claims = beforehand(run, delta, run.spec.privacy.colluders, one_value=False).claims
    best = {one: _best(claims, one) for one in _CLASSES[observer]}
    worst = max(best.values(), key=_epsilon)
    if worst is None or _epsilon(worst) == math.inf:
        who = _WORDS[NETWORK if worst is None else worst.observer]
        raise Refused(f"no budget allows that {who} could learn everything about some user, and in this run that is so")
    chosen = [claim for claim in best.values() if claim is not None]
    mus = [claim.mu_max for claim in chosen if claim.mu_max is not None]
    if len(mus) == len(chosen):
        return Charge(mu_squared=max(mus) ** 2 * (1.0 + 1e-12)), _WORDS[worst.observer]
    deltas = [0.0 if _is_pure(run, claim) else claim.delta for claim in chosen]
    return Charge(epsilon=_epsilon(worst), delta=max(deltas)), _WORDS[worst.observer]


def _best(claims: Sequence[Claim], observer: str) -> Claim | None:
    fitting = [claim for claim in claims if covers(claim, observer)]
    return min(fitting, key=_epsilon, default=None)


def _epsilon(claim: Claim | None) -> float:
    return math.inf if claim is None or claim.epsilon_max is None else claim.epsilon_max


def _is_pure(run: RunPlan, claim: Claim) -> bool:
    """Whether the claim holds without any delta: pure mechanisms, as many as the schedule says."""
    pure = run.plan.noise.name in ("laplace", "randomized_response")
    return claim.method == LOCAL and pure and (run.finishes_one_by_one or run.plan.order == "ring")


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
            charge, against = charge_of(run, NETWORK)
        except Refused as refused:
            raise Refused(
                f"[privacy] budget: {refused}; a local run counts what {_WORDS[NETWORK]} could learn"
            ) from None
        for limit in limits:
            limit.check((), charge, against)


class NodeBudget:
    """What one node's owner allows. Where the configuration has no `[budget]`, the spec alone sets a limit."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._own = config.budget

    def consider(self, spec: Spec, dimensions: int) -> Charge | None:
        """Before the node enrols: whether a run of all `nodes` fits. Gives what it would cost, if there is a limit."""
        limits = self._limits(spec)
        if not limits:
            return None
        n = spec.run.nodes
        if spec.graph.kind != "file":
            run = plan_run(spec, n, dimensions)
        else:  # which is on bootstrap's machine
            try:
                run = plan_of_facts(spec, {"n": n, "dimensions": dimensions, "sampler": spec.noise.sampler})
            except VerificationFailed:  # it rests on what bootstrap will sign of the graph, and `reserve` is told that
                return None
        offers, against = self._offers(run)
        if self._own is None:
            for limit in limits:
                limit.check((), offers[-1], against)
        else:
            BudgetLedger(self._own.ledger).check(data_names(self._config.data), offers, limits, against)
        return offers[-1]

    def reserve(self, spec: Spec, roster: Roster) -> None:
        """Once the roster is checked, before the node is ready: charges the claim for who really takes part."""
        limits = self._limits(spec)
        if not limits:
            return
        offers, against = self._offers(_signed(spec, roster))
        if self._own is None:
            for limit in limits:
                limit.check((), offers[-1], against)
            return
        run = f"{roster.run_id.hex()} {self._config.identity.public.hex()}"
        BudgetLedger(self._own.ledger).reserve(run, data_names(self._config.data), offers, limits, against)

    def _offers(self, run: RunPlan) -> tuple[list[Charge], str]:
        """At a small part of the owner's delta, so that there is some left for other runs, else at the spec's."""
        own = self._own
        if own is None:
            return [self._charge(run, NETWORK)[0]], _WORDS[NETWORK]
        charge, against = self._charge(run, own.observer)
        part = own.delta / _RUNS * _ROUNDED_DOWN
        sparing = [self._charge(run, own.observer, part)[0]] if charge.delta > part else []
        return [*sparing, charge], against

    def _charge(self, run: RunPlan, observer: str, delta: float | None = None) -> tuple[Charge, str]:
        try:
            return charge_of(run, observer, delta)
        except Refused as refused:
            raise Refused(f'{self._config.path} [budget] observer: {refused}; it counts as "{observer}"') from None

    def _limits(self, spec: Spec) -> list[Limit]:
        own = self._own
        if own is None:
            return limits_of(spec)
        return [Limit(f"{self._config.path} [budget] epsilon", own.epsilon, own.delta), *limits_of(spec)]


def _signed(spec: Spec, roster: Roster) -> RunPlan:
    """The plan from the signed facts, with the graph if it can be made again and is the one that was signed."""
    facts = dict(roster.facts)
    run = plan_of_facts(spec, facts)
    if spec.graph.kind == "file" or spec.graph.changing:
        return run
    graph = make_graph(spec.graph, run.n, spec.run.seed or 0)
    if graph.digest.hex() == facts.get("graph"):
        return replace(run, graph=graph)
    if spec.graph.kind in ("complete", "ring"):
        raise Refused(f"the graph that bootstrap signed is not the spec's, a {spec.graph.kind} of {run.n} users")
    return run


def data_names(data: DataPart) -> tuple[str, ...]:
    """What a data set is known by: what is in the file, and where it is. Made-up data is one set for each kind."""
    if data.path is None:
        return (f"made up: {data.kind}",)
    content = blake2b(read_bytes(Path(data.path)), digest_size=32, person=b"p2pdp data set").hexdigest()
    return f"content {content}", f"file {Path(data.path).resolve()}"
