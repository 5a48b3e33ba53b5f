"""Which process of a local run holds whom.

A process has a number. `ROLES` is that of bootstrap and curator; where all share one process, of everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.transports.contract import ROLES
from p2pdp.transports.registry import transport_kind


@dataclass(frozen=True)
class Packing:
    """How users get into processes: so many into each, forked from the launcher or `spawn`ed as fresh interpreters.

    With `trace_wire` every peer writes down what it receives (`wire.jsonl`).
    """

    nodes_per_process: int = 1
    spawn: bool = False
    trace_wire: bool = False

    def __post_init__(self) -> None:
        if self.nodes_per_process < 1:
            raise UsageError(f"--nodes-per-process {self.nodes_per_process}: must be at least 1")


ONE_EACH: Final = Packing()


@dataclass(frozen=True)
class Layout:
    """`slots` are the users that are to take part; their numbers in the run may be others (`bodies.places`)."""

    slots: int
    nodes_per_process: int = 1
    in_one_process: bool = False

    @property
    def processes(self) -> tuple[int, ...]:
        """All of them, the one that the others wait for first."""
        count = 0 if self.in_one_process else -(-self.slots // self.nodes_per_process)
        return (ROLES, *range(count))

    def users(self, process: int) -> range:
        if self.in_one_process:
            return range(self.slots)
        if process == ROLES:
            return range(0)
        first = process * self.nodes_per_process
        return range(first, min(first + self.nodes_per_process, self.slots))

    def slots_of(self, process: int) -> Sequence[int]:
        """Return all slots of a process: those of users, and `ROLES`."""
        return (ROLES, *self.users(process)) if process == ROLES else self.users(process)

    def name(self, process: int) -> str:
        users = self.users(process)
        if self.in_one_process:
            return "the process of all nodes"
        if process == ROLES:
            return "bootstrap and curator"
        return f"node {users[0]}" if len(users) == 1 else f"the process of nodes {users[0]} to {users[-1]}"


def layout_of(spec: Spec, packing: Packing) -> Layout:
    kind = transport_kind(spec.run.transport)
    if kind.in_one_process and packing.nodes_per_process > 1:
        raise UsageError(
            f'--nodes-per-process: with [run] transport = "{kind.name}" all nodes are in one process anyway'
        )
    return Layout(spec.run.nodes, packing.nodes_per_process, kind.in_one_process)
