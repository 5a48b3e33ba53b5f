"""Check whether ledgers or skeletons are complete, unaltered and consistent with each other.

Checked are: bootstrap's signature on the roster and the spec it names; each chain, from its opening record to its
closing signature; that every record and message has the declared form; the heads that the curator received; that the
k-th message sent on a link is the k-th received there, bit for bit; that both ends of a pair met in the same rounds and
share the same draws; that bootstrap decided once, with its signature, whose values count; that no draw is used twice,
and that draws name pools which exist; that what users did follows from what they received (`following.py`), and that
tokens, reports and values are there once (`once.py`). Private ledgers are checked where they are present.
`Verification.unchecked` says what could not be checked.

Whoever holds a node's key can sign anything. A ledger that passes has all fields that verification and replay read, so
that neither fails otherwise than by saying what is wrong. A broken ledger is judged no further: what it would say about
others counts for nothing.

A peer whom bootstrap excluded may lack a ledger or have one that ends at a whole record, and what is sent to it and
from it need not be received: that is an incomplete run, not an altered one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Final

from p2pdp.auditor.following import misvalued_in, unfollowed, wrongly_begun
from p2pdp.auditor.links import decision_problems, link_problems, meeting_problems, pair_problems
from p2pdp.auditor.once import doubled
from p2pdp.auditor.rosters import roster_problems
from p2pdp.core.arrays import Each, one_by_one
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user, peer_name
from p2pdp.core.messages import EXCLUDED, HEAD, OPENED_REPORT, Exclusion, LedgerHead, MessageTable
from p2pdp.crypto.identity import verify_labelled
from p2pdp.crypto.roster import Roster
from p2pdp.ledger import records
from p2pdp.ledger.bodies import Closed, Opened, is_whole
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import (
    CLOSED,
    DRAWN,
    EXCLUSION_LABEL,
    HEAD_LABEL,
    NO_VALUE_DIGEST,
    OPENED,
    OWN,
    POOL,
    PUBLISHED,
    RECEIVED,
    SURVIVORS_LABEL,
    Contents,
    LedgerError,
    Record,
    carries_message,
    carries_value,
    head_parts,
    packed_message,
    packed_type,
    public_message,
)
from p2pdp.protocols import protocol
from p2pdp.protocols.decision import Survivors, survivors_bytes
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.published import stopped_in
from p2pdp.replay.visits import put_out

COMPLETE: Final = "complete"
INCOMPLETE: Final = "incomplete"

_OPENED: Final = packed_type(OPENED_REPORT)
_EMPTY: Final = (b"", records.LEDGER_MAGIC, records.SKELETON_MAGIC)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the ledger of `peer`: at the record with this index, or in the whole if that is None."""

    peer: Peer
    index: int | None
    what: str
    lacking: bool = False  # the ledger is absent or was never closed, which an audit may be told to allow


@dataclass
class Verification:
    problems: list[Problem] = field(default_factory=list)
    missing: list[Peer] = field(default_factory=list)  # absent or never closed, and not excluded
    excluded: list[Peer] = field(default_factory=list)
    cut_short: list[Peer] = field(default_factory=list)  # excluded, with an absent or unclosed ledger
    records: int = 0
    views: dict[Peer, Contents] = field(default_factory=dict, repr=False)
    private: dict[Peer, Contents] = field(default_factory=dict, repr=False)  # the private ledgers that are in order
    unchecked: list[str] = field(default_factory=list)  # what nothing at hand can tell

    @property
    def verified(self) -> str | None:
        """Return `complete`, `incomplete` (someone was excluded), or None where there are problems."""
        if self.problems:
            return None
        return INCOMPLETE if self.excluded or self.missing else COMPLETE

    @property
    def only_missing(self) -> bool:
        """Return whether the only problems are ledgers that are absent or were never closed."""
        return all(problem.lacking for problem in self.problems)

    def say(self, peer: Peer, index: int | None, what: str, *, lacking: bool = False) -> None:
        self.problems.append(Problem(peer, index, what, lacking))


