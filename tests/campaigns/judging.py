"""What must hold when a schedule has come to its end, whoever lied.

`run_schedule` gives all violations of one schedule. Their kinds:

* of the wire (`oracle.py`): unreadable, conflict, gap, malformed, redrawn, doubled;
* `exception`: an honest host raised one; `stopped`: an honest peer stopped for good without a fault of its own disk;
* `out`: an honest user was put out that was there and not done;
* `hung`: nothing went on for longer than it takes to put out somebody, or with liars for as long as a standstill may
  take to be noticed (`worlds.py`);
* `storm`: frames without end cross the wires while nothing goes on;
* `ended`: the run gave up, and nobody but an honest peer that was there is named;
* `verify`: ledgers of honest runs do not verify; `blame`: verification names an honest peer;
* `exceeded`: an honest user contributed more often, or otherwise, than its records and the plan allow;
* `result`: honest users do not all have the result that was published; `inexact`: without noise a result is off;
* `uncaught`: a lie that must show does not.
"""

from __future__ import annotations

import traceback
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import error_of, estimate_of, outcome, truth_of
from p2pdp.auditor.links import UNDECIDED
from p2pdp.auditor.verify import Verification, verify
from p2pdp.core.endings import DISPUTE, STANDSTILL, Stopped
from p2pdp.core.errors import P2pdpError, RunFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user, peer_name
from p2pdp.core.messages import RESULT, TOKEN, TOTAL
from p2pdp.core.step import Message
from p2pdp.ledger.journal import PRIVATE
from p2pdp.ledger.records import (
    DRAWN,
    EVENT_KINDS,
    INPUTS,
    OWN,
    POOL,
    PUBLISHED,
    RECEIVED,
    SALT_BYTES,
    SENT,
    LedgerError,
    Record,
    read,
    whole_message,
)
from p2pdp.replay.evidence import Evidence
from p2pdp.wire.codec import unpack_value
from tests.campaigns.behaviours import KINDS
from tests.campaigns.oracle import Violation
from tests.campaigns.schedules import Schedule
from tests.campaigns.worlds import Hung, LyingWorld, Storm
from tests.support.run_oracle import Diary, Visit, contribution, same

ROUNDING: Final = 1e-4


def run_schedule(case: Schedule) -> tuple[LyingWorld, list[Violation]]:
    """Run a schedule to its end, and return what was wrong."""
    world = case.world()
    return world, judge_world(case, world)


def judge_world(case: Schedule, world: LyingWorld, *, whole: bool = True) -> list[Violation]:
    """Run a world to its end, and return what was wrong; `whole` says that its ledgers are judged too."""
    found: list[Violation] = []
    ended = ""
    try:
        world.run_to_end()
    except Hung as error:
        named = world.blocked in {*world.liars, *case.excused}
        if not named and not case.excused & {BOOTSTRAP, CURATOR}:  # a role whose disk is damaged ends the run
            found.append(Violation("hung", str(error)))
        ended = str(error)
    except Storm as error:
        found.append(Violation("storm", str(error)))
    except RunFailed as error:
        ended = str(error)
        found += _ended(case, world, ended)
    except Exception as error:  # noqa: BLE001 - that no host raises anything is what is tested
        found.append(Violation("exception", f"{type(error).__name__} {_place(error)}"))
    if world.stopped is not None and not ended:
        ended = world.stopped.reason
        found += _stopped(case, world, world.stopped)
    found += world.oracle.violations
    found += _unharmed(case, world)
    if whole and not found and not ended:
        found += _evidence(case, world)
    return found


def _place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"in {last.filename.rpartition('p2pdp/')[2]}, line {last.lineno}"


def _names(peers: Any) -> str:
    return ", ".join(str(peer_name(peer)) for peer in sorted(peers))


def _ended(case: Schedule, world: LyingWorld, text: str) -> list[Violation]:
    """A run may give up for a peer that is gone, was rolled back or lies, and says so."""
    to_blame = {*world.liars, *case.excused}
    if case.excused & {BOOTSTRAP, CURATOR}:
        return []
    if world.blocked is not None and world.blocked not in to_blame:
        return [Violation("ended", f"{text} (blocked by {peer_name(world.blocked)})")]
    return [] if to_blame else [Violation("ended", text)]


