"""Claims follow the recorded draws, whatever the plan says: every protocol's machines, made to draw less than planned.

The ledgers record honestly what was drawn, so an audit must say what these draws are worth, or refuse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from p2pdp.auditor.audit import audit_run
from p2pdp.core.claims import Claim
from p2pdp.core.draws import Draws, Mechanism, Shape
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer
from p2pdp.files.spec import load_spec, parse_spec
from p2pdp.mechanisms import gaussian
from p2pdp.replay.evidence import Recorded
from tests.support.gossip_learners import gossip_learning
from tests.support.gossips import gossip
from tests.support.runs import DELTA, Run, run_of
from tests.support.small import ALL
from tests.support.sources import TOP

SAMPLES = {path.stem: path for path in sorted((TOP / "deploy" / "samples").glob("*.toml"))}
_SHARED = 'mechanism = "gaussian"\nsigma = 2.0\npair_sigma = 6.0'
MORE = {
    "gossip with noise on messages": gossip(5, "ring", "rounds = 3\nmessage_sigma = 0.5"),
    "noise of pairs": gossip(5, "ring", "rounds = 3", noise=_SHARED),
    "noise of pairs, randomized": gossip(5, "ring", "activations = 12", protocol="randomized", noise=_SHARED),
    "noise of pairs, learning": gossip_learning().replace("sigma = 0.8", "sigma = 0.8\npair_sigma = 2.4"),
}
NAMES = [*SAMPLES, *ALL, *MORE]
NOISE = ("gaussian", "laplace", "randomized_response")
FAINTER = 1000.0


@dataclass(frozen=True)
class FaintDraws:
    """Draws noise of a smaller scale than it is asked for; what two users share, only if both do."""

    draws: Draws
    users: frozenset[Peer]

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        faint = mechanism.name in NOISE and not (mechanism.name == NOISE[2] and mechanism.scale == 1.0)
        return self.draws.noise(mechanism._replace(scale=mechanism.scale / FAINTER) if faint else mechanism, shape)

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> Any:
        faint = mechanism.name in NOISE and peer in self.users
        return self.draws.pair(
            peer, number, mechanism._replace(scale=mechanism.scale / FAINTER) if faint else mechanism, shape
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.draws, name)


class FaintMachine:
    def __init__(self, machine: Any, users: frozenset[Peer]) -> None:
        self.machine = machine
        self.users = users

    @property
    def finished(self) -> bool:
        return bool(self.machine.finished)

    def start(self, now_s: float, draws: Draws) -> Any:
        return self.machine.start(now_s, FaintDraws(draws, self.users))

    def receive(self, sender: Peer, message: Any, now_s: float, draws: Draws) -> Any:
        return self.machine.receive(sender, message, now_s, FaintDraws(draws, self.users))

    def wake(self, now_s: float, draws: Draws) -> Any:
        return self.machine.wake(now_s, FaintDraws(draws, self.users))

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Any:
        return self.machine.excluded(peer, now_s, FaintDraws(draws, self.users))


@dataclass(frozen=True)
class FaintProtocol:
    """The same protocol, but for how much noise some users draw."""

    protocol: Any
    users: frozenset[Peer]

    def machine(self, plan: Any, user: Peer, neighbours: Any, inputs: Any) -> Any:
        machine = self.protocol.machine(plan, user, neighbours, inputs)
        return FaintMachine(machine, self.users) if user in self.users else machine

    def fast_hop(self, plan: Any, machine: Any) -> None:
        """Return that there is none: the shorter way would draw what the plan says."""

    def fast_exchange(self, plan: Any, machine: Any) -> None:
        """Return that there is none, for the same reason."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.protocol, name)


@cache
def spec_of(name: str) -> Any:
    if name in SAMPLES:
        return load_spec(SAMPLES[name])
    if name in ALL:
        return parse_spec(ALL[name], None)
    return parse_spec(MORE[name], None)


def faint(spec: Any, users: frozenset[Peer]) -> Run:
    return run_of(spec, changed=lambda run: replace(run, protocol=FaintProtocol(run.protocol, users)))


@cache
def claims_of(name: str, users: frozenset[Peer]) -> dict[tuple[str, str, str], Claim]:
    """The bounds; none where the audit refuses all."""
    run = faint(spec_of(name), users)
    plan = replace(run.plan, protocol=run.world.run.protocol)
    try:
        audited = audit_run(plan, Recorded(plan, run.contents()), [], DELTA, (1, 2))
    except Refused:
        return {}
    return {(one.observer, one.method, one.conditioning): one for one in audited.claims if one.bound}


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_moves_with_what_was_drawn(name: str) -> None:
    spec = spec_of(name)
    before = claims_of(name, frozenset())
    after = claims_of(name, frozenset(range(spec.run.nodes)))
    for terms, claim in after.items():
        planned = before.get(terms)
        if planned is None or not planned.epsilon_max:
            continue  # nothing was told anyway
        if claim.mu_max is not None and planned.mu_max is not None:
            assert claim.mu_max >= planned.mu_max * FAINTER * (1 - 1e-3), terms  # the rounding of gossip is added
        else:
            assert claim.epsilon_max is not None
            assert claim.epsilon_max > planned.epsilon_max * 2 or planned.epsilon_max == math.inf, terms


@pytest.mark.parametrize("name", NAMES)
def test_one_user_with_less_noise_is_the_worst_off(name: str) -> None:
    """Only user 0 draws less. On a walk others may still protect it from users, but nobody from the network."""
    before, after = claims_of(name, frozenset()), claims_of(name, frozenset({0}))
    for terms, claim in after.items():
        planned = before.get(terms)
        if planned is None or not planned.epsilon_max or planned.epsilon_max == math.inf:
            continue
        assert claim.epsilon_max is not None
        assert claim.epsilon_max >= planned.epsilon_max * (1 - 1e-9), terms
        alone = name.startswith("gossip") and spec_of(name).noise.pair_sigma is None
        if terms[1] == "local" or (terms[:2] == ("node", "exact") and alone):
            assert claim.worst_pair is not None
            assert claim.epsilon_max > planned.epsilon_max * 2, terms
            assert claim.worst_pair[0] == 0, terms


def test_gossip_that_draws_a_thousandth_of_its_plan_tells_everything() -> None:
    """The exact account of gossip takes the scale from the plan; here it is refused, and the linear account speaks."""
    name = "gossip_average"
    found = claims_of(name, frozenset(range(spec_of(name).run.nodes)))
    exact, local = found["node", "exact", "public"], found["network", "local", "public"]
    planned = claims_of(name, frozenset())["network", "local", "public"].mu_max
    assert planned is not None
    assert exact.mu_max == pytest.approx(FAINTER * planned, rel=1e-5)
    assert exact.epsilon_max is not None
    assert exact.epsilon_max > 100_000
    assert local.epsilon_max is not None
    assert local.epsilon_max >= gaussian.epsilon_of(DELTA, FAINTER * planned)