def verify(evidence: Evidence, root: bytes | None = None, each: Each = one_by_one) -> Verification:
    """Check all evidence, and return what is wrong with it and the ledgers that are in order.

    `root` is the public key of the bootstrap whose run it must be; without it the roster's own is believed. `each`
    computes whose values are right.
    """
    verification = Verification()
    everybody = _everybody(evidence, verification, root)
    for peer in everybody:  # bootstrap first: it says who is out
        if peer in evidence.views and (contents := _read(evidence, verification, peer, VIEW)) is not None:
            verification.views[peer] = contents
        if peer == BOOTSTRAP:
            verification.excluded = _excluded(evidence, verification)
    for peer in everybody:
        _completeness(evidence, verification, peer)
        _draws(verification, peer)
        if peer in evidence.private:
            _private(evidence, verification, peer)
    for peer, index, what in decision_problems(verification.views, partial(_is_decision, evidence.roster)):
        verification.say(peer, index, what)
    if evidence.own is None:
        _heads(verification)
        _links(evidence, verification, everybody)
    _replayed(evidence, verification, each)
    verification.problems.sort(key=lambda problem: (problem.peer, problem.index if problem.index is not None else -1))
    return verification


def _everybody(evidence: Evidence, verification: Verification, root: bytes | None) -> tuple[Peer, ...]:
    """Return whose ledgers there should be, and check that the roster is bootstrap's and names this spec."""
    roster = evidence.roster
    for what in roster_problems(roster, root, alone=evidence.own is not None):
        verification.say(BOOTSTRAP, None, what)
    if roster.spec_digest != evidence.spec_digest:
        verification.say(BOOTSTRAP, None, "the spec is not the one whose digest the roster holds")
    known = (BOOTSTRAP, CURATOR, *roster.entries.named)
    everybody = known if evidence.own is None else tuple({evidence.own} & set(known))
    for peer in (*evidence.views, *evidence.private):
        if peer not in everybody:
            verification.say(peer, None, "the roster knows no such peer")
    return everybody


def _read(evidence: Evidence, verification: Verification, peer: Peer, role: str) -> Contents | None:
    """Parse one ledger, count its records, and check chain, records and opening; return None if it is broken."""
    data = (evidence.views if role == VIEW else evidence.private)[peer]
    if peer in verification.excluded and data in _EMPTY:
        return None  # it was gone before there was anything in it
    try:
        contents = evidence.contents(peer, role)
    except records.LedgerError as error:
        verification.say(peer, None, f"the {role} ledger: {error}")
        return None
    verification.records += len(contents.records)
    problem = records.chain_problem(contents)
    at = malformed(contents, _table(evidence), peer, view=role == VIEW)
    opening = contents.records[0] if contents.records else None
    if contents.torn_bytes:  # a crash leaves a ledger so, and it was never closed
        never_closed = opening is not None and contents.records[-1].kind != CLOSED
        what = f"the {role} ledger ends in the middle of a record"
        verification.say(peer, len(contents.records), what, lacking=never_closed)
    if problem is None and at is not None:
        problem = at, "lacks what its kind asks for"
    if problem is not None:
        verification.say(peer, problem[0], f"the {role} ledger: record {problem[0]} {problem[1]}")
    elif opening is None or opening.kind != OPENED or not _opens(opening.body, role, evidence.roster.run_id, peer):
        verification.say(peer, 0, f"the {role} ledger does not begin as one of this peer in this run")
    elif role == VIEW and is_user(peer) and opening.body.roster_digest != evidence.roster.digest:
        verification.say(peer, 0, "the ledger was begun under another roster")
    else:
        return contents
    return None


def _opens(body: Opened, role: str, run_id: bytes, peer: Peer) -> bool:
    return (body.role, body.run_id, body.peer) == (role, run_id, peer)


def _closing_problem(evidence: Evidence, peer: Peer, role: str, contents: Contents) -> str | None:
    last = contents.records[-1]  # an opening at least, or it would not have been taken as a ledger
    if last.kind != CLOSED:
        return f"the {role} ledger was never closed"
    roster = evidence.roster
    closed: Closed = last.body
    said = closed.voucher_key, *closed.acknowledged
    parts = head_parts(role, roster.run_id, peer, last.index, last.previous, *said)
    bare = last.digest == NO_VALUE_DIGEST
    if not bare or not verify_labelled(roster.held(peer).identity, closed.signature, HEAD_LABEL, *parts):
        return f"the {role} ledger's closing signature is not valid"
    return None


