"""The input and the output of the accounts of a run.

An account is a function of an `AuditContext` that returns an `AccountResult`: claims of one method and one
conditioning, or the reasons why there are none. Accounts of different conditioning stand beside each other and are
never minimized across. `auditor/audit.py` runs them. The noise of a run is read from its recorded draws, and never from
its plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from p2pdp.core.arrays import Each, Floats, Row, one_by_one
from p2pdp.core.claims import Claim, Observer, Refusal
from p2pdp.core.draws import ROWS, Mechanism
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import OPENED, Contents
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.transcript import Transcript
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges

if TYPE_CHECKING:
    from p2pdp.auditor.pairs import PairTotals

NOBODY_OUT = "all users take part to the end"
PUBLIC_ROUTE = "the observer knows the realised path, schedule and graph"
NOT_AT_HAND = "its ledger is not whole or not at hand"
COMPUTATIONAL = "computational: what pairs draw together is unfolded from keys by a cipher, which is taken for random"
NO_KEYS = "it reads all messages and holds no user's key: whoever holds one knows all that this user shares with others"
PASSED_THROUGH = "what it saw passed through users whose ledgers are not at hand"
_HYPOTHETICAL = "hypothetical: noise and routing came from a seed"
_DEALT_OUT = (
    "rows are taken as they were dealt out: who has which, and how many, follows from all of them and is public"
)
_FAST = "the fast sampler's floating-point noise is treated as ideal"


def sensitivity_of(run: RunPlan) -> float:
    """Return how far replacing one value of a user can move a contribution, in grid units, rounded up."""
    own: float | None = run.plan.sensitivity
    if own is not None:
        return own
    if run.spec.data.clip is None:  # a category, which moves one count to another
        return math.nextafter(math.sqrt(2.0), 2.0)
    return Grid(run.plan.grid_exponent).sensitivity(Bounds(*run.spec.data.clip), run.dimensions)


class Ahead(NamedTuple):
    """Rows, one for each user, that an account is likely to ask for, before it can be told whether it will.

    They follow from what they are `about` alone; so if an account asks for rows about the same, these are right.
    """

    about: Any
    row: Row


Taking = Callable[[Any], list[Floats] | None]
"""Returns the rows about this, if they were begun; asked about something else it ends what was begun."""


def nothing_ahead(_about: Any) -> None:
    """Return the rows of an audit in which none were begun."""


@dataclass(frozen=True)
class AuditContext:
    """A verified run. Observers in `incomplete` are refused by name, for their rows are not all here."""

    run: RunPlan
    views: Mapping[Peer, Contents]
    transcript: Transcript
    incomplete: Sequence[Peer]
    delta: float
    colluders: Sequence[Peer]
    each: Each = one_by_one  # computes what observers learned
    ahead: Taking = nothing_ahead  # the rows that were begun before anything was verified
    in_blocks: bool = False  # whether pairs are looked at in blocks of observers, and not held

    @cached_property
    def sensitivity(self) -> float:
        return sensitivity_of(self.run)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """Return what every claim of this run rests on, whatever its method."""
        listed = []
        if self.run.plan.noise.name in ("gaussian", "laplace"):
            bits = math.log2(self.run.plan.noise.scale)
            listed.append(f"discrete noise with sigma = 2^{bits:.1f} grid steps is treated as continuous")
        if self.run.sampler == "seeded":
            listed.append(_HYPOTHETICAL)
        elif self.run.sampler == "fast":
            listed.append(_FAST)
        if self.run.by_record and self.run.spec.data.is_divided:
            listed.append(_DEALT_OUT)
        rebuilt = sorted(self.transcript.rebuilt)
        listed += [f"user {user}, whose ledger is not whole, followed the protocol" for user in rebuilt]
        return tuple(listed)

    def shared(self, observer: Observer | None = None) -> tuple[str, ...]:
        """Return what claims rest on where users draw noise together; one observer's claim may rest on more."""
        if not self.transcript.pairs:
            return ()
        return (COMPUTATIONAL, NO_KEYS) if observer == Observer.NETWORK else (COMPUTATIONAL,)

    def is_at_hand(self, user: Peer) -> bool:
        """Return whether all that a user saw is here."""
        return user not in self.incomplete and user in self.transcript.received


@dataclass
class AccountResult:
    """The result of one account. The matrices are [user, observer], NaN where nothing is known; coalitions [user]."""

    claims: list[Claim] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    mu: Floats | None = None
    leak: Floats | None = None
    epsilon: Floats | None = None  # of each pair, in the conditioning of the account's claims
    mu_coalition: Floats | None = None
    leak_coalition: Floats | None = None
    epsilon_coalition: Floats | None = None  # with all that the claim adds
    published: Floats | None = None  # the leak of each pair as a paper prints it
    variation: Floats | None = None  # total variation of each pair, beside `epsilon`
    totals: PairTotals | None = None  # of pairs that were not held

    def add(self, answers: Iterable[Claim | Refusal]) -> None:
        for one in answers:
            if isinstance(one, Claim):
                self.claims.append(one)
            else:
                self.refusals.append(one)


Account = Callable[[AuditContext], AccountResult]

UNLIKE_PLAN: Final = "user {}: the recorded draws are not those of the plan, and this account takes all noise to be so"


def unlike_plan(context: AuditContext) -> str | None:
    """Return why accounts that rely on the planned noise are refused; None where the records agree with the plan.

    Every contribution must be protected by the noise that the plan gives a contribution, and all other draws that were
    seen must be of the kinds that it names.
    """
    transcript, plan = context.transcript, context.run.plan
    for user, noise in transcript.noise.items():
        beside = plan.other_draws is None or noise.others <= plan.other_draws
        if any(not _is_planned(recorded, plan.protection) for recorded in noise.own) or not beside:
            return UNLIKE_PLAN.format(user)
    return None


def _is_planned(recorded: Sequence[Mechanism], planned: Sequence[Mechanism]) -> bool:
    """Return whether a contribution has the noise that is planned; from how many rows it is drawn is for each user."""
    noise = [one for one in planned if one.name != ROWS]
    return [one for one in recorded if one.name != ROWS][: len(noise)] == noise


def refused(observers: Sequence[Observer], method: str, reason: str) -> AccountResult:
    """Return a result that holds one refusal for each of these observers, with the same reason."""
    return AccountResult(refusals=[Refusal(observer, method, reason) for observer in observers])


def graph_of(views: Mapping[Peer, Contents], n: int) -> Graph | None:
    """Return the graph that the users' ledgers hold; None where one is absent, or names unknown users."""
    edges = []
    for user in range(n):
        if user not in views or not views[user].records or views[user].records[0].kind != OPENED:
            return None
        neighbours = views[user].records[0].body.neighbours
        if neighbours is None:
            return complete_graph(n)
        if not all(0 <= peer < n for peer in neighbours):
            return None
        edges += [(user, int(peer)) for peer in neighbours]
    return graph_of_edges(n, edges)