def _stopped(case: Schedule, world: LyingWorld, why: Stopped) -> list[Violation]:
    """Bootstrap may stop a run that cannot go on, and names who is concerned: a liar, or a peer that is excused.

    Where routes are hidden nobody may say whom it waits for, so a standstill there has no names. Of a dispute both may
    be honest, if a liar gave one of them what the other refuses; then the closed ledgers have to show the liar.
    """
    to_blame = {*world.liars, *case.excused}
    if why.reason == STANDSTILL and not why.concerned and world.hidden:
        return [] if to_blame else [Violation("ended", "an honest run stands still")]
    if any(to_blame & set(concerned) for concerned in why.concerned):
        return []
    if why.reason == DISPUTE and world.liars and (evidence := _collected(world)) is not None:
        shown = {problem.peer for problem in verify(evidence).problems if not problem.lacking}
        if shown and shown <= to_blame:
            return []
    return [Violation("ended", f"stopped for {why.reason}, concerned: {why.concerned}")]


def _unharmed(case: Schedule, world: LyingWorld) -> list[Violation]:
    """Honest users stay in, unless a role whose disk was set back forgot the heads of users who are done and left."""
    found = []
    out = {peer for peer in world.out if peer not in world.liars and peer not in case.excused}
    if case.excused & {BOOTSTRAP, CURATOR}:
        out = {peer for peer in out if (host := world.processes[peer].host) is None or not host.done}
    if out:
        found.append(Violation("out", f"put out: {_names(out)}"))
    for peer in world.honest:
        process = world.processes[peer]
        if peer in case.excused:
            continue
        if process.host is not None and process.host.stopped:
            found.append(Violation("stopped", f"{peer_name(peer)} stopped"))
        if process.faults["unusable_disk"]:
            found.append(Violation("stopped", f"{peer_name(peer)} cannot go on with its disk"))
    return found


def _evidence(case: Schedule, world: LyingWorld) -> list[Violation]:
    """What the ledgers say of a run that came to its end."""
    evidence = _collected(world)
    if evidence is None:
        return [Violation("exception", "a ledger cannot be read")]
    verification = verify(evidence)
    excused = case.excused - world.liars.keys()
    problems = [problem for problem in verification.problems if problem.peer not in excused]
    found = []
    if not world.liars and problems:
        found.append(Violation("verify", f"{peer_name(problems[0].peer)}: {problems[0].what}"))
    blamed = [one for one in problems if one.peer not in world.liars and not one.what.endswith(UNDECIDED)]
    if world.liars and blamed:
        found.append(Violation("blame", f"{peer_name(blamed[0].peer)}: {blamed[0].what}"))
    found += _contributions(case, world, evidence)
    found += _results(case, world)
    if not found:
        try:
            shown = problems != [] or not _replays(evidence, verification)
        except Exception as error:  # noqa: BLE001 - that no ledger makes an audit raise anything is what is tested
            return [Violation("exception", f"in the replay: {type(error).__name__} {_place(error)}")]
        found += _caught(case, world, shown=shown)
        if not case.lies and not world.out and not case.excused:
            if shown:
                found.append(Violation("verify", "a run of honest users does not replay"))
            else:
                found += _exact(world, evidence)
    return found


def _collected(world: LyingWorld) -> Evidence | None:
    """The disks as they would be collected: without torn tails, and as before a disk changed them.

    A peer finds the change when it starts again, unless the run is over by then.
    """
    for process in world.processes.values():
        if process.peer in world.damaged and (process.faults["unusable_disk"] or process.host is None):
            process.disk.view[:], process.disk.private[:] = world.damaged[process.peer]
    try:
        for process in world.processes.values():
            process.disk.cut_torn_tails()
    except LedgerError:
        return None
    views = {peer: view for peer in world.processes if (view := world.ledger(peer))}
    private = {peer: held for peer in world.processes if (held := world.ledger(peer, PRIVATE))}
    return Evidence(world.run.spec, world.roster.spec_digest, world.roster, views, private)


def _replays(evidence: Evidence, verification: Verification) -> bool:
    try:
        views = [peer for peer in verification.views if peer not in verification.missing]
        assert evidence.recorded(views).transcript is not None
    except P2pdpError:
        return False
    return True


def _contributions(case: Schedule, world: LyingWorld, evidence: Evidence) -> list[Violation]:
    """Every value that an honest user of a sum walk passed on is what it got, its own value and its draws."""
    if case.protocol not in ("walk.sum", "walk.histogram"):
        return []
    for user in (peer for peer in world.honest if is_user(peer) and peer not in case.excused):
        if user not in world.out and not _adds_up(world, diary_of_honest(user, evidence)):
            return [Violation("exceeded", f"{user} passed on something else than its records say")]
    return []