def _completeness(evidence: Evidence, verification: Verification, peer: Peer) -> None:
    out = peer in verification.excluded
    contents = verification.views.get(peer)
    if contents is None:
        if out:
            verification.cut_short.append(peer)
        elif peer not in evidence.views:
            verification.missing.append(peer)
            verification.say(peer, None, "the ledger is missing", lacking=True)
        return
    early = next((record for record in contents.records[:-1] if record.kind == CLOSED), None)
    if early is not None:
        verification.say(peer, early.index + 1, "the ledger goes on after it was closed")
    problem = _closing_problem(evidence, peer, VIEW, contents)
    if problem is None:
        return
    if contents.records[-1].kind == CLOSED:
        verification.say(peer, contents.records[-1].index, problem)
    elif out:
        verification.cut_short.append(peer)
    else:
        verification.missing.append(peer)
        verification.say(peer, len(contents.records), problem, lacking=True)


def _excluded(evidence: Evidence, verification: Verification) -> list[Peer]:
    """Return whom bootstrap excluded, by its signed decisions."""
    out: list[Peer] = []
    contents = verification.views.get(BOOTSTRAP)
    for record in contents.records if contents is not None else ():
        if record.kind != PUBLISHED:
            continue
        message = public_message(record)
        if message.type != EXCLUDED:
            continue
        peer, signature = Exclusion(*message.fields)
        known = peer in range(evidence.roster.n)
        parts = (evidence.roster.run_id, peer.to_bytes(4, "big") if known else b"")
        if known and verify_labelled(evidence.roster.bootstrap.identity, signature, EXCLUSION_LABEL, *parts):
            out.append(peer)
        else:
            verification.say(BOOTSTRAP, record.index, "an exclusion is not signed by bootstrap")
    return sorted(set(out))


def excluded_in(bootstrap: Contents) -> list[Peer]:
    """Return whom bootstrap's ledger excludes, without checking signatures."""
    published = (public_message(record) for record in bootstrap.records if record.kind == PUBLISHED)
    return sorted({Exclusion(*message.fields).peer for message in published if message.type == EXCLUDED})


def _private(evidence: Evidence, verification: Verification, peer: Peer) -> None:
    contents = _read(evidence, verification, peer, PRIVATE)
    if contents is None:
        return
    verification.private[peer] = contents
    problem = _closing_problem(evidence, peer, PRIVATE, contents)
    if problem is not None and peer not in verification.excluded and peer not in verification.missing:
        verification.say(peer, len(contents.records) - 1, problem)
    pools = (record.body for record in contents.records if record.kind == POOL)
    sizes = {body.number: (body.terms, body.size) for body in pools}
    for record in verification.views[peer].records if peer in verification.views else ():
        if record.kind == DRAWN:
            terms, pool, offset = record.body.terms, record.body.pool, record.body.offset
            if pool not in sizes or sizes[pool][0] != terms or not 0 <= offset < sizes[pool][1]:
                verification.say(peer, record.index, "names a draw that the private ledger does not hold")


def _draws(verification: Verification, peer: Peer) -> None:
    """Check that no draw is used twice: the auditor takes every draw for a new one."""
    used: set[tuple[int, int]] = set()
    for record in verification.views[peer].records if peer in verification.views else ():
        if record.kind == DRAWN:
            place = (record.body.pool, record.body.offset)
            if place in used:
                verification.say(peer, record.index, "uses a draw for the second time")
            used.add(place)


def _heads(verification: Verification) -> None:
    """Compare each ledger with the head that its owner handed to the curator."""
    contents = verification.views.get(CURATOR)
    if contents is None or any(problem.peer == CURATOR and not problem.lacking for problem in verification.problems):
        return
    handed_in: dict[Peer, bytes] = {}
    for record in contents.records:
        if record.kind == RECEIVED:
            message = public_message(record)
            if message.type == HEAD:
                handed_in[record.body.sender] = LedgerHead(*message.fields).hash
    for peer, view in verification.views.items():
        if peer == CURATOR:
            continue
        last = view.records[-1]
        if peer not in handed_in:
            if peer not in verification.excluded and not {peer, CURATOR} & set(verification.missing):
                verification.say(peer, last.index, "the curator was never given this ledger's head")
        elif handed_in[peer] != last.hash:
            verification.say(peer, last.index, "is not the ledger whose head the curator was given")


