from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from p2pdp.auditor.links import UNDECIDED
from p2pdp.auditor.verify import COMPLETE, INCOMPLETE, Verification, malformed, verify
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import COMMON, READY, TOKEN
from p2pdp.core.step import Message
from p2pdp.ledger import records
from p2pdp.ledger.entries import enveloped
from p2pdp.ledger.records import (
    CHOSEN,
    CLOSED,
    DRAWN,
    LEDGER_MAGIC,
    NOTE,
    OPENED,
    OWN,
    PUBLISHED,
    RECEIVED,
    SENT,
    STARTED,
    Chain,
    Record,
    public_message,
    read,
    to_skeleton,
)
from p2pdp.protocols.decision import SURVIVORS
from p2pdp.replay.evidence import Evidence
from p2pdp.sim.faults import Crash
from p2pdp.wire.codec import pack_message, unpack_message
from tests.support.pairwise_world import pairwise
from tests.support.runs import HISTOGRAM, Run, Written, chained, quiet, ring, run_of, walk

RING = ring(3, 1)
PEERS = (BOOTSTRAP, CURATOR, 0, 1, 2)
Parts = tuple[bytes, ...]  # of an entry: hash of the one before, public part, value part of each record


def stored(data: bytes) -> list[Parts]:
    return [tuple(parts) for parts in records._stored(data)[0]]


def joined(parts: list[Parts]) -> bytes:
    return b"".join([records.LEDGER_MAGIC, *(enveloped(records.pack(part)) for part in parts)])


def flipped(data: bytes) -> bytes:
    """One byte changed, in the middle."""
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def tampered(parts: list[Parts]) -> Iterator[tuple[str, list[Parts]]]:
    """Each way of changing each entry."""
    for at, (previous, public, *values) in enumerate(parts):
        before, after = parts[:at], parts[at + 1 :]

        def instead(*entry: bytes, before: list[Parts] = before, after: list[Parts] = after) -> list[Parts]:
            return [*before, entry, *after]

        yield f"public part of {at}", instead(previous, flipped(public), *values)
        yield f"first byte of {at}", instead(previous, bytes([public[0] ^ 1]) + public[1:], *values)
        yield f"last byte of {at}", instead(previous, public[:-1] + bytes([public[-1] ^ 1]), *values)
        yield f"previous hash of {at}", instead(flipped(previous), public, *values)
        yield f"{at} removed", [*before, *after]
        yield f"{at} copied", [*before, parts[at], parts[at], *after]
        for place, value in enumerate(values):
            head, tail = values[:place], values[place + 1 :]
            if value:
                yield f"value of {at}", instead(previous, public, *head, flipped(value), *tail)
                yield f"salt of {at}", instead(previous, public, *head, bytes([value[0] ^ 1]) + value[1:], *tail)
                yield f"value of {at} dropped", instead(previous, public, *head, b"", *tail)
                yield f"value of {at} moved", instead(previous, public, *head, b"", value, *tail[1:])
            else:
                yield f"value of {at} made up", instead(previous, public, *head, bytes(17), *tail)
        if after:
            yield f"{at} swapped", [*before, after[0], parts[at], *after[1:]]
            yield f"cut after {at}", parts[: at + 1]


def blamed(found: Verification) -> set[Peer]:
    return {problem.peer for problem in found.problems}


@pytest.mark.parametrize("peer", PEERS)
def test_every_change_of_every_view_record_is_found(peer: Peer) -> None:
    run = quiet(RING)
    assert verify(run.evidence).verified == COMPLETE
    data = run.evidence.views[peer]
    assert joined(stored(data)) == data
    for what, parts in tampered(stored(data)):
        found = verify(run.having(peer, joined(parts)))
        assert found.verified is None, what
        assert blamed(found) == {peer}, (what, found.problems)


@pytest.mark.parametrize("peer", PEERS)
def test_every_change_of_every_private_record_is_found(peer: Peer) -> None:
    run = quiet(RING)
    data = run.evidence.private[peer]
    for what, parts in tampered(stored(data)):
        evidence = replace(run.evidence, private={**run.evidence.private, peer: joined(parts)})
        found = verify(evidence)
        assert found.verified is None, what
        assert blamed(found) == {peer}, (what, found.problems)
        assert not found.only_missing


