"""The messages that every protocol shares: life cycle, exclusion, results.

A message that must not get lost (a token, a total, the order to begin one) carries its item
and step as its first two fields, so that after an exclusion it can be settled who has it.
"""

from __future__ import annotations

from typing import Final

from p2pdp.core.step import Custody, Message

READY: Final = "ready"  # user -> bootstrap: roster checked, ledger open
GO: Final = "go"  # bootstrap -> all: everybody is ready
BEGIN: Final = "begin"  # bootstrap -> user: start this item; fields item, 0
TOKEN: Final = "token"  # user -> user; fields item, step at which the receiver contributes
TOTAL: Final = "total"  # user -> curator; fields item, last step + 1
EXCHANGE: Final = "exchange"  # user -> user: the sender's state; fields round (or activation), its degree
SKIPPED: Final = "skipped"  # user -> user: the sender, who decides, did not count that round's edge; field round
SETTLED: Final = "settled"  # user -> user: all that the sender decides about our edge is decided
FINAL: Final = "final"  # user -> itself: its own result; field rounds
ACTIVATIONS: Final = "activations"  # bootstrap -> user: part, parts, its activations as [number, other end]
RELAY: Final = "relay"  # user -> user: a sealed report on its way; fields the hop that it came by, this hop, round
MARK: Final = "mark"  # user -> user: the sender has sent all that it had in a round; field round
COVER: Final = "cover"  # user -> user: no report, and in all as long as one; fields twice what no hop has, round
REPORT: Final = "report"  # user -> curator: a sealed report at its end; fields the hop that it came by, last round + 1
OPENED_REPORT: Final = "opened"  # curator -> itself: a report without its seal; field the name that was inside
RESOLVED: Final = "resolved"  # bootstrap -> curator: exclusions are settled; who is out, [user, how often it got LOST]
HEEDED: Final = "heeded"  # user -> curator: a report that was lost goes on from here, or was handed in just now
FINISHED: Final = "finished"  # user -> curator: its part is done; with its result if the spec publishes that
RESULT: Final = "result"  # curator -> all: what the spec publishes
DONE: Final = "done"  # curator -> bootstrap: published; nothing can get lost any more
HEAD: Final = "head"  # user -> curator: the hash of all records of its closed ledger, and not how many they are
SKELETON: Final = "skeleton"  # user -> curator: a piece of a skeleton, handed in by its owner
OVER: Final = "over"  # curator -> bootstrap: all heads are in

SILENT: Final = "silent"  # bootstrap's host -> bootstrap, or curator -> bootstrap of who owes its head: field peer
PROBE: Final = "probe"  # bootstrap -> the silent one
ALIVE: Final = "alive"  # its answer
SPARED: Final = "spared"  # bootstrap -> curator: field peer; it lives, keep waiting; and back: its head is here
OUT: Final = "out"  # bootstrap -> neighbours: fields peer, signature; refuse it from now on
SEEN: Final = "seen"  # their answer: fields peer, receipts ([what it was before, item, step]), claims ([item, step])
LOST: Final = "lost"  # bootstrap -> who passed it on last and lives: fields item, step; send it elsewhere

_new: Final = tuple.__new__  # a named tuple takes its arguments through a function of Python

IN_CUSTODY: Final = frozenset({BEGIN, TOKEN, TOTAL, RELAY, LOST})

# A peer that has closed takes none of these, and nothing is missing then: the result is out.
IDLE_TALK: Final = frozenset(
    {GO, PROBE, ALIVE, SPARED, OUT, SEEN, LOST, RESULT, SILENT, EXCHANGE, SKIPPED, SETTLED}
    | {COVER, MARK, RESOLVED, HEEDED}
)


def custody_of(message: Message) -> Custody | None:
    """The item and step that a message carries, if it is one that must not get lost. A report's item is its hop."""
    kind, fields, _ = message
    if kind not in IN_CUSTODY or len(fields) != (3 if kind == RELAY else 2):
        return None
    item, step = fields[-2:]
    return _new(Custody, (item, step)) if type(item) is int and type(step) is int else None