def _links(evidence: Evidence, verification: Verification, everybody: tuple[Peer, ...]) -> None:
    """Compare both ends of each link, except where one of them is known to be wrong: the other is not to blame."""
    suspects = {problem.peer for problem in verification.problems if not problem.lacking}
    views = {peer: contents for peer, contents in verification.views.items() if peer not in suspects}
    silent = (set(everybody) - views.keys()) | set(verification.missing) | set(verification.cut_short)
    droppable, sealed = _table(evidence).droppable, evidence.spec.audit.key is not None
    links = link_problems(views, silent, set(verification.excluded), droppable, sealed=sealed)
    ended = silent | set(verification.excluded)
    if BOOTSTRAP in views and stopped_in(views[BOOTSTRAP]) is not None:  # then nobody need have come so far
        ended |= views.keys()
    for peer, index, what in (*links, *meeting_problems(views), *pair_problems(views, ended)):
        verification.say(peer, index, what)


def _replayed(evidence: Evidence, verification: Verification, each: Each) -> None:
    """Check that all that was recorded follows from the protocol, and is there once."""
    contradicted = evidence.own is not None or any(not problem.lacking for problem in verification.problems)
    whole = verification.views.keys() - set(verification.missing)
    try:
        run = evidence.run
    except VerificationFailed as error:
        verification.say(BOOTSTRAP, None, str(error))
        return
    looked_at = each if contradicted else partial(each, meanwhile=evidence.recorded(whole).ahead)
    findings, untold = misvalued_in(evidence, run, whole, verification.private, looked_at)
    unjudged: list[Peer] = []
    if untold:
        more, unjudged = unfollowed(evidence, run, whole, alone=contradicted or bool(findings))
        findings += [one for one in more if one.peer not in {finding.peer for finding in findings}]
    if BOOTSTRAP in whole:
        findings += wrongly_begun(verification.views[BOOTSTRAP], run.plan.starts, verification.excluded)
    if evidence.own is None:
        out = put_out(verification.views) | set(verification.excluded)
        known = {finding.peer for finding in findings}
        findings += [one for one in doubled(verification.views, _table(evidence), out) if one.peer not in known]
    for peer, at, what in findings:
        verification.say(peer, at, what)
    verification.unchecked += [f"values of {_named(peers)}: {reason}" for reason, peers in sorted(untold.items())]
    curator = verification.views.get(CURATOR)
    if curator is not None and any(_is_opened(record) for record in curator.records):
        verification.unchecked.append("what the curator opened: nothing compares it with what users sealed")
    apart = [(unjudged, "rests on ledgers that fail"), (_gone(evidence, verification), "ledger not whole or not there")]
    verification.unchecked += [f"what {_named(peers)} did: {reason}" for peers, reason in apart if peers]


def _is_opened(record: Record) -> bool:
    return record.kind == OWN and packed_message(record).startswith(_OPENED)


def _gone(evidence: Evidence, verification: Verification) -> list[Peer]:
    everybody = range(evidence.roster.n) if evidence.own is None else ()
    short = {*verification.missing, *verification.cut_short}
    return [user for user in everybody if user in short or user not in verification.views]


def _named(peers: Sequence[Peer]) -> str:
    """Return peers as people read them, consecutive users as a range."""
    users = sorted(peer for peer in peers if is_user(peer))
    runs = [list(run) for _, run in groupby(enumerate(users), lambda one: one[1] - one[0])]
    ends = [(run[0][1], run[-1][1]) for run in runs]
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)
    named = [f"user{'s' if len(users) > 1 else ''} {shown}"] if users else []
    return " and ".join([*named, *(f"the {peer_name(peer)}" for peer in peers if not is_user(peer))])


def _is_decision(roster: Roster, decision: Survivors) -> bool:
    """Return whether bootstrap signed this decision, which names users in ascending order."""
    absent, signature = decision
    if absent != sorted(set(absent)) or not set(absent) <= set(range(roster.n)):
        return False
    parts = (roster.run_id, survivors_bytes(absent))
    return verify_labelled(roster.bootstrap.identity, signature, SURVIVORS_LABEL, *parts)


def _table(evidence: Evidence) -> MessageTable:
    return protocol(evidence.spec.run.protocol).messages


def malformed(contents: Contents, table: MessageTable, peer: Peer, *, view: bool) -> int | None:
    """Return the position of the first record that lacks what its kind, or the type of its message, asks for."""
    of_a_user = view and is_user(peer)
    for position, record in enumerate(contents.records):
        if not is_whole(record.kind, record.body, of_a_user=of_a_user) or not _message_fits(record, table):
            return position
    return None


def _message_fits(record: Record, table: MessageTable) -> bool:
    if not carries_message(record):
        return True
    try:
        message = public_message(record)
    except LedgerError:
        return False
    return table.fits(message, has_value=carries_value(record))
