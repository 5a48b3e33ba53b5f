"""The step of a machine: all that it wants done, as one frozen value.

These are named tuples, like all that is made anew for each message: a frozen dataclass takes several times
as long to make.

Whoever calls a machine acts on all four fields of the `Step` it returns; a law test
rejects code that drops a step, or that joins two by hand instead of with `Step.then`.
What a send discloses is not declared beside it: the auditor finds which recorded draws
protect each contribution. Messages carry their public part
(type and fields: hop numbers, token numbers) apart from their value, because the ledger's
skeleton keeps the first and drops the second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from p2pdp.core.ids import Peer

Field = int | str | bytes | float | list[Any]


class Message(NamedTuple):
    """`value` is None, a grid integer, an int64 or float64 array, or a linear form."""

    type: str
    fields: tuple[Any, ...] = ()
    value: Any = None

    def __repr__(self) -> str:  # values and routes stay out of logs and error texts
        return f"Message({self.type!r})"


class Custody(NamedTuple):
    """Names what must not get lost on its way: item (a token's number, or that of a report's hop) and step."""

    item: int
    step: int


class Send(NamedTuple):
    """A message for a peer; a send to oneself is recorded as `own` and delivered at once."""

    to: Peer
    message: Message
    custody: Custody | None = None

    def __repr__(self) -> str:
        return f"Send({self.message.type!r})"


class Output(NamedTuple):
    """Something published, a decision of a service, or its progress.

    Publications and decisions are recorded before they are acted upon. Progress follows from what is recorded already,
    so it is not. A restart hands out all of them again.
    """

    type: str
    fields: tuple[Any, ...] = ()
    value: Any = None
    recorded: bool = True

    def __repr__(self) -> str:
        return f"Output({self.type!r})"


class Fault(NamedTuple):
    """A peer's misbehaviour or the world's, as data. `kind` is counted in `result.json`."""

    kind: str
    peer: Peer | None = None


class Step(NamedTuple):
    sends: tuple[Send, ...] = ()
    wake_at_s: float | None = None
    outputs: tuple[Output, ...] = ()
    faults: tuple[Fault, ...] = ()

    def then(self, *others: Step) -> Step:
        """Return one step that does this one and then the others; it wakes at the earliest of their times."""
        sends, wake_at_s, outputs, faults = self
        for other in others:
            sends += other.sends
            outputs += other.outputs
            faults += other.faults
            if wake_at_s is None or (other.wake_at_s is not None and other.wake_at_s < wake_at_s):
                wake_at_s = other.wake_at_s
        return Step(sends, wake_at_s, outputs, faults)


NOTHING = Step()