def _adds_up(world: LyingWorld, diary: Diary) -> bool:
    for (item, step), visit in diary.visits.items():
        try:
            added = contribution(world, diary, item, step, visit)
        except AssertionError:
            return False
        if any(not same(visit.before + added, value) for _, value in diary.passed[item, step + 1]):
            return False
    return True


def diary_of_honest(user: Peer, evidence: Evidence) -> Diary:
    """Return what a user did with tokens; those that it refused, and so passed on to nobody, are no visits."""
    diary, contents = Diary(), read(evidence.views[user])
    for record in read(evidence.private[user]).records:
        if record.kind == POOL:
            diary.pools[record.body.number] = unpack_value((record.value or b"")[SALT_BYTES:])
        elif record.kind == INPUTS:
            diary.inputs = unpack_value((record.value or b"")[SALT_BYTES:])
    event: tuple[Peer, Message] | None = None
    draws: list[tuple[int, int]] = []
    for record in contents.records:
        passed = None
        if record.kind in (OWN, SENT):
            message = whole_message(record)
            passed = message if message.type in (TOKEN, TOTAL) else None
        if passed is not None and event is not None:
            sender, came = event
            place = came.fields
            if passed.fields == (place[0], place[1] + 1):
                visit = Visit(sender, came.value, tuple(draws), len(diary.visits))
                diary.visits[place] = visit
                diary.passed.setdefault(passed.fields, []).append((user, passed.value))
        if record.kind == DRAWN:
            draws.append((record.body.pool, record.body.offset))
        elif record.kind in EVENT_KINDS:
            event, draws = _token(user, record), []
    return diary


def _token(user: Peer, record: Record) -> tuple[Peer, Message] | None:
    if record.kind not in (OWN, RECEIVED):
        return None
    message = whole_message(record)
    return (user if record.kind == OWN else record.body.sender, message) if message.type == TOKEN else None


def _results(case: Schedule, world: LyingWorld) -> list[Violation]:
    published = [whole_message(record) for record in read(world.ledger(CURATOR)).records if record.kind == PUBLISHED]
    if len(published) != 1:
        return [Violation("result", f"{len(published)} results were published")]
    for user in (peer for peer in world.honest if is_user(peer)):
        if user in world.out or user in case.excused:
            continue
        told = [
            whole_message(record)
            for record in read(world.ledger(user)).records
            if record.kind == RECEIVED and record.body.sender == CURATOR
        ]
        values = [message.value for message in told if message.type == RESULT]
        if len(values) != 1 or not same(values[0], published[0].value):
            return [Violation("result", f"{user} got {len(values)} results, or another one")]
    return []


def _exact(world: LyingWorld, evidence: Evidence) -> list[Violation]:
    """Without noise, faults that the run lived through leave the result as it would have been."""
    if world.run.spec.noise.mechanism != "none" or any(m.name != "none" for m in world.run.plan.protection):
        return []
    found = outcome(world.run, evidence.recorded(sorted(evidence.views), world.run), [])
    estimate = estimate_of(world.run, found)
    truth = truth_of(world.run, found, world._rows)
    error = error_of(world.run, found, estimate.value, truth)
    if error is not None and np.max(np.abs(np.asarray(error, dtype=float))) > ROUNDING:
        return [Violation("inexact", "the result without noise is not the truth")]
    return []


def _caught(case: Schedule, world: LyingWorld, *, shown: bool) -> list[Violation]:
    found = []
    if BOOTSTRAP in case.excused or CURATOR in case.excused:
        return []
    crashed = {crash.peer for crash in case.faults.crashes}
    for liar, kinds in case.lies.items():
        for kind in kinds:
            expected = KINDS[kind]
            told = expected.told is None or world.liars[liar].memory.get(expected.told)
            told = told and liar not in crashed  # what is in no ledger may be lost before it reached anybody
            caught = shown or liar in world.out or world.broken
            if told and expected.caught == "evidence" and not caught:
                found.append(Violation("uncaught", f"{kind}: nothing shows that {liar} lied"))
            if told and expected.caught == "out" and liar not in world.out and not world.broken:
                found.append(Violation("uncaught", f"{kind}: {liar} is still in"))
    return found
