"""What a node decides on behalf of its owner: which data it contributes, which runs it accepts, what these may cost.

Guarantee: the owner sees what a run costs, and `[accept]` and `[budget]` are applied, before anybody hears of the node
and again with the signed roster before the node is ready. A node that comes back to a run applies the limits that its
configuration has now. Costs are kept in its folder with a digest of all that they follow from, so that a node that
comes back, for which others wait, does not compute them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from p2pdp.core.happenings import Notify, happening
from p2pdp.core.ids import Peer
from p2pdp.core.spec import RunPart, Spec
from p2pdp.crypto.roster import Roster
from p2pdp.files.node_config import NodeConfig
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler, warm
from p2pdp.node.folder import NodeFolder
from p2pdp.peer.credentials import Credentials
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
from p2pdp.runs.accepting import (
    OwnData,
    check_accepted,
    check_neighbours,
    check_rounds,
    check_seat,
    describe,
    offered_spec,
    own_data,
    who_reads,
)
from p2pdp.runs.budgeting import NodeBudget
from p2pdp.runs.costing import OTHERS_SKELETONS, Cost, check_epsilon, rests_on_others, signed_plan, terms_of
from p2pdp.runs.reckoning import Reckoner, reckoning, rounds_of


class Member:
    """The node's decisions, on behalf of its owner."""

    def __init__(self, config: NodeConfig, folder: NodeFolder, notify: Notify, *, shares: bool) -> None:
        self._shares = shares
        self._config = config
        self._folder = folder
        self._notify = notify
        self.spec: Spec | None = None
        self._data: OwnData | None = None
        self._budget = NodeBudget(config)
        if folder.has_seat:
            self.spec = parse_spec(folder.spec_text, None)
            self._data = own_data(self.spec, config)
            check_accepted(self.spec, self._data.dimensions, config)

    def accept(self, text: str) -> bytes:
        """Shows the offered spec and checks it, before anybody hears of this node."""
        spec = offered_spec(text)
        self._data = own_data(spec, self._config)
        for line in describe(spec, self._data.dimensions, self._config.token.bootstrap_public.hex()):
            self._notify(happening("offer", text=line))
        for moved in self._data.moved:
            self._notify(happening("clipped", **asdict(moved)))
        check_accepted(spec, self._data.dimensions, self._config)
        self.spec = spec
        with reckoning() as process:
            self._consider(spec, self._data.dimensions, Reckoner(process.ask, shares=self._shares))
        if self._shares:
            self._notify(happening("offer", text=f"  --share-skeleton: {who_reads(spec)}"))
        self._folder.keep_spec(text)
        return spec_digest(spec)

    def _consider(self, spec: Spec, dimensions: int, reckoner: Reckoner) -> None:
        offered = reckoner.offer(spec, dimensions)
        if offered is None:
            text = (
                "What this run costs follows from a graph that only bootstrap knows now; it is shown once it is signed."
            )
            self._notify(happening("offer", text=text))
            return
        check_rounds(offered.rounds, self._config)
        costs = kept_costs(self._folder, _terms(offered.terms, reckoner), reckoner.costs)
        self._show(spec, costs, f"What a run of {spec.run.nodes} nodes would cost this node at most, by observer:")
        charge = self._budget.consider(spec, reckoner)
        if charge is not None:
            self._notify(happening("offer", text=f"  its budget would be charged with {charge}"))

    def _show(self, spec: Spec, costs: Sequence[Cost], title: str) -> None:
        """Shows them to the owner, then refuses what is above the owner's limits."""
        self._notify(happening("offer", text=title))
        for cost in costs:
            self._notify(happening("cost", text=cost.text, **cost.to_json()))
        if rests_on_others(spec, costs):
            self._notify(happening("offer", text=f"  {OTHERS_SKELETONS}"))
        check_epsilon(costs, self._config)

    def admit(self, credentials: Credentials) -> None:
        """Also of a node that comes back: its limits may have changed, and what it has contributed is less than all."""
        assert self.spec is not None
        assert self._data is not None
        spec, facts = self.spec, dict(credentials.roster.facts)
        check_seat(credentials, spec, self._data, self._config)
        run = signed_plan(spec, facts)
        check_neighbours(credentials, run)
        check_rounds(rounds_of(run), self._config)
        with reckoning() as process:
            reckoner = Reckoner(process.ask, shares=self._shares)
            costs = signed_costs(self._folder, run, facts, reckoner)
            self._show(spec, costs, f"What this run of {run.n} nodes costs this node at most, by observer:")
            self._budget.reserve(spec, credentials.roster, reckoner)
        if spec.noise.sampler == "exact":
            for mechanism in run.plan.mechanisms:
                warm(mechanism)
        self._folder.take_seat(credentials.roster, credentials.me)
        self._notify(happening("seat", user=credentials.me, n=credentials.roster.n))

    def run(self) -> RunPart | None:
        return None if self.spec is None else self.spec.run

    def prepare(self, roster: Roster, me: Peer) -> tuple[RunPlan, Any]:
        assert self.spec is not None
        assert self._data is not None
        return plan_of_facts(self.spec, dict(roster.facts)), self._data.user(roster.n, me)

    def sampler(self) -> ExactSampler | FastSampler:
        assert self.spec is not None
        return ExactSampler() if self.spec.noise.sampler == "exact" else FastSampler()


def signed_costs(folder: NodeFolder, run: RunPlan, facts: Mapping[str, Any], reckoner: Reckoner) -> list[Cost]:
    """What the run of these signed facts costs; facts for which costs are kept were checked then."""

    def computed() -> list[Cost]:
        reckoner.sign(run.spec, facts)
        return reckoner.costs()

    return kept_costs(folder, _terms(terms_of(run), reckoner), computed)


def _terms(terms: str, reckoner: Reckoner) -> str:
    return f"{terms} shared" if reckoner.shares else terms


def kept_costs(folder: NodeFolder, terms: str, computed: Callable[[], list[Cost]]) -> list[Cost]:
    """From the folder if they were computed before, which may take seconds."""
    kept = folder.kept_costs(terms)
    if kept is not None:
        return [Cost.from_json(one) for one in kept]
    costs = computed()
    folder.keep_costs(terms, [one.to_json() for one in costs])
    return costs
