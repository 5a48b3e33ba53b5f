"""The contract between a protocol and the rest of the program: its plan, its machine, and what a node needs of it.

What launcher, planner and auditor need besides is in `defaults.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from typing import Protocol as Interface

from p2pdp.core.claims import Unit
from p2pdp.core.draws import Draws, Mechanism, Shape
from p2pdp.core.events import Exchanger, FastHop, Machine
from p2pdp.core.ids import Peer
from p2pdp.core.messages import COMMON, MessageTable
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message, Send
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.protocols.decision import Collector
from p2pdp.protocols.noise import sigma_of
from p2pdp.protocols.options import Options
from p2pdp.protocols.records import Records
from p2pdp.tasks.inputs import Inputs
from p2pdp.topology.graphs import Graph

if TYPE_CHECKING:
    from p2pdp.protocols.defaults import Analysis
    from p2pdp.protocols.run_plan import RunPlan

Neighbours = Callable[[Peer], Sequence[Peer]]
Fact = int | str | float  # a fact about a run that bootstrap signs
NO_FACTS: Final[Mapping[str, Fact]] = MappingProxyType({})
WHOLE_USERS: Final = frozenset({Unit.USER})
USERS_AND_RECORDS: Final = frozenset(Unit)


@dataclass(frozen=True, slots=True)
class Start:
    """Bootstrap has `user` begin `item`; `first_step` is the step at which its first receiver contributes."""

    item: int
    user: Peer
    first_step: int


@dataclass(frozen=True, slots=True)
class Work:
    """One cost of accounting for a run: `actual` units of `what`, set by the spec key `key`; the limit is `most`."""

    key: str
    what: str
    actual: int
    most: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of the computed quantity, in data units, with the standard deviation of its error."""

    value: float | list[float] | None
    standard_error: float | list[float] | None


class Plan(Interface):
    """Everything public that the machines of one run share; frozen, and the same on every peer."""

    @property
    def n(self) -> int: ...

    @property
    def starts(self) -> tuple[Start, ...]: ...

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]: ...

    @property
    def noise(self) -> Mechanism:
        """Return the noise that a contribution is meant to have; audits believe the recorded draws only."""

    @property
    def shape(self) -> Shape:
        """Return the shape of a value: () for a number, (d,) for d of them."""

    @property
    def grid_exponent(self) -> int:
        """Return the exponent of the noise grid: noise is drawn in steps of two to this power, in data units."""

    @property
    def unit(self) -> float:
        """Return the size of one step of the grid in which draws are counted, in units of the users' contributions."""

    @property
    def length(self) -> int:
        """Return the number of hops of all tokens, of rounds, or of activations."""

    def exchanges(self, edges: int) -> int:
        """Estimate the number of messages between users on a graph with `edges` edges."""

    @property
    def needed(self) -> int:
        """Return how many users the run cannot do without: if fewer would be left, it waits for those who are gone."""

    @property
    def why_needed(self) -> str:
        """Return why it cannot, as the end of a sentence; empty where one user is enough."""

    def hides(self, live: AbstractSet[Peer], neighbours: Neighbours) -> bool:
        """Return whether these users, before the decision, hide each other as claims in advance say."""

    def recoverable(self, survivors: AbstractSet[Peer], live: AbstractSet[Peer], neighbours: Neighbours) -> bool:
        """Return whether there can still be a result, once survivors are decided, with those who are live."""

    @property
    def protection(self) -> tuple[Mechanism, ...]:
        """Return the mechanisms that protect each contribution if everybody draws as planned."""

    @property
    def other_draws(self) -> frozenset[Mechanism] | None:
        """Return the mechanisms of all other draws that may reach anybody; None if the audit does not check them."""

    @property
    def sensitivity(self) -> float | None:
        """Return how far one contribution moves, in grid units; None if the bounds of the data decide that."""

    @property
    def part(self) -> float | None:
        """Return how far a row moves a contribution by being in it; None where this is as far as replacing it does."""

    @property
    def records(self) -> Records | None:
        """Return the rows of users if each contribution is the sum of all rows of a user; None if it is of one row."""

    @property
    def enforced_max(self) -> int | None:
        """Return how often a user's own node contributes its value at most; None if the plan fixes that."""


class PlanDefaults:
    """Defaults of a plan, which hold for most protocols."""

    __slots__ = ()

    @property
    def number_bytes(self) -> int:
        """Return how many bytes a number of a vector takes that users send each other."""
        return 8

    @property
    def needed(self) -> int:
        return 1

    @property
    def why_needed(self) -> str:
        return ""

    def hides(self, live: AbstractSet[Peer], neighbours: Neighbours) -> bool:
        return True

    def recoverable(self, survivors: AbstractSet[Peer], live: AbstractSet[Peer], neighbours: Neighbours) -> bool:
        return True

    @property
    def protection(self) -> tuple[Mechanism, ...]:
        noise: Mechanism = self.noise  # type: ignore[attr-defined]
        return () if noise.name == "none" else (noise,)

    @property
    def other_draws(self) -> frozenset[Mechanism] | None:
        return None

    @property
    def sensitivity(self) -> float | None:
        return None

    @property
    def part(self) -> float | None:
        return None

    @property
    def records(self) -> Records | None:
        return None

    @property
    def enforced_max(self) -> int | None:
        return None


