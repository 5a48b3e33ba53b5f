"""What a protocol is to the rest of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from typing import Protocol as Interface

from p2pdp.core.draws import Draws, Expected, Mechanism, Shape
from p2pdp.core.events import FastHop, Machine
from p2pdp.core.ids import Peer
from p2pdp.core.messages import COMMON, MessageTable
from p2pdp.core.spec import Spec
from p2pdp.core.step import Message, Send
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.protocols.noise import sigma_of
from p2pdp.protocols.options import Options
from p2pdp.tasks.inputs import Inputs
from p2pdp.topology.graphs import Graph

if TYPE_CHECKING:
    from p2pdp.protocols.defaults import Analysis
    from p2pdp.protocols.run_plan import RunPlan

Fact = int | str | float  # what bootstrap signs of a run
NO_FACTS: Final[Mapping[str, Fact]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Start:
    """Bootstrap has `user` begin `item`; `first_step` is the step at which its first receiver contributes."""

    item: int
    user: Peer
    first_step: int


@dataclass(frozen=True, slots=True)
class Work:
    """`actual` of something, named by a key of the spec and in words, of which at most `most` are accounted for."""

    key: str
    what: str
    actual: int
    most: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What was to be computed, in data units, with the standard deviation of its error."""

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
        """The noise that a contribution is meant to have; audits believe the recorded draws only."""

    @property
    def shape(self) -> Shape:
        """Of a value: () for a number, (d,) for d of them."""

    @property
    def grid_exponent(self) -> int:
        """Noise is drawn in steps of two to this power, in data units."""

    @property
    def unit(self) -> float:
        """What one step of the grid, in which draws are counted, is in units of what users contribute."""

    @property
    def draws_expected(self) -> Expected:
        """Of kinds of noise that a user draws often, about how often: it may draw them while nothing happens yet."""

    @property
    def length(self) -> int:
        """Hops of all tokens, rounds, or activations."""

    def exchanges(self, edges: int) -> int:
        """About how many messages between users that takes on a graph of so many edges."""

    @property
    def reroutes(self) -> bool:
        """Whether an item can go round a user that is gone."""

    @property
    def protection(self) -> tuple[Mechanism, ...]:
        """What protects each contribution, if everybody draws what the plan says."""

    @property
    def other_draws(self) -> frozenset[Mechanism] | None:
        """Of what kinds all other draws are that reach anybody; None where none are ever looked at."""

    @property
    def sensitivity(self) -> float | None:
        """How far one contribution moves, in grid units, if not as far as the bounds of the data say."""

    @property
    def enforced_max(self) -> int | None:
        """How often a user's own node contributes its value at most; None where the plan fixes that."""


class PlanDefaults:
    """What holds of most plans."""

    __slots__ = ()

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
    def enforced_max(self) -> int | None:
        return None


class Protocol(Interface):
    name: str
    tasks: Mapping[str, tuple[str, ...]]  # what it computes, each with the mechanisms that it takes then
    default_task: str | None
    options: Options | None  # the section that it owns, beside those which all specs have
    keys: frozenset[str]  # keys of common sections that only some protocols take, as `section.key`
    messages: MessageTable  # that its runs have, with their forms

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        """What of the graph the plan rests on: made where the graph is known, signed, and public from then on."""

    def plan(self, spec: Spec, n: int, dimensions: int, facts: Mapping[str, Fact] = NO_FACTS) -> Plan: ...

    def opening(self, plan: Any, graph: Graph, draws: Draws) -> Sequence[Send]:
        """What bootstrap tells the users when they go, beside which items to begin."""

    def machine(self, plan: Any, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> Machine: ...

    def fast_hop(self, plan: Any, machine: Any) -> FastHop | None:
        """Return the machine's usual step of a token in one piece; None where this plan has none."""

    def inputs(self, plan: Any, rows: Any) -> tuple[Inputs, list[Any]]:
        """A user's inputs from its bounded rows, and the values that its private ledger keeps."""

    def inputs_again(self, plan: Any, values: list[Any]) -> Inputs:
        """The same inputs from what the private ledger kept."""

    def check(self, plan: Any, message: Message) -> str | None:
        """Return what is wrong with a message of the form that `messages` says, as the kind of a fault, or None.

        It may have a number that the plan excludes, or a value that no user of this run could send.
        """

    def sigma(self, spec: Spec, dimensions: int) -> float | None:
        """The deviation of the least draw of noise for a contribution in data units; None for noise without one.

        Noise on messages is not counted: it protects no single contribution.
        """

    def sizes(self, spec: Spec) -> Mapping[str, int | None]:
        """What `[accept]` of a node may limit, by its keys; None where the spec leaves it to the graph."""

    def rounds(self, plan: Any) -> int:
        """The rounds that a node may limit, where they follow from the graph; 0 where they do not."""

    def work(self, spec: Spec, plan: Any) -> Sequence[Work]:
        """What decides how long it takes to work out what a run costs; `plan` is None where it is not known yet."""

    def records_bytes(self, run: RunPlan, degree: int) -> int:
        """Room for those records of a user with so many neighbours whose number tells of a hidden route."""

    def report_bytes(self, plan: Any) -> int | None:
        """How long the reports are that users seal to the curator; None where there are none."""

    def is_report(self, plan: Any, report: bytes) -> bool:
        """Whether an opened report is one that a user of this run could have made."""

    def publish(self, plan: Any, totals: Sequence[Any]) -> Any:
        """What the curator publishes; only adds and scales, so that the auditor can run it too."""

    def estimate(self, plan: Any, published: Any, contributions: int) -> Estimate: ...

    def own_scores(self, plan: Any, rows: Callable[[], Any], published: Any) -> dict[str, float | None] | None:
        """How good a published model is on a user's own rows, which are read then; None of what is no model."""

    def analysis(self) -> Analysis:
        """What launcher, planner and auditor need beside that; imported when it is asked for."""


class Quiet:
    """What most protocols leave unsaid."""

    default_task: str | None = None
    options: Options | None = None
    keys: frozenset[str] = frozenset()
    messages: MessageTable = COMMON

    def graph_facts(self, spec: Spec, graph: Graph) -> Mapping[str, Fact]:
        return NO_FACTS

    def opening(self, plan: Any, graph: Graph, draws: Draws) -> Sequence[Send]:
        return ()

    def fast_hop(self, plan: Any, machine: Any) -> FastHop | None:
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

    def own_scores(self, plan: Any, rows: Callable[[], Any], published: Any) -> dict[str, float | None] | None:
        return None

    def analysis(self) -> Analysis:
        from p2pdp.protocols.defaults import Analysis

        return Analysis()