@pytest.mark.parametrize("peer", [BOOTSTRAP, CURATOR, 0])
def test_every_byte_of_a_small_run_s_views_counts(peer: Peer) -> None:
    """Also those of lengths and types, whatever they make of the rest of the file."""
    run = quiet(ring(1, 1))
    data = run.evidence.views[peer]
    for at in range(len(data)):
        for mask in (1, 0x80):
            found = verify(run.having(peer, data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]))
            assert blamed(found) == {peer}, at


@pytest.mark.parametrize("peer", PEERS)
def test_chains_computed_anew_without_the_key_do_not_pass(peer: Peer) -> None:
    run = quiet(RING)
    count = len(read(run.evidence.views[peer]).records)
    for at in range(1, count - 1):
        view = run.rewritten(peer, lambda written, at=at: [*written[:at], *written[at + 1 :]], sign=False)  # type: ignore[misc]
        found = verify(run.having(peer, view))
        assert blamed(found) == {peer}
        assert any("closing signature" in problem.what for problem in found.problems)


@pytest.mark.parametrize("peer", PEERS)
def test_one_s_own_key_does_not_help_against_the_head_that_the_curator_has(peer: Peer) -> None:
    run = quiet(RING)
    count = len(read(run.evidence.views[peer]).records)
    for at in range(1, count - 1):
        view = run.rewritten(peer, lambda written, at=at: [*written[:at], *written[at + 1 :]])  # type: ignore[misc]
        found = verify(replace(run.having(peer, view), private={}))
        if peer != CURATOR:
            assert blamed(found) == {peer}, at
        else:  # nobody keeps the curator's head; but what it received and sent stands elsewhere too
            record = read(run.evidence.views[CURATOR]).records[at]
            elsewhere = record.kind == SENT or (record.kind == RECEIVED and not _is_idle(record))
            assert bool(found.problems) == elsewhere, at


def _is_idle(record: Record) -> bool:
    """Of what a closed peer would not take, nobody misses the receipt."""
    return public_message(record).type in COMMON.droppable


def changed_value(kind: int, type_: str) -> Callable[[list[Written]], list[Written]]:
    def change(written: list[Written]) -> list[Written]:
        for at, one in enumerate(written):
            record = one.as_record(at)
            if one.kind == kind and public_message(record).type == type_:
                return [*written[:at], replace(one, value=flipped(one.value)), *written[at + 1 :]]
        raise AssertionError("no such record")

    return change


@pytest.mark.parametrize("kind", [SENT, RECEIVED])
def test_even_with_the_curator_s_help_the_other_end_of_a_link_differs(kind: int) -> None:
    run = quiet(RING)
    found = verify(run.forged(1, changed_value(kind, TOKEN)))
    assert found.verified is None
    assert any("sender sent" in problem.what or "in place of" in problem.what for problem in found.problems)


def dropped(kind: int, type_: str) -> Callable[[list[Written]], list[Written]]:
    def change(written: list[Written]) -> list[Written]:
        kept = []
        for at, one in enumerate(written):
            record = one.as_record(at)
            if one.kind != kind or public_message(record).type != type_:
                kept.append(one)
        assert len(kept) < len(written)
        return kept

    return change


def test_a_send_without_its_receive_is_found_at_its_sender() -> None:
    found = verify(quiet(RING).forged(1, dropped(RECEIVED, TOKEN)))
    assert [(problem.peer, problem.what) for problem in found.problems] == [
        (0, f"sends what was never received{UNDECIDED}"),  # its acknowledgement came after user 0 had closed
        (1, "sent does not follow from any event"),
    ]


def test_a_receive_without_its_send_is_found_at_the_sender_who_vouched_for_it() -> None:
    found = verify(quiet(RING).forged(1, dropped(SENT, TOKEN)))
    assert [(problem.peer, problem.what) for problem in found.problems] == [
        (1, "does not have message 1 to user 2, who holds this peer's own voucher for it"),
        (1, "is received where the protocol has sent"),
    ]


def test_messages_from_peers_that_the_roster_does_not_know_are_found() -> None:
    def change(written: list[Written]) -> list[Written]:
        stray = Written(RECEIVED, (0.0, 7, pack_message(Message(TOKEN, (0, 1))), bytes(16)), bytes(25))
        return [*written[:2], stray, *written[2:]]

    assert 1 in blamed(verify(quiet(RING).forged(1, change)))


