"""The evidence of a run, read, parsed and replayed once: outcome, audit, attack and report share it.

`files/` makes it from a folder or an exported file, and `auditor/verify.py` judges it; nothing here is trusted before.
Ledgers are parsed when they are first asked for. `Recorded` holds the ledgers that a judgement rests on, with the
transcript that replaying them gives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.ids import Peer, peer_name
from p2pdp.core.spec import Spec
from p2pdp.crypto.entropy import SALT_BYTES
from p2pdp.crypto.roster import Roster
from p2pdp.ledger.bodies import is_whole
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import INPUTS, OPENED, Contents, LedgerError, chain_problem
from p2pdp.ledger.stored import Entries, Ledger, contents_of, first_of, has_begun
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
from p2pdp.replay.findings import NotFollowed
from p2pdp.wire.codec import unpack_value

if TYPE_CHECKING:
    from p2pdp.replay.transcript import Transcript


@dataclass(eq=False)
class Recorded:
    """Parsed ledgers or skeletons, and what replaying them under a plan gives."""

    played: RunPlan = field(repr=False)  # the plan under which they are replayed
    views: Mapping[Peer, Contents] = field(repr=False)

    @cached_property
    def transcript(self) -> Transcript:
        """Replay the machines over linear forms."""
        from p2pdp.replay.transcript import replay  # which processes that only read folders do not need

        return replay(self.played, dict(self.views))

    @property
    def ahead(self) -> Callable[[], None] | None:
        """Return what replays for whoever asks for the transcript next; None where it is there."""
        return None if "transcript" in vars(self) else self._replay

    def _replay(self) -> None:
        with suppress(NotFollowed):  # which is found again by whoever asks
            _ = self.transcript


@dataclass(frozen=True)
class Evidence:
    """The signed roster, and the ledgers or skeletons of those who took part."""

    spec: Spec
    spec_digest: bytes  # recomputed from the spec at hand, to be compared with the signed one
    roster: Roster
    views: Mapping[Peer, Ledger] = field(repr=False)  # ledgers or skeletons; absent where there is none
    private: Mapping[Peer, Ledger] = field(repr=False, default_factory=dict)
    own: Peer | None = None  # set where only this node's part of a run is at hand
    _parsed: dict[tuple[Peer, str], Contents] = field(init=False, repr=False, compare=False, default_factory=dict)
    _entries: Entries = field(init=False, repr=False, compare=False, default_factory=Entries)
    _recorded: list[Recorded] = field(init=False, repr=False, compare=False, default_factory=list)

    def contents(self, peer: Peer, role: str = VIEW) -> Contents:
        """Return the parsed ledger of a peer that has one; raise `LedgerError` if it cannot be parsed."""
        assert role in (VIEW, PRIVATE)
        place = (peer, role)
        if place not in self._parsed:
            self._parsed[place] = contents_of((self.views if role == VIEW else self.private)[peer], self._entries)
        return self._parsed[place]

    def neighbours_told(self, user: Peer) -> list[Peer] | None:
        """Return whom a user's ledger begins by naming as its neighbours, as it says so: nothing is verified.

        None where it names nobody, there is no such beginning, or it names somebody who takes no part.
        """
        opening = None
        with suppress(LedgerError):
            opening = first_of(self.views[user]) if user in self.views else None
        if opening is None or opening.kind != OPENED or not is_whole(OPENED, opening.body, of_a_user=True):
            return None
        named = opening.body.neighbours
        users = range(self.roster.n)
        return None if named is None or user in named or any(one not in users for one in named) else sorted(named)

    def chained(self, peer: Peer) -> Contents | None:
        """Return the view of a peer, whose chain must hold; None where it is not at hand."""
        return self._chained(peer, VIEW) if peer in self.views else None

    def _chained(self, peer: Peer, role: str) -> Contents:
        try:
            contents = self.contents(peer, role)
        except LedgerError as error:
            raise VerificationFailed(f"node {peer_name(peer)}: {error}") from None
        problem = chain_problem(contents)
        if problem is not None:
            raise VerificationFailed(f"node {peer_name(peer)}, record {problem[0]}: {problem[1]}")
        return contents

    def inputs(self, user: Peer) -> list[Any] | None:
        """Return a user's values; None where its private ledger is not at hand or holds them no more."""
        for record in self._chained(user, PRIVATE).records if self.private.get(user) else ():
            if record.kind == INPUTS and record.value is not None:
                return list(unpack_value(record.value[SALT_BYTES:]))
        return None

    @cached_property
    def run(self) -> RunPlan:
        """Return the plan of the run that took place, from the spec and the facts that bootstrap signed."""
        try:
            return plan_of_facts(self.spec, dict(self.roster.facts))
        except UsageError as error:  # which is no mistake of the caller
            raise VerificationFailed(f"spec and roster do not belong together: {error}") from None

    @property
    def begun(self) -> list[Peer]:
        """Return the peers whose view has a whole record at least, or is damaged: reading it tells where."""
        return [peer for peer in self.views if self.begins(peer)]

    def begins(self, peer: Peer) -> bool:
        """Return whether a peer is one of these, without a look at the others."""
        return peer in self.views and has_begun(self.views[peer])

    def recorded(self, peers: Collection[Peer], run: RunPlan | None = None) -> Recorded:
        """Return the views of these peers under a launcher's plan, or that of the roster.

        Whoever asks for the same views under an equal plan shares their transcript.
        """
        plan = self.run if run is None else run
        wanted = set(peers)
        for known in self._recorded:
            if known.views.keys() == wanted and known.played.plan == plan.plan:
                return known
        made = Recorded(plan, {peer: self.contents(peer) for peer in sorted(self.views) if peer in wanted})
        self._recorded.append(made)
        return made

    def having(self, views: Mapping[Peer, Ledger]) -> Evidence:
        """Return this evidence with more views, in place of those that it has of the same peers."""
        more = Evidence(self.spec, self.spec_digest, self.roster, {**self.views, **views}, self.private, self.own)
        same = {place: one for place, one in self._parsed.items() if place[1] == PRIVATE or place[0] not in views}
        more._parsed.update(same)
        return more
