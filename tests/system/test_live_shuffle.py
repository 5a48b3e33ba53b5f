"""Network shuffling among real processes: every report arrives once, whoever is killed, and wires tell nothing."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.verify import COMPLETE, INCOMPLETE
from p2pdp.core import messages
from p2pdp.core.ids import CURATOR, is_user
from p2pdp.files.folder import peer_folder, read_evidence
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Contents, carries_message, read, whole_message
from p2pdp.ledger.stored import bytes_of
from p2pdp.protocols.run_plan import plan_of_facts
from p2pdp.protocols.shuffle.analysis.outcome import name_of
from p2pdp.protocols.shuffle.plan import COVER, RELAY
from p2pdp.runs.audit import audit, verify
from p2pdp.wire.frames import BOXED, FRAME_HEADER_BYTES, PREFIX_BYTES, Frame, decode_frame
from p2pdp.wire.padding import FRAME_SIZES
from tests.support.capture import CALLED_BYTES, LEAVE, Capture, Stream, cut, search, spellings
from tests.support.launched import ROLES, Launched
from tests.support.netns import Host, Network
from tests.support.shuffle_specs import shuffle

GRAPH = 'kind = "regular"\ndegree = 4'
REALS = '"laplace"\nepsilon = 3.0'
WORD_BYTES = 8
UNDER_WAY = 50  # frames


def lasting(protocol: str, rounds: int, nodes: int = 6) -> str:
    return shuffle(nodes, GRAPH, protocol, f"rounds = {rounds}").replace("patience_s = 3.0", "patience_s = 6")


def views_of(folder: Path) -> dict[int, Contents]:
    return {peer: read(bytes_of(data)) for peer, data in read_evidence(folder).views.items() if data}


def messages_in(contents: Contents, *kinds: int) -> list[Any]:
    found = (record for record in contents.records if record.kind in kinds and carries_message(record))
    return [whole_message(record) for record in found]


def arrived(views: dict[int, Contents]) -> Counter[int]:
    """How often the report of each user arrived, by the name that its own ledger has for it."""
    names = {name_of(view): user for user, view in views.items() if is_user(user)}
    told = [one.fields[0] for one in messages_in(views[CURATOR], RECEIVED) if one.type == messages.REPORT]
    opened = [one.fields[0] for one in messages_in(views[CURATOR], OWN) if one.type == messages.OPENED_REPORT]
    assert len(told) == len(set(told)) == len(opened)
    assert not set(told) & set(opened), "no message tells the name inside the seal"
    return Counter(names[name] for name in opened if name in names)


def test_a_relay_and_bootstrap_with_the_curator_are_killed(tmp_path: Path) -> None:
    with Launched(tmp_path, lasting("all", 250)) as run:
        run.wait_for_everybody()
        for who in (2, ROLES, 5):
            run.wait_for_progress(20_000)
            run.kill(who)
        result = run.completes()
    assert result["missing"] == []
    assert arrived(views_of(run.folder)) == Counter(range(6)), "each report once"
    assert (verify(run.folder).verified, verify(run.folder).problems) == (COMPLETE, [])
    claims = audit(run.folder, None, None, allow_missing=False).claims
    assert "public" in {claim.observer for claim in claims if claim.method == "shuffle"}


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_what_a_user_held_who_never_returns_goes_another_way(tmp_path: Path, protocol: str) -> None:
    text = lasting(protocol, 400).replace("patience_s = 6", "patience_s = 3")
    with Launched(tmp_path, text, (3, UNDER_WAY), mortal=[3]) as run:
        os.kill(run.stands(), signal.SIGKILL)
        result = run.completes()
    assert result["missing"] == [3]
    counts = arrived(views_of(run.folder))
    assert max(counts.values()) == 1
    if protocol == "all":
        assert set(counts) >= set(range(6)) - {3}
    assert (verify(run.folder).verified, verify(run.folder).problems) == (INCOMPLETE, [])


# What crosses the wires


@pytest.fixture
def host(networks: type[Network]) -> Any:
    with networks(1) as network:
        yield network.hosts[0]


def recorded(tmp_path: Path, host: Host, text: str, **wishes: Any) -> tuple[Launched, list[Stream]]:
    with Capture(host) as capture:
        with host.inside():
            run = Launched(tmp_path, text.replace("[run]\n", "[run]\naudit = false\n"), **wishes)
        with run:
            run.completes()
        return run, capture.streams()


def test_wires_carry_no_report_and_nothing_twice(tmp_path: Path, host: Host) -> None:
    """Neither in clear, nor sealed, nor its name; and no two frames, of one report or of several, share a word."""
    text = lasting("all", 30).replace('"randomized_response"\nepsilon = 3.0', REALS)
    text = text.replace('"categories"', '"uniform"\nclip = [1e5, 1e6]').replace('"histogram"\ncategories = 3', '"mean"')
    run, streams = recorded(tmp_path, host, text)
    frames = [frame for frame in cut(streams) if frame.kind is BOXED]
    evidence, views = read_evidence(run.folder), views_of(run.folder)
    randomizer = plan_of_facts(evidence.spec, dict(evidence.roster.facts)).plan.randomizer
    told = [one for view in views.values() for one in messages_in(view, SENT)]
    sealed = [one for one in told if one.type in (RELAY, messages.REPORT)]
    moves = Counter(one.value for one in sealed)
    assert len(moves) == 6
    assert min(moves.values()) >= 10, "each report went from user to user many times"
    known = [one for one in messages_in(views[CURATOR], OWN) if one.type == messages.OPENED_REPORT]
    opened = [one.value for one in known]
    names = {number for one in sealed for number in one.fields[:-1]} | {one.fields[0] for one in known}
    numbers = [int(randomizer.decoded(report)[0]) for report in opened]
    secret = {
        "reports": [*opened, *(form for number in numbers for form in spellings(number) if len(form) > 4)],
        "sealed": [one.value for one in sealed],
        "parts of sealed": [one.value[at : at + WORD_BYTES] for one in sealed for at in (0, 20, 40)],
        "names": [form for name in names for form in spellings(name) if len(form) >= WORD_BYTES],
    }
    assert search((frame.body for frame in frames), secret) == {}
    assert {frame.size for frame in frames} <= set(FRAME_SIZES)
    assert words_shared(frame.body for frame in frames) == 0
    assert words_shared([b"12345678", os.urandom(40) + b"12345678"]) == 1


def words_shared(bodies: Any) -> int:
    """How many strings of eight bytes stand anywhere in two places."""
    words = [np.lib.stride_tricks.sliding_window_view(np.frombuffer(body, np.uint8), WORD_BYTES) for body in bodies]
    table = np.ascontiguousarray(np.concatenate(words)).view("<u8")[:, 0]
    return len(table) - len(np.unique(table))


@pytest.mark.parametrize("cover", [True, False])
def test_with_cover_each_neighbour_gets_as_many_equal_frames(tmp_path: Path, host: Host, cover: bool) -> None:
    rounds = 150 if cover else 800  # the load of an edge is then some 400, give or take 15
    text = shuffle(5, 'kind = "ring"', terms=f"rounds = {rounds}\ncover = {str(cover).lower()}")
    run, streams = recorded(tmp_path, host, text, trace_wire=cover)
    evidence, views = read_evidence(run.folder), views_of(run.folder)
    slots = plan_of_facts(evidence.spec, dict(evidence.roster.facts)).plan.slots
    counts, sizes = frames_between(streams)
    assert len(counts) == 10
    assert sizes == {FRAME_SIZES[0]}
    most, least = max(counts.values()), min(counts.values())
    if not cover:
        assert slots is None
        assert most - least > 10, "the loads of edges are seen"
        return
    assert slots is not None
    expected = rounds * (slots + 1)  # and a mark
    numbers: dict[tuple[int, int], set[int]] = {}
    alone: Counter[tuple[int, int]] = Counter()  # acknowledgements that travel alone: by the clock, so not as many
    for user in range(5):
        for line in (peer_folder(run.folder, user) / "wire.jsonl").read_text().splitlines():
            told = json.loads(line)
            if isinstance(told["from"], int) and told["number"] is None:
                alone[told["from"], user] += 1
            elif isinstance(told["from"], int):
                numbers.setdefault((told["from"], user), set()).add(told["number"])
    assert {way: len(known) for way, known in numbers.items()} == dict.fromkeys(counts, expected)
    assert all(count >= expected + alone[way] for way, count in counts.items()), "the recording has them all"
    for user in range(5):
        passed = [one for one in messages_in(views[user], SENT) if one.type in (RELAY, COVER)]
        assert set(Counter(one.fields[-1] for one in passed).values()) == {2 * slots}, "in every round"


def frames_between(streams: list[Stream]) -> tuple[Counter[tuple[int, int]], set[int]]:
    """How many boxed frames went from user to user, and of which sizes; who was called stands before the first."""
    ends: dict[Any, dict[bool, Stream]] = {}
    for stream in streams:
        ends.setdefault(frozenset(stream.ends), {})[stream.dialled] = stream
    counts: Counter[tuple[int, int]] = Counter()
    sizes: set[int] = set()
    for both in ends.values():
        called = int.from_bytes(both[True].whole()[:CALLED_BYTES], "big", signed=True)
        callers = {frame.sender for frame in frames_in(both[True])}
        if not is_user(called) or not all(map(is_user, callers)):
            continue
        for frame in (*frames_in(both[True]), *frames_in(both[False])):
            if frame.kind is BOXED:
                (caller,) = callers
                counts[frame.sender, caller if frame.sender == called else called] += 1
                sizes.add(len(frame.body) + FRAME_HEADER_BYTES)
    return counts, sizes


def frames_in(stream: Stream) -> list[Frame]:
    data, found = stream.whole(), []
    at = CALLED_BYTES if stream.dialled else 0
    while at < len(data):
        size = int.from_bytes(data[at : at + PREFIX_BYTES], "big")
        whole = data[at + PREFIX_BYTES : at + PREFIX_BYTES + size]
        at += PREFIX_BYTES + size
        if whole != LEAVE:
            found.append(decode_frame(whole))
    return found
