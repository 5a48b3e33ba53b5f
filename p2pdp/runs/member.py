"""What a node decides on behalf of its owner: which data it contributes, which runs it accepts, what these may cost.

Guarantee: the owner sees what a run costs, and `[accept]` and `[budget]` are applied, before anybody hears of the node
and again with the signed roster before the node is ready. A node that comes back to a run applies the limits that its
configuration has now. Costs are kept in its folder with a digest of all that they follow from, so that a node that
comes back, for which others wait, does not compute them again.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from p2pdp.core.happenings import Notify, happening
from p2pdp.core.ids import Peer
from p2pdp.core.spec import RunPart, Spec
from p2pdp.crypto.roster import Roster
from p2pdp.files.node_config import NodeConfig
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.host.seat import Seat
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler, warm
from p2pdp.node.own_folder import NodeFolder
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
from p2pdp.runs.costing import Cost, check_epsilon, costs_of, offered_run, signed_run, terms_of


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
        run = offered_run(spec, self._data.dimensions)
        self._show_cost(run, f"What a run of {spec.run.nodes} nodes would cost this node at most, by observer:")
        charge = self._budget.consider(spec, self._data.dimensions)
        if charge is not None:
            self._notify(happening("offer", text=f"  its budget would be charged with {charge}"))
        if self._shares:
            self._notify(happening("offer", text=f"  --share-skeleton: {who_reads(spec)}"))
        self._folder.keep_spec(text)
        return spec_digest(spec)

    def _show_cost(self, run: RunPlan | None, title: str) -> None:
        """Shows it to the owner, then refuses what is above the owner's limits."""
        if run is None:
            text = (
                "What this run costs follows from a graph that only bootstrap knows now; it is shown once it is signed."
            )
            self._notify(happening("offer", text=text))
            return
        check_rounds(run, self._config)
        costs = kept_costs(self._folder, run)
        self._notify(happening("offer", text=title))
        for cost in costs:
            self._notify(happening("cost", text=cost.text, **cost.to_json()))
        check_epsilon(costs, self._config)

    def admit(self, seat: Seat) -> None:
        """Also of a node that comes back: its limits may have changed, and what it has contributed is less than all."""
        assert self.spec is not None
        assert self._data is not None
        check_seat(seat, self.spec, self._data, self._config)
        run = signed_run(self.spec, seat.roster)
        check_neighbours(seat, run)
        self._show_cost(run, f"What this run of {seat.roster.n} nodes costs this node at most, by observer:")
        self._budget.reserve(self.spec, seat.roster)
        if self.spec.noise.sampler == "exact":
            for mechanism in plan_of_facts(self.spec, dict(seat.roster.facts)).plan.mechanisms:
                warm(mechanism)
        self._folder.take_seat(seat.roster, seat.me)
        self._notify(happening("seat", user=seat.me, n=seat.roster.n))

    def run(self) -> RunPart | None:
        return None if self.spec is None else self.spec.run

    def prepare(self, roster: Roster, me: Peer) -> tuple[RunPlan, Any]:
        assert self.spec is not None
        assert self._data is not None
        return plan_of_facts(self.spec, dict(roster.facts)), self._data.user(roster.n, me)

    def sampler(self) -> ExactSampler | FastSampler:
        assert self.spec is not None
        return ExactSampler() if self.spec.noise.sampler == "exact" else FastSampler()


def kept_costs(folder: NodeFolder, run: RunPlan) -> list[Cost]:
    """What the run costs, from the folder if it was computed before: that may take seconds."""
    terms = terms_of(run)
    kept = folder.kept_costs(terms)
    if kept is not None:
        return [Cost.from_json(one) for one in kept]
    costs = costs_of(run)
    folder.keep_costs(terms, [one.to_json() for one in costs])
    return costs
