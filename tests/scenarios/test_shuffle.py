"""Network shuffling in worlds with crashes, losses and users who never return: every report arrives once.

The oracle knows no machine. A report goes by the name that its user chose, which is in that user's ledger, and the
curator's ledger says which names arrived and were opened.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.verify import COMPLETE, INCOMPLETE, verify
from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.step import Message
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Contents, carries_message, read, whole_message
from p2pdp.protocols.shuffle.analysis.outcome import name_of
from p2pdp.protocols.shuffle.plan import RELAY
from p2pdp.replay.transcript import replay
from p2pdp.sim.faults import Crash, Partition
from p2pdp.sim.world import World
from tests.support.fault_worlds import crashed_at_a_fourth, crashed_twice, record_counts, world_of
from tests.support.gossip_specs import LOSSY, evidence_of
from tests.support.outcomes import outcome
from tests.support.shuffle_specs import ALL, shuffle

LAZY = shuffle(5, terms="rounds = 3\nstay = 0.4")
SINGLE = shuffle(4, protocol="single")
COVERED = shuffle(4, 'kind = "ring"', terms="rounds = 3\ncover = true")
EVERY = (ALL, LAZY, SINGLE, COVERED)


def everybody(*texts: str) -> list[tuple[str, Peer]]:
    nodes = {text: int(text.split("nodes = ")[1].split()[0]) for text in texts}
    return [(text, peer) for text in texts for peer in (BOOTSTRAP, CURATOR, *range(nodes[text]))]


def reports_in(contents: dict[Peer, Contents], names: set[int | None]) -> Counter[int]:
    """Checks what is true of reports wherever they were, and gives the names of those that the curator opened."""
    sealed: dict[int, set[bytes]] = {}
    handed_in: Counter[bytes] = Counter()
    opened: Counter[int] = Counter()
    found = ((peer, record) for peer, view in contents.items() for record in view.records)
    for peer, record in found:
        message = whole_message(record) if carries_message(record) else Message("")
        if message.type in (RELAY, messages.REPORT):
            for hop in message.fields[:-1]:
                sealed.setdefault(hop, set()).add(message.value)
            handed_in[message.value] += peer == CURATOR and record.kind == RECEIVED
        if message.type == messages.OPENED_REPORT and record.kind == OWN:
            opened[message.fields[0]] += 1
    assert all(len(texts) == 1 for texts in sealed.values()), "a hop is one of one report, which never changes"
    assert not names & set(sealed), "no message tells the name inside the seal"
    assert max(handed_in.values(), default=0) <= 1
    assert max(opened.values(), default=0) <= 1
    assert opened.total() == handed_in.total()
    return opened


def judged(world: World, text: str) -> set[Peer]:
    """Runs to the end and checks what holds whatever happened; gives the users whose reports are in the result."""
    world.run_to_end()
    for process in world.processes.values():
        process.disk.cut_torn_tails()
    evidence = evidence_of(world, text)
    found = verify(evidence)
    assert found.verified == (INCOMPLETE if world.out else COMPLETE), (world.story, found.problems)  # type: ignore[attr-defined]
    contents = {peer: read(data) for peer, data in evidence.views.items() if data}
    names = {name_of(view): user for user, view in contents.items() if is_user(user)}
    opened = reports_in(contents, set(names))
    whose = {names[name] for name in opened if name in names}
    single = "shuffle.single" in text
    if not world.out:
        assert opened.total() == world.run.n
    if not single:
        assert whose >= set(range(world.run.n)) - set(world.out), world.story  # type: ignore[attr-defined]
    replay(world.run, contents)
    result = outcome(world.run, evidence.views, world.out)
    assert result.over
    assert set(result.counted) == whose
    if opened.total():
        assert result.published[0] == opened.total()
    return whose


@pytest.mark.parametrize("text", EVERY)
def test_undisturbed(text: str) -> None:
    for seed in range(5):
        judged(world_of(text, seed), text)


@pytest.mark.parametrize(("text", "peer"), everybody(*EVERY))
def test_a_crash_at_any_record_loses_no_report_and_doubles_none(text: str, peer: Peer) -> None:
    for world in crashed_at_a_fourth(text, peer):
        judged(world, text)
        assert world.out == []


@pytest.mark.parametrize("part", range(4))
def test_two_crashes_on_a_bad_network(part: int) -> None:
    for world, text in crashed_twice(EVERY, range(20 * part, 20 * part + 20), **LOSSY):
        judged(world, text)


@pytest.mark.parametrize("text", EVERY)
def test_what_somebody_held_who_never_returns_goes_another_way(text: str) -> None:
    counts = record_counts(text)
    for gone in (peer for peer in counts if is_user(peer)):
        for record in range(3 + gone, counts[gone] + 1, 8):
            world = world_of(text, 1, Crash(gone, at_record=record, down_s=None))
            judged(world, text)
            assert world.out in ([gone], []), "after the result it is missed by nobody"


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("side", [{0}, {3}, {1, 2}])
def test_a_partition_that_heals_loses_nothing(text: str, side: set[Peer]) -> None:
    for start_s in (0.01, 0.02, 0.04):
        world = world_of(text, 1, partitions=(Partition(start_s, start_s + 2.0, frozenset(side)),))
        judged(world, text)
        assert world.out == []


def test_a_relay_holds_ciphertext_only() -> None:
    """Without the curator's key nothing of a report can be told: not its category, and not that two are alike."""
    text = shuffle(6, terms="rounds = 3").replace(
        'mechanism = "randomized_response"\nepsilon = 3.0', 'mechanism = "none"'
    )
    world = world_of(text, 2)
    world.run_to_end()
    bodies: list[bytes] = []
    for user in range(6):
        for record in read(bytes(world.processes[user].disk.view)).records:
            if record.kind in (SENT, RECEIVED) and carries_message(record):
                message: Any = whole_message(record)
                if message.type == RELAY:
                    bodies.append(message.value)
    assert len({len(body) for body in bodies}) == 1
    ones = np.unpackbits(np.frombuffer(b"".join(set(bodies)), dtype=np.uint8)).mean()
    assert abs(ones - 0.5) < 0.05


def test_one_user_and_two() -> None:
    for text in (shuffle(1), shuffle(2), shuffle(1, protocol="single"), shuffle(2, 'kind = "path"')):
        judged(world_of(text, 1), text)
