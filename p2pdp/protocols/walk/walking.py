"""The walk: a token visits users one after another, and each adds its contribution.

One machine serves Algorithm 1 (ring sum, with Remark 1), Algorithm 2 (ring histogram, as corrected in
guide/accounting.md, section 2) and Algorithm 3 (random walk on the complete graph) of [CB20], and the same walk on any
connected graph. They differ in data only: a `WalkPlan`.

Steps are numbered from 1 to `steps`, at each of which one user contributes; a token message carries the
step at which its receiver contributes. On a ring the token moves to the next user; on a random walk to a
uniform user (complete graph: the present holder included) or a uniform neighbour (other graphs).

Departures from the paper: a closing draw protects the ring's last contributions from observers of the total
(the paper has none); histogram dummies are a fixed number, put in at the start and again before publishing;
a user who is gone is bypassed (random walks only), which repeats the same noised value elsewhere.

Limit: a user contributes its value at most `contributions_max` times, in all tokens, whatever it is sent: on a ring
once in each lap of each token, on a random walk a number that chance visits exceed with a probability of at most 1e-9
(`protocols/walk/options.py`). From then on it adds noise only, and each further visit is a fault of the kind
`too_many_visits`. Estimates count such visits as contributions of nothing; they occur if somebody breaks the
protocol, or if so many users are excluded that the remaining ones are visited far more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws, Mechanism, Shape
from p2pdp.core.events import Exchanger
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import TOKEN, TOTAL, Item
from p2pdp.core.step import NOTHING, Custody, Fault, Message, Send, Step
from p2pdp.protocols.contract import PlanDefaults, Start
from p2pdp.protocols.records import Records
from p2pdp.protocols.run_plan import EXCESS, VISIT_BYTES, at_most
from p2pdp.tasks.inputs import Inputs

_ADDED_NOISE: Final = ("gaussian", "laplace")

# The grid keeps every honest sum below 2**61; what a token adds to a value within this stays an int64.
VALUE_MAX: Final = 2**62
VALUE_MIN: Final = -VALUE_MAX


@dataclass(frozen=True, slots=True)
class WalkPlan(PlanDefaults):
    """The public parameters of a walk. Scales of mechanisms are in grid units."""

    learns: ClassVar[bool] = False
    """Whether the token is a model and contributions are gradients."""

    order: str  # ring, complete or graph
    n: int
    steps: int
    tokens: int
    noise: Mechanism  # the noise of one contribution
    shape: Shape
    spacing: int = 1  # steps between noised contributions: n - 1 on a ring, 1 elsewhere
    share: Mechanism | None = None  # Remark 1: drawn instead at every step but the first
    closing: bool = False
    dummies: int = 0  # uniform elements at the start, and again before publishing
    grid_exponent: int = 0
    visits_max: int | None = None  # the limit on visits at which a user contributes its value; afterwards noise only
    mean: bool = False  # the sum is divided by the number of contributions when it is estimated
    counts: bool = False  # contributions count categories, in steps of the grid
    records: Records | None = None  # contributions are sums of rows, one of which may be replaced

    @property
    def unit(self) -> float:
        return 1.0  # contributions are whole steps of the grid

    @property
    def sensitivity(self) -> float | None:
        """Return how far a category moves two counts that are noised, in grid units."""
        if not self.counts or self.noise.name != "gaussian":
            return None
        return math.ldexp(math.nextafter(math.sqrt(2.0), 2.0), -self.grid_exponent)

    @property
    def length(self) -> int:
        return self.steps * self.tokens

    def exchanges(self, edges: int) -> int:
        return self.length

    @property
    def needed(self) -> int:
        return self.n if self.order == "ring" else 1

    @property
    def why_needed(self) -> str:
        return "a ring cannot go round" if self.order == "ring" else ""

    @property
    def enforced_max(self) -> int | None:
        return None if self.order == "ring" else self.contributions_max

    @property
    def contributions_max(self) -> int:
        """Return the limit on the number of values that a user contributes, which its node enforces."""
        if self.order == "ring":
            return self.length // self.n
        return self.length if self.visits_max is None else min(self.visits_max, self.length)

    @property
    def starts(self) -> tuple[Start, ...]:
        if self.order == "ring":
            return tuple(Start(item, item * self.n // self.tokens, 1) for item in range(self.tokens))
        return tuple(Start(item, 0, 1) for item in range(self.tokens))

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Return all mechanisms that noise is drawn from."""
        return (self.noise,) if self.share is None else (self.noise, self.share)

    @property
    def hops_alike(self) -> bool:
        """Return whether all steps but the last draw once, add one number, and choose the next holder."""
        once = self.noise.name in _ADDED_NOISE and self.share is None and not self.dummies
        return once and self.order != "ring" and self.shape == ()

    def draws_at(self, step: int) -> list[Mechanism]:
        """Return the noise that the holder of a step adds before its contribution leaves it."""
        drawn = []
        if self.share is not None:
            drawn.append(self.noise if step == 1 else self.share)
        elif self.noise.name in _ADDED_NOISE and (step - 1) % self.spacing == 0:
            drawn.append(self.noise)
        if self.closing and step == self.steps:
            drawn.append(self.noise)
        return drawn

    @property
    def dummy_mechanism(self) -> Mechanism:
        return Mechanism("uniform_counts", float(self.dummies), self.noise.categories)