def test_a_draw_that_is_used_twice_is_found_without_private_ledgers() -> None:
    """The auditor takes every draw for a new one; this is where it may."""
    run = quiet(walk(2, 8))

    def change(written: list[Written]) -> list[Written]:
        first = next(one for one in written if one.kind == DRAWN)
        return [replace(one, body=(*one.body[:5], *first.body[5:])) if one.kind == DRAWN else one for one in written]

    found = verify(run.forged(0, change))
    assert {problem.what for problem in found.problems} == {"uses a draw for the second time"}
    assert blamed(found) == {0}


def test_a_draw_that_no_pool_holds_is_found_with_the_private_ledger() -> None:
    run = quiet(walk(2, 8))

    def change(written: list[Written]) -> list[Written]:
        return [replace(one, body=(*one.body[:6], 99)) if one.kind == DRAWN else one for one in written]

    evidence = run.forged(0, change)
    with_private = replace(evidence, private={0: run.evidence.private[0]})
    assert any("private ledger does not hold" in problem.what for problem in verify(with_private).problems)


# Whole ledgers.


@pytest.mark.parametrize("peer", PEERS)
def test_a_missing_ledger_is_named(peer: Peer) -> None:
    found = verify(quiet(RING).without(peer))
    assert [(problem.peer, problem.index, problem.what) for problem in found.problems] == [
        (peer, None, "the ledger is missing")
    ]
    assert found.only_missing
    assert found.missing == [peer]


@pytest.mark.parametrize("peer", PEERS)
def test_a_ledger_of_another_run_is_found(peer: Peer) -> None:
    other = quiet(ring(3, 1, seed=2))
    found = verify(quiet(RING).having(peer, other.evidence.views[peer]))
    assert blamed(found) == {peer}
    assert not found.only_missing


def test_a_ledger_of_another_peer_is_found() -> None:
    run = quiet(RING)
    found = verify(run.having(1, run.evidence.views[2]))
    assert blamed(found) == {1}


def test_a_ledger_of_a_peer_that_there_is_not_is_found() -> None:
    run = quiet(RING)
    assert blamed(verify(run.having(3, run.evidence.views[2]))) == {3}


@pytest.mark.parametrize("data", [b"", b"p2pdp", b"something else altogether", records.LEDGER_MAGIC])
def test_files_that_hold_no_ledger_are_found(data: bytes) -> None:
    found = verify(quiet(RING).having(2, data))
    assert blamed(found) == {2}
    assert not found.only_missing


@pytest.mark.parametrize("peer", PEERS)
def test_bytes_after_the_end_are_found(peer: Peer) -> None:
    run = quiet(RING)
    found = verify(run.having(peer, run.evidence.views[peer] + b"\x93\xc4"))
    assert [problem.what for problem in found.problems] == ["the view ledger ends in the middle of a record"]
    assert not found.only_missing


@pytest.mark.parametrize("peer", [0, 2])
def test_a_ledger_cut_after_it_was_closed_is_altered_not_only_missing(peer: Peer) -> None:
    """The head at the curator tells a ledger that was cut from one that was never closed."""
    run = quiet(RING)
    found = verify(run.having(peer, joined(stored(run.evidence.views[peer])[:-1])))
    assert not found.only_missing
    assert any("whose head the curator was given" in problem.what for problem in found.problems)


def test_a_ledger_that_goes_on_after_its_end_is_found() -> None:
    run = quiet(RING)
    again = run.rewritten(1, lambda written: [*written, written[-1]])
    assert blamed(verify(run.having(1, again))) == {1}


def test_a_spec_that_is_not_the_signed_one_is_found() -> None:
    run = quiet(RING)
    found = verify(replace(run.evidence, spec_digest=bytes(32)))
    assert blamed(found) == {BOOTSTRAP}


def test_a_roster_that_is_not_signed_by_its_bootstrap_is_found() -> None:
    run = quiet(RING)
    roster = replace(run.evidence.roster, signature=flipped(run.evidence.roster.signature))
    assert BOOTSTRAP in blamed(verify(replace(run.evidence, roster=roster)))


def test_skeletons_are_as_good_as_ledgers() -> None:
    run = quiet(RING)
    skeletons = {peer: to_skeleton(data) for peer, data in run.evidence.views.items()}
    found = verify(replace(run.evidence, views=skeletons, private={}))
    assert found.verified == COMPLETE
    assert found.records == verify(replace(run.evidence, private={})).records


def test_one_node_s_own_part_is_judged_alone() -> None:
    run = quiet(RING)
    own = replace(run.evidence, views={1: run.evidence.views[1]}, private={1: run.evidence.private[1]}, own=1)
    assert verify(own).verified == COMPLETE
    assert verify(replace(own, views={1: flipped(run.evidence.views[1])})).verified is None


