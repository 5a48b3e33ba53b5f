"""The events in the life of a run, for logs, progress, status and metrics.

Guarantee: only the events listed here can be reported, and none holds a protocol message, a value, a key or a route.
Facts are peers (a user's number, `bootstrap`, `curator`), counts, and names that the run's owner gave. Faults are
reported by kind with their count, at the first and then each time that they are ten times as many: so the number of
lines does not depend on the number of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

Fact = str | int | float | None


class Level(IntEnum):
    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


OWNERS: Final = frozenset({"clipped"})
"""Events that follow from data: for the terminal of their owner, and for no log that is kept."""

KINDS: Final[dict[str, tuple[Level, str]]] = {
    # Bootstrap and curator, or all of a local run
    "folder": (Level.DEBUG, "the run's folder is {folder}"),
    "listening": (
        Level.INFO,
        "{how}; {tokens} join tokens that name {address} are in {folder}; bootstrap's key is {identity}",
    ),
    "started": (Level.DEBUG, "{count} of {of} processes are started"),
    "enrolling": (Level.INFO, "{count} of {of} nodes have enrolled"),
    "roster": (Level.INFO, "the roster is closed with {n} nodes; the run begins when all of them are ready"),
    "seated": (Level.DEBUG, "{count} of {of} nodes have the roster"),
    "enrolled": (Level.INFO, "all {n} nodes have the roster; the protocol runs"),
    "begun": (Level.INFO, "all nodes of the roster are ready; the protocol runs"),
    "published": (Level.INFO, "the result is published; the nodes close their ledgers"),
    "collecting": (Level.INFO, "the ledgers are closed; the run is audited"),
    "audit_failed": (Level.ERROR, "verification failed, and the result may be false: p2pdp verify {folder} says why"),
    "no_claim": (Level.WARNING, "no claim can be made from the skeletons here: {reason}"),
    "done": (Level.INFO, "the run is over; its result is in {folder}"),
    # Users that are away
    "excluded": (Level.WARNING, "user {user} is excluded; the others continue"),
    "silent": (Level.WARNING, "user {user} does not answer"),
    "back": (Level.INFO, "user {user} answers again"),
    "blocked": (Level.WARNING, "user {user} is silent, and the protocol cannot route around it"),
    "stopped": (Level.WARNING, "{reason}; the nodes close their ledgers"),
    "restarted": (Level.WARNING, "the process of {user} ended and is started again"),
    "stayed_away": (Level.WARNING, "node {user} did not come; the others began without it"),
    "fault": (Level.WARNING, "{count} of the fault {kind} so far"),
    # A node
    "token_open": (Level.WARNING, "{file}: others on this machine may read this join token; run chmod 600 on it"),
    "reachable": (Level.DEBUG, "this node can be reached"),
    "offer": (Level.INFO, "{text}"),
    "clipped": (
        Level.WARNING,
        "{clipped} of the {rows} numbers in column {column} are outside the run's bounds and are clipped to them",
    ),
    "cost": (Level.INFO, "  {text}"),
    "seat": (Level.INFO, "this node is user {user} of {n}"),
    "waiting": (Level.INFO, "{text}"),
    "put_out": (
        Level.WARNING,
        "bootstrap excluded this node: it was silent for too long, and the others continued without it",
    ),
    # Services beside the run
    "told": (Level.INFO, "{text}"),
    "http": (Level.INFO, "status and metrics are at {url}"),
    "http_token": (Level.INFO, "wrote a new read token to {file}"),
    "http_auditor_token": (Level.INFO, "wrote a new auditor's token to {file}"),
    "http_clear": (Level.WARNING, "--http {listen}: without TLS anybody on the network path can read {what}"),
    "http_stays": (Level.INFO, "what is known of the run is served until this process is stopped"),
    "index_broken": (
        Level.WARNING,
        "the run index cannot be written ({reason}); the run is not affected, and p2pdp index writes it later",
    ),
    "index_whole": (Level.INFO, "the run index can be written again"),
    # How a command ends early
    "failed": (Level.ERROR, "{reason}"),
    "interrupted": (Level.ERROR, "{reason}"),
}


@dataclass(frozen=True, slots=True)
class Happening:
    event: str
    facts: Mapping[str, Fact]

    @property
    def level(self) -> Level:
        return KINDS[self.event][0]

    @property
    def text(self) -> str:
        """Return one sentence for people."""
        return KINDS[self.event][1].format_map(self.facts)

    def to_json(self) -> dict[str, Any]:
        return {"event": self.event, **self.facts}


Notify = Callable[[Happening], None]


def happening(event: str, **facts: Fact) -> Happening:
    if event not in KINDS:
        raise ValueError(f"nothing of the kind {event!r} can be told")
    found = Happening(event, facts)
    _ = found.text  # what its sentence needs is there
    return found


def faults_to_tell(counts: Mapping[str, int], told: dict[str, int]) -> list[Happening]:
    """Return the faults that are new or ten times as many as in `told`, and update that."""
    found = []
    for kind, count in sorted(counts.items()):
        if count >= 10 * told.get(kind, 0) and count > 0:
            told[kind] = count
            found.append(happening("fault", kind=kind, count=count))
    return found
