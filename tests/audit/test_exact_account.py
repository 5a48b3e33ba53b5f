from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from p2pdp.audit.auditor import audit_run
from p2pdp.audit.exact_account import exact_account
from p2pdp.audit.ground import Finding, Ground
from p2pdp.core.claims import Method
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import CURATOR
from p2pdp.core.messages import COMMON, MessageType, Rounds, Value
from p2pdp.core.step import NOTHING, Message, Send, Step
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols import protocol
from p2pdp.protocols.contract import NO_FACTS, PlanDefaults, Quiet
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.transcript import Transcript
from p2pdp.tasks.inputs import NumberInputs
from tests.support.runs import DELTA, HISTOGRAM, Run, quiet, ring, run_of, walk


def account(run: Run, *, incomplete: tuple[int, ...] = (), colluders: tuple[int, ...] = ()) -> Finding:
    return exact_account(Ground(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders))


def test_one_claim_an_observer_and_a_column_a_user() -> None:
    found = account(quiet(ring(4, 2)), colluders=(0, 2))
    assert [claim.observer for claim in found.claims] == ["node", "coalition", "curator", "public", "network"]
    assert found.mu is not None
    assert found.mu_coalition is not None
    assert np.array_equal(np.isnan(found.mu), np.eye(4, dtype=bool))
    assert np.array_equal(np.isnan(found.mu_coalition), [True, False, True, False])
    assert not found.refusals


def test_a_node_that_is_not_at_hand_is_refused_by_name_and_the_network_too() -> None:
    found = account(quiet(ring(4, 2)), incomplete=(3,), colluders=(1, 3))
    assert {(one.observer, one.method) for one in found.refusals} == {
        ("node", Method.EXACT), ("coalition", Method.EXACT), ("network", Method.EXACT),
    }  # fmt: skip
    assert found.mu is not None
    assert np.all(np.isnan(found.mu[:, 3]))


def test_noise_that_is_not_gaussian_has_no_exact_leak() -> None:
    found = account(quiet(walk(4, 8, **HISTOGRAM)))
    assert not found.claims
    assert found.mu is None
    assert all("randomized_response" in one.reason for one in found.refusals)


# A protocol that the package does not know.


@dataclass(frozen=True)
class ChainPlan(PlanDefaults):
    """What the contract asks for, and nothing of our own plans."""

    n: int
    noise: Mechanism
    grid_exponent: int
    mechanisms: tuple[Mechanism, ...]
    starts: tuple[Any, ...] = ()
    unit: float = 1.0
    draws_expected: Mapping[Any, int] = field(default_factory=dict)
    length: int = 1
    reroutes: bool = True

    def exchanges(self, edges: int) -> int:
        return self.n


class ChainMachine:
    """Sends its value with noise to the next user, once more with noise of another scale, and what came half in."""

    finished = False

    def __init__(self, plan: ChainPlan, user: int, inputs: Any) -> None:
        self._plan, self._user, self._inputs = plan, user, inputs

    def start(self, now_s: float, draws: Any) -> Step:
        if self._user:
            return NOTHING
        return self._on(None, draws)

    def receive(self, sender: int, message: Message, now_s: float, draws: Any) -> Step:
        return self._on(message.value, draws) if sender == self._user - 1 and message.fields == (1,) else NOTHING

    def _on(self, came: Any, draws: Any) -> Step:
        plan, weak = self._plan, self._plan.mechanisms[1]
        value = self._inputs.contribution(0)
        first = value + draws.noise(plan.noise, ()) + (0 if came is None else came * 3)
        again = value * 2 + draws.noise(weak, ())
        if self._user == plan.n - 1:
            return Step((Send(CURATOR, Message("finished", (), first)),))
        to = self._user + 1
        done = Send(CURATOR, Message("finished", ()))
        return Step((Send(to, Message("exchange", (2,), again)), Send(to, Message("exchange", (1,), first)), done))

    def wake(self, now_s: float, draws: Any) -> Step:
        return NOTHING

    def excluded(self, peer: int, now_s: float, draws: Any) -> Step:
        return NOTHING


class Chain(Quiet):
    """Plans and inputs of a walk, with another machine."""

    name = "walk.sum"
    messages = COMMON.plus(
        MessageType(name="exchange", routes="user -> user", meaning="a noised value", fields=Rounds, value=Value.ALWAYS)
    )

    def plan(self, spec: Any, n: int, dimensions: int, facts: Any = NO_FACTS) -> Any:
        plan = protocol("walk.sum").plan(spec, n, dimensions, facts)
        faint = plan.noise._replace(scale=plan.noise.scale / 4)
        return ChainPlan(n, plan.noise, plan.grid_exponent, (plan.noise, faint))

    def machine(self, plan: ChainPlan, user: int, neighbours: Any, inputs: Any) -> ChainMachine:
        return ChainMachine(plan, user, inputs)

    def inputs(self, plan: Any, rows: Any) -> Any:
        numbers = [int(value) for value in Grid(plan.grid_exponent).to_grid(rows.rows).reshape(-1)]
        return NumberInputs(numbers, 1), numbers

    def inputs_again(self, plan: Any, values: list[Any]) -> Any:
        return NumberInputs(values, 1)

    def check(self, plan: Any, message: Message) -> str | None:
        return None

    def publish(self, plan: Any, totals: Any) -> Any:
        return sum(totals[1:], totals[0]) if totals else None


def test_a_protocol_that_nobody_knows_gets_exact_claims_and_the_ceiling() -> None:
    def chain(run: RunPlan) -> RunPlan:
        return replace(run, protocol=Chain(), plan=Chain().plan(run.spec, 4, 1))

    run = run_of(walk(4, 8), changed=chain)
    plan = chain(run.plan)
    audit = audit_run(plan, Recorded(plan, run.contents()), [], DELTA, (0, 1))
    claims = {(claim.observer, claim.method): claim for claim in audit.claims}
    assert claims.keys() == {
        *((observer, Method.EXACT) for observer in ("node", "coalition", "curator", "public", "network")),
        ("network", "local"),
    }
    sigma, value = plan.plan.noise.scale, Ground(plan, {}, Transcript(), (), DELTA, ()).sensitivity
    both = 1 / sigma**2 + 4 / (sigma / 4) ** 2
    assert audit.mu is not None
    assert audit.mu[0, 1] == pytest.approx(value * math.sqrt(both), rel=1e-9), "both values of user 0, each noised"
    assert claims["network", "local"].mu_max == pytest.approx(value * math.sqrt(both), rel=1e-9)
    # The published sum is the last user's: user 0 stands in it with 27, the others with 9, 3 and 1, all with noise.
    most = 27 / math.sqrt(27**2 + 9**2 + 3**2 + 1)
    for observer in ("curator", "public"):
        assert claims[observer, Method.EXACT].mu_max == pytest.approx(value * most / sigma, rel=1e-9)