# Somebody who is out.


@pytest.fixture(scope="module")
def gone() -> Run:
    run = run_of(walk(4, 20, seed=5), Crash(peer=2, at_record=12, down_s=None))
    assert run.world.out == [2]
    return run


def test_who_is_out_may_have_a_ledger_that_ends_at_any_record_or_none(gone: Run) -> None:
    assert verify(gone.evidence).verified == INCOMPLETE
    parts = stored(gone.evidence.views[2])
    for kept in range(len(parts) + 1):
        found = verify(gone.having(2, joined(parts[:kept])))
        assert found.problems == [], kept
        assert found.verified == INCOMPLETE
        assert found.cut_short == [2]
    for evidence in (gone.without(2), gone.having(2, b"")):
        assert verify(evidence).verified == INCOMPLETE
        assert verify(evidence).cut_short == [2]


def test_who_is_out_may_not_have_an_altered_ledger(gone: Run) -> None:
    whole = stored(gone.evidence.views[2])
    for what, parts in tampered(whole):
        # Nothing vouches for the last record of a ledger that was never closed.
        if what.startswith("cut after") or parts[: len(whole) - 1] == whole[:-1]:
            continue
        found = verify(gone.having(2, joined(parts)))
        assert blamed(found) == {2}, what


def test_a_ledger_of_somebody_out_that_ends_within_a_record_is_told(gone: Run) -> None:
    found = verify(gone.having(2, gone.evidence.views[2][:-1]))
    assert blamed(found) == {2}
    assert found.only_missing


def test_others_may_not_lack_theirs_because_somebody_is_out(gone: Run) -> None:
    assert blamed(verify(gone.without(1))) == {1}
    assert blamed(verify(gone.without(1, 2))) == {1}


def test_an_exclusion_that_bootstrap_did_not_sign_excuses_nobody(gone: Run) -> None:
    def change(written: list[Written]) -> list[Written]:
        message = pack_message(Message("excluded", (1, bytes(64))))
        return [*written[:-1], Written(PUBLISHED, (message,), b""), written[-1]]

    found = verify(replace(gone.forged(BOOTSTRAP, change), private={}))
    assert found.excluded == [2]
    assert any("not signed" in problem.what for problem in found.problems)


MASKED = pairwise(5, terms="survivors_min = 3")


@pytest.fixture(scope="module")
def masked() -> Run:
    return run_of(MASKED, Crash(peer=2, at_s=0.0075, down_s=None))


def test_a_decision_on_survivors_is_consistent_with_what_everybody_was_told(masked: Run) -> None:
    found = verify(masked.evidence)
    assert (found.problems, found.excluded) == ([], [2])


@pytest.mark.parametrize("absent", [[], [2], [2, 3], [2, 9]])
def test_a_decision_that_bootstrap_did_not_sign_is_found(masked: Run, absent: list[int]) -> None:
    def change(written: list[Written]) -> list[Written]:
        message = pack_message(Message(SURVIVORS, (absent, bytes(64))))
        return [Written(one.kind, (message,), b"") if _decides(one) else one for one in written]

    found = verify(replace(masked.forged(BOOTSTRAP, change), private={}))
    assert any("decision" in problem.what for problem in found.problems)


def _decides(written: Written) -> bool:
    return written.kind == PUBLISHED and unpack_message(written.body[0], b"").type == SURVIVORS


def test_without_bootstrap_s_ledger_nobody_is_known_to_be_out(gone: Run) -> None:
    assert blamed(verify(gone.without(BOOTSTRAP))) == {BOOTSTRAP, 2}


# What a key holder may write is read without harm.


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (SENT, ()),
        (SENT, (1,)),
        (SENT, (1, b"\xff")),
        (SENT, (1, pack_message(Message(TOKEN, ())))),
        (RECEIVED, (0.0, "x", b"")),
        (PUBLISHED, (pack_message(Message("excluded", ("me",))),)),
        (DRAWN, (0, "gaussian")),
        (DRAWN, (0, "gaussian", 1.0, 0, [], [], 0)),
        (CLOSED, ()),
        (OPENED, ("view",)),
        (11, (b"", b"")),
    ],
)
@pytest.mark.parametrize("peer", [BOOTSTRAP, CURATOR, 1])
def test_records_without_the_parts_that_their_kind_asks_for_are_named(
    kind: int, body: tuple[Any, ...], peer: Peer
) -> None:
    run = quiet(RING)
    evidence = run.forged(peer, lambda written: [*written[:3], Written(kind, body, b""), *written[3:]])
    assert peer in blamed(verify(evidence))


