"""Knowledge about users whose ledgers end early or are absent, beyond what is in the ledgers of others.

Some protocols can rebuild the forms of what such a user sent, assuming that it followed the protocol (see the analysis
of walks and of pairwise sums). Claims that rest on this say so. In other protocols these forms stay unknown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm, Source
from p2pdp.ledger.records import CLOSED, Contents
from p2pdp.protocols.run_plan import RunPlan


class Handover(NamedTuple):
    """The arrival of a token at an absent user: its step, the sender (None: it began there), and its message."""

    step: int
    sender: Peer | None
    number: int


class Absent:
    """The default, which rebuilds nothing that absent users sent."""

    def __init__(self, run: RunPlan, views: dict[Peer, Contents]) -> None:
        self.plan = run.plan
        ended = {peer for peer, view in views.items() if view.records and view.records[-1].kind == CLOSED}
        self.users = {user for user in range(run.n) if user not in ended}
        self.draws: dict[Peer, list[Mechanism]] = {user: [] for user in self.users}
        self.contributions = dict.fromkeys(self.users, 0)
        self.randomized: dict[
            Source, tuple[Mechanism, ...]
        ] = {}  # the draws that each report or gradient was made with
        self.values = dict.fromkeys(self.users, 0)  # how many are named in a user's own ledger
        self.rebuilt: set[Peer] = set()
        self.pairs: dict[Source, Mechanism] = {}  # draws that absent users share

    def sent(self, user: Peer, to: Peer, message: Message) -> Any:
        """Return the form or shares of what an absent user sent, if they follow from the message; else None."""
        return None

    def origin(self, user: Peer, message: Message) -> Handover | None:
        """Return how what an absent user sends in this message had come to it; None if that does not follow."""
        return None

    def form(self, user: Peer, message: Message, came: Handover, before: LinearForm) -> LinearForm:
        """Return the value as it left the user, having come to it as `before`; the same however often it was sent."""
        raise NotImplementedError