class Walk:
    """The machine of one user, for all tokens of a walk."""

    def __init__(self, plan: WalkPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> None:
        self._plan = plan
        self._user = user
        self._neighbours = neighbours
        self._inputs = inputs
        self._out: set[Peer] = set()
        self._visits = 0
        self._visits_max = plan.contributions_max
        self._held_at: dict[int, int] = {}  # item -> last step held here
        self._passed: dict[int, tuple[Peer, int, Any]] = {}  # item -> receiver, its step there, its value
        self._options = None if plan.order == "complete" else neighbours

    @property
    def finished(self) -> bool:
        return False  # a user cannot know that a walk is over; the curator's result says so

    def __repr__(self) -> str:
        return f"Walk(user={self._user})"

    def start(self, now_s: float, draws: Draws) -> Step:
        return NOTHING

    def wake(self, now_s: float, draws: Draws) -> Step:
        return NOTHING

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        self._out.add(peer)
        return NOTHING

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if message.type == TOKEN:
            return self._token(sender, message, draws)
        if sender == BOOTSTRAP and message.type == messages.BEGIN:
            return self._begin(Item(*message.fields).item, draws)
        if sender == BOOTSTRAP and message.type == messages.LOST:
            return self._send_elsewhere(message, draws)
        return Step(faults=(Fault("unexpected_message", sender),))

    def hop(self, sender: Peer, item: int, step: int, value: int, draws: Draws) -> tuple[Peer, int] | None:
        """Pass a token on in one piece, by a plan whose `hops_alike`; `_token` is the general way."""
        plan, options, held_at = self._plan, self._options, self._held_at
        if (
            self._out or self._visits >= self._visits_max
            or not 0 <= item < plan.tokens or not held_at.get(item, 0) < step < plan.steps
            or not VALUE_MIN <= value <= VALUE_MAX or (options is not None and sender not in options)
        ):  # fmt: skip
            return None
        held_at[item] = step
        visit = self._visits
        self._visits = visit + 1
        value = value + self._inputs.contribution(visit) + draws.noise(plan.noise, ())
        to = draws.choice(plan.n) if options is None else options[draws.choice(len(options))]
        if to != self._user:
            self._passed[item] = (to, step + 1, value)
        return to, value

    def exchange(
        self, check: Callable[[Any], str | None], sender: Peer, fields: tuple[int, ...], value: Any, _: float,
        draws: Draws,
    ) -> Step | None:  # fmt: skip
        """Take a token of another user in one piece, whose value this `check` accepts; `receive` is the general way."""
        item, step = fields
        if (
            self._visits >= self._visits_max or not 0 <= item < self._plan.tokens
            or not self._held_at.get(item, 0) < step <= self._plan.steps
            or not self._may_pass_to_me(sender) or not self._is_mine(item, step) or check(value) is not None
        ):  # fmt: skip
            return None
        return self._token(sender, Message(TOKEN, fields, value), draws)

    def _begin(self, item: int, draws: Draws) -> Step:
        if item in self._held_at or item in self._passed:
            return Step(faults=(Fault("unexpected_message", BOOTSTRAP),))
        first = Message(TOKEN, (item, 1), self._start())
        if self._plan.order == "ring" or self._plan.tokens == 1:
            return Step(sends=(Send(self._user, first),))
        return self._pass_on(item, 1, first, draws)

    def _start(self) -> Any:
        return self._inputs.zero()

    def _token(self, sender: Peer, message: Message, draws: Draws) -> Step:
        item, step = message.fields
        if not self._may_pass_to_me(sender) or self._held_at.get(item, 0) >= step or not self._is_mine(item, step):
            return Step(faults=(Fault("unexpected_message", sender),))
        self._held_at[item] = step
        late = Step(faults=(Fault("too_many_visits", sender),)) if self._visits >= self._visits_max else None
        value = self._contributed(message.value, step, self._plan.draws_at(step), draws)
        kind = TOKEN if step < self._plan.steps else TOTAL
        passed = self._pass_on(item, step + 1, Message(kind, (item, step + 1), value), draws)
        return passed if late is None else passed.then(late)

    def _contributed(self, value: Any, step: int, noise: Sequence[Mechanism], draws: Draws) -> Any:
        """Return the token as it leaves its holder, with this noise added."""
        visit, self._visits = self._visits, self._visits + 1
        value = value + (self._contribution(visit, draws) if visit < self._visits_max else self._cover(draws))
        if step == 1 and self._plan.dummies:
            value = value + draws.noise(self._plan.dummy_mechanism, self._plan.shape)
        for mechanism in noise:
            value = value + draws.noise(mechanism, self._plan.shape)
        if step == self._plan.steps and self._plan.dummies:
            value = value + draws.noise(self._plan.dummy_mechanism, self._plan.shape)
        return value

    def _contribution(self, visit: int, draws: Draws) -> Any:
        if self._plan.noise.name == "randomized_response":
            return self._inputs.report(visit, draws.noise(self._plan.noise, ()))
        return self._inputs.contribution(visit)

    def _cover(self, draws: Draws) -> Any:
        """Return the stand-in for a contribution beyond the limit: zero, or a random category."""
        if self._plan.noise.name == "randomized_response":
            return draws.noise(Mechanism("uniform_counts", 1.0, self._plan.noise.categories), self._plan.shape)
        return self._inputs.zero()

    def _pass_on(self, item: int, step: int, message: Message, draws: Draws) -> Step:
        to = CURATOR if message.type == TOTAL else self._next_holder(draws)
        if to == self._user:
            return Step(sends=(Send(to, message),))
        self._passed[item] = (to, step, message.value)
        return Step(sends=(Send(to, message, Custody(item, step)),))

    def _next_holder(self, draws: Draws) -> Peer:
        plan = self._plan
        if plan.order == "ring":
            return (self._user + 1) % plan.n
        if plan.order == "complete" and not self._out:
            return draws.choice(plan.n)
        if plan.order == "complete":
            options: Sequence[Peer] = [peer for peer in range(plan.n) if peer not in self._out]
        else:
            options = [peer for peer in self._neighbours if peer not in self._out] if self._out else self._neighbours
        return options[draws.choice(len(options))] if options else self._user  # without any other user the token stays

    def _is_mine(self, item: int, step: int) -> bool:
        """Return whether this user may hold the token at this step; on a ring each step has one holder."""
        plan = self._plan
        return plan.order != "ring" or (plan.starts[item].user + step - 1) % plan.n == self._user

    def _may_pass_to_me(self, sender: Peer) -> bool:
        if sender == self._user:
            return True
        if not is_user(sender) or sender in self._out:
            return False
        if self._plan.order == "ring":
            return sender == (self._user - 1) % self._plan.n
        return self._plan.order == "complete" or sender in self._neighbours

    def _send_elsewhere(self, order: Message, draws: Draws) -> Step:
        """Send the same noised value to somebody else: the receiver is gone and passed nothing on."""
        item, step = Item(*order.fields)
        to, passed_at, value = self._passed.get(item, (BOOTSTRAP, 0, None))
        if to not in self._out or passed_at != step:
            return Step(faults=(Fault("unexpected_message", BOOTSTRAP),))
        return self._pass_on(item, step, Message(TOKEN, (item, step), value), draws)


def exchanger(machine: Walk, check: Callable[[Any], str | None]) -> Exchanger:
    """Return the fast exchange of tokens that are vectors."""
    return Exchanger(TOKEN, len(Item._fields), partial(machine.exchange, check), vectors=True, passes=True)


def check_token(plan: WalkPlan, message: Message) -> str | None:
    """Return the kind of fault of a token or total of grid integers, or None if it is valid."""
    if message.type not in (TOKEN, TOTAL):
        return None
    return check_fields(plan, message) or check_value(plan, message.value)


def check_fields(plan: WalkPlan, message: Message) -> str | None:
    """Return the kind of fault of a message's fields, whatever its value, or None if they are valid."""
    item, step = message.fields
    last = plan.steps + 1
    if not 0 <= item < plan.tokens or (step != last if message.type == TOTAL else not 1 <= step < last):
        return "malformed"
    return None


def check_value(plan: WalkPlan, value: Any) -> str | None:
    if plan.shape == ():
        return None if type(value) is int and abs(value) <= VALUE_MAX else "bad_value"
    if getattr(value, "shape", None) != plan.shape or value.dtype.kind != "i":
        return "bad_value"
    return None if value.min() >= -VALUE_MAX and value.max() <= VALUE_MAX else "bad_value"


def visits_bytes(plan: WalkPlan) -> int:
    """Return room for the records of a number of visits that a user exceeds with negligible probability only."""
    mean = plan.length / plan.n
    visits = math.ceil(mean) if plan.order == "ring" else at_most(mean, EXCESS / plan.n)
    return VISIT_BYTES * (visits + plan.tokens)