def test_an_opening_that_lacks_a_user_s_facts_is_named() -> None:
    run = quiet(RING)
    for facts in ((), (0, None), (1,), (True, None), (1, ["a"])):
        view = run.rewritten(1, lambda w, facts=facts: [replace(w[0], body=(*w[0].body[:4], *facts)), *w[1:]])  # type: ignore[misc]
        assert blamed(verify(run.having(1, view))) == {1}


def test_nothing_at_all_is_answered() -> None:
    run = quiet(RING)
    found = verify(Evidence(run.evidence.spec, run.evidence.spec_digest, run.evidence.roster, {}, {}))
    assert found.missing == [BOOTSTRAP, CURATOR, 0, 1, 2]
    assert found.only_missing
    empty = chained([], None, run.evidence.roster.run_id, 1)
    assert blamed(verify(run.having(1, empty))) == {1}


def judged(kind: int, body: tuple[Any, ...], peer: int = 1, *, view: bool = True, value: bytes = b"") -> bool:
    return malformed(read(LEDGER_MAGIC + Chain().append(kind, body, value)), COMMON, peer, view=view) is None


@pytest.mark.parametrize("text", [ring(3, 2), walk(4, 9, tokens=2), walk(3, 5, **HISTOGRAM)])
def test_what_runs_leave_behind_is_well_formed(text: str) -> None:
    run = quiet(text)
    for peer, contents in run.contents().items():
        assert malformed(contents, COMMON, peer, view=True) is None
    for peer, data in run.evidence.private.items():
        assert malformed(read(data), COMMON, peer, view=False) is None


def test_so_is_what_exclusions_leave_behind() -> None:
    run = run_of(walk(4, 20, seed=5), Crash(peer=2, at_record=12, down_s=None))
    assert all(malformed(contents, COMMON, peer, view=True) is None for peer, contents in run.contents().items())


def test_the_first_malformed_record_is_named() -> None:
    chain = Chain()
    data = b"".join([LEDGER_MAGIC, chain.append(STARTED, (0.0,)), chain.append(STARTED, ()), chain.append(SENT, ())])
    assert malformed(read(data), COMMON, 1, view=True) == 1


TOKEN_MESSAGE = pack_message(Message(TOKEN, (0, 1)))


@pytest.mark.parametrize(
    ("kind", "body", "fine"),
    [
        (STARTED, (0.0,), True),
        (STARTED, (1,), True),
        (STARTED, (True,), False),
        (STARTED, ("now",), False),
        (SENT, (1, TOKEN_MESSAGE), True),
        (SENT, (1, pack_message(Message(READY))), False),  # with a value
        (SENT, (1, b""), False),
        (SENT, (1, pack_message(Message(TOKEN, (0, "1")))), False),
        (SENT, (1, pack_message(Message("something else", ()))), False),
        (OWN, (TOKEN_MESSAGE, 0.0), False),
        (PUBLISHED, (TOKEN_MESSAGE,), True),
        (PUBLISHED, (), False),
        (CHOSEN, (3, 2), True),
        (CHOSEN, (3, 2.0), False),
        (DRAWN, (0, "gaussian", 1.0, 0, [], 0, 0), True),
        (DRAWN, (0, "gaussian", 1.0, 0, [], 0), False),
        (NOTE, (3,), True),
        (NOTE, (), False),
        (STARTED, (0.0, 1.0), False),
    ],
)
def test_each_kind_asks_for_its_parts(kind: int, body: tuple[Any, ...], *, fine: bool) -> None:
    assert judged(kind, body, value=bytes(24)) == fine
    assert not judged(kind, body) if TOKEN_MESSAGE in body else True


def test_a_user_s_view_opens_with_its_facts() -> None:
    begin = ("view", bytes(16), 1)
    assert judged(OPENED, (*begin, bytes(32), 1, None))
    assert judged(OPENED, (*begin, bytes(32), 2, [0, 2]))
    for facts in ((), (bytes(32),), (bytes(32), 0, None), (bytes(32), 1), (bytes(32), 1, ["0"]), (1, 1, None)):
        assert not judged(OPENED, (*begin, *facts))
        assert judged(OPENED, (*begin, *facts), BOOTSTRAP)
        assert judged(OPENED, (*begin, *facts), view=False)