class Protocol(Interface):
    name: str
    tasks: Mapping[str, tuple[str, ...]]  # each computation, with the mechanisms that it accepts
    default_task: str | None
    options: Options | None  # the section that it owns, besides those of all specs
    keys: frozenset[str]  # keys of common sections that only some protocols take, as `section.key`
    messages: MessageTable  # the messages of its runs, with their forms
    units: frozenset[Unit]  # what its claims can be about

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        """Compute the facts about the graph that the plan rests on; bootstrap signs them, and they become public."""

    def model_facts(self, spec: Spec, dimensions: int) -> Mapping[str, Fact]:
        """Compute the facts about models that the plan rests on, where users learn; bootstrap signs them too."""

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> Plan: ...

    def opening(self, plan: Any, graph: Graph, draws: Draws) -> Sequence[Send]:
        """Return the messages that bootstrap sends to the users at the start, besides the items to begin."""

    def machine(self, plan: Any, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Machine: ...

    def fast_hop(self, plan: Any, machine: Any) -> FastHop | None:
        """Return the machine's usual step of a token in one piece; None where this plan has none."""

    def fast_exchange(self, plan: Any, machine: Any) -> Exchanger | None:
        """Return how the machine takes its usual message in one piece; None where this plan has none."""

    def inputs(self, plan: Any, rows: Any) -> tuple[Inputs, list[Any]]:
        """Return a user's inputs, made from its bounded rows, and the values that its private ledger keeps."""

    def inputs_again(self, plan: Any, values: list[Any]) -> Inputs:
        """Return the same inputs, made from the values that the private ledger kept."""

    def check(self, plan: Any, message: Message) -> str | None:
        """Return the kind of fault of a message that has the form that `messages` declares, or None if it is valid.

        It may have a number that the plan excludes, or a value that no user of this run could send.
        """

    def sigma(self, spec: Spec, dimensions: int) -> float | None:
        """Return the least standard deviation among a contribution's draws, in data units; None if the noise has none.

        Noise on messages is not counted: it protects no single contribution.
        """

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        """Return the sizes that a node's `[accept]` may limit, by key; None for a size that depends on the graph."""

    def rounds(self, plan: Any) -> int:
        """Return the number of rounds that a node may limit if it follows from the graph, else 0."""

    def work(self, spec: Spec, plan: Any) -> Sequence[Work]:
        """Return the sizes that determine the time to compute a run's costs; `plan` is None if it is not known yet."""

    def records_bytes(self, run: RunPlan, degree: int) -> int:
        """Return the space for a user's records whose number would reveal a hidden route, given its degree."""

    def report_bytes(self, plan: Any) -> int | None:
        """Return the length of the reports that users seal to the curator; None if there are none."""

    def is_report(self, plan: Any, report: bytes) -> bool:
        """Return whether a user of this run could have made this opened report."""

    def collector(self, plan: Any) -> Collector | None:
        """Return the curator's part of a protocol with a decision (`decision.py`); None if totals are enough."""

    def publish(self, plan: Any, totals: Sequence[Any]) -> Any:
        """Return the value that the curator publishes; it only adds and scales, so that the auditor can run it too."""

    def estimate(self, plan: Any, published: Any, contributions: int) -> Estimate:
        """Return the estimate; where the unit is a record, `contributions` is how many rows are in what was published.

        It is 0 where that is not known.
        """

    def estimate_alone(self, plan: Any, published: Any, survivors: Sequence[Peer] | None) -> Estimate:
        """Return the estimate without the ledgers of others; `survivors` where it was decided whose values count."""

    def own_scores(self, plan: Any, rows: Callable[[], Any], published: Any) -> dict[str, float | None] | None:
        """Score a published model on a user's own rows, which are read only then; return None if it is not a model."""

    def analysis(self) -> Analysis:
        """Return the capabilities for launcher, planner and auditor; they are imported on request only."""


class ProtocolDefaults:
    """Default implementations of the optional hooks of a protocol."""

    default_task: str | None = None
    options: Options | None = None
    keys: frozenset[str] = frozenset()
    messages: MessageTable = COMMON
    units: frozenset[Unit] = WHOLE_USERS

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return NO_FACTS

    def model_facts(self, spec: Spec, dimensions: int) -> Mapping[str, Fact]:
        return NO_FACTS

    def opening(self, plan: Any, graph: Graph, draws: Draws) -> Sequence[Send]:
        return ()

    def fast_hop(self, plan: Any, machine: Any) -> FastHop | None:
        return None

    def fast_exchange(self, plan: Any, machine: Any) -> Exchanger | None:
        return None

    def sigma(self, spec: Spec, dimensions: int) -> float | None:
        if spec.noise.mechanism == "none":
            return 0.0
        if spec.noise.mechanism not in ("gaussian", "laplace") or spec.data.clip is None:
            return None
        return sigma_of(spec.noise, Bounds(*spec.data.clip), dimensions)

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        return {}

    def rounds(self, plan: Any) -> int:
        return 0

    def work(self, spec: Spec, plan: Any) -> Sequence[Work]:
        return ()

    def records_bytes(self, run: RunPlan, degree: int) -> int:
        return 0

    def report_bytes(self, plan: Any) -> int | None:
        return None

    def is_report(self, plan: Any, report: bytes) -> bool:
        return False

    def collector(self, plan: Any) -> Collector | None:
        return None

    def estimate_alone(self, plan: Any, published: Any, survivors: Sequence[Peer] | None) -> Estimate:
        # Each token's total holds a contribution of each of its steps, whoever made it.
        contributions = plan.length if survivors is None else len(survivors)
        found: Estimate = self.estimate(plan, published, contributions)  # type: ignore[attr-defined]
        return found

    def own_scores(self, plan: Any, rows: Callable[[], Any], published: Any) -> dict[str, float | None] | None:
        return None

    def analysis(self) -> Analysis:
        from p2pdp.protocols.defaults import Analysis

        return Analysis()
