"""Liars who sign what they like: each is named by its own ledger, and nobody else's machine is blamed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from p2pdp.auditor.following import misvalued_in, unfollowed, wrongly_begun
from p2pdp.auditor.verify import Verification, verify
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.messages import BEGIN, TOKEN
from p2pdp.core.step import Message
from p2pdp.ledger.records import DRAWN, RECEIVED, SALT_BYTES, SENT, read, to_skeleton
from p2pdp.replay.evidence import Evidence
from p2pdp.wire.codec import pack_message
from tests.support.gossips import gossip
from tests.support.pairwise_world import pairwise
from tests.support.runs import Run, Written, quiet, ring, walk
from tests.support.shuffle_specs import shuffle

RING, WALK = ring(4, 2), walk(4, 24)
TEXTS = [RING, WALK, gossip(5, "ring"), shuffle(5), pairwise(5, terms="survivors_min = 3")]
VALUE = bytes(SALT_BYTES) + b"\x01" + bytes(8)
Change = Callable[[list[Written]], list[Written]]


def to(receiver: Peer, message: Message) -> Written:
    return Written(SENT, (receiver, pack_message(message)), VALUE)


def come(sender: Peer, message: Message) -> Written:
    return Written(RECEIVED, (9.0, sender, pack_message(message)), VALUE)


def at_the_end(*more: Written) -> Change:
    return lambda written: [*written[:-1], *more, written[-1]]


def told(run: Run, changes: dict[Peer, Change]) -> Verification:
    """Judge ledgers that their owners wrote anew, all of which the curator vouches for."""
    evidence = run.evidence
    for peer, change in changes.items():
        evidence = replace(run, evidence=evidence).forged(peer, change)
    return verify(evidence)


def machines_blamed(found: Verification) -> set[Peer]:
    """Whose ledger does not follow from itself, and not whose link differs from somebody else's."""
    links = ("sends what was never received", "is not what record", "receives what its sender's ledger does not send")
    return {problem.peer for problem in found.problems if not problem.what.startswith(links)}


def test_a_doubled_token_is_its_doubler_s() -> None:
    token = Message(TOKEN, (0, 3))
    found = told(quiet(WALK), {1: at_the_end(to(2, token)), 2: at_the_end(come(1, token))})
    assert 1 in machines_blamed(found)
    assert found.verified is None


def test_who_milks_another_is_named_and_its_victim_is_not() -> None:
    """Forged tokens of rising steps; the victim passes on what it got, as its machine does."""
    run = quiet(WALK)
    forged = [Message(TOKEN, (0, step)) for step in range(30, 40)]
    found = told(run, {3: at_the_end(*(to(1, one) for one in forged))})
    assert machines_blamed(found) == {3}
    (first,) = {problem.index for problem in found.problems if problem.peer == 3 and "follow" in problem.what}
    assert first == len(read(run.evidence.views[3]).records) - 1


def test_a_second_value_of_one_round_is_its_sender_s() -> None:
    run = quiet(gossip(5, "ring"))
    sent = next(one for one in read(run.evidence.views[2]).records if one.kind == SENT and one.value)
    second = Written(SENT, tuple(sent.body), VALUE)
    arrived = Written(RECEIVED, (9.0, 2, sent.body.message), VALUE)
    found = told(run, {2: at_the_end(second), sent.body.receiver: at_the_end(arrived)})
    assert 2 in machines_blamed(found)


@pytest.mark.parametrize("item", [0, 1])
def test_bootstrap_begins_what_the_plan_has_and_once(item: int) -> None:
    run = quiet(WALK)
    begin = Message(BEGIN, (item, 0))
    bootstrap = run.rewritten(BOOTSTRAP, at_the_end(Written(SENT, (2, pack_message(begin)), b"")))
    (found,) = wrongly_begun(read(bootstrap), run.plan.plan.starts, ())
    assert found.peer == BOOTSTRAP
    assert list(wrongly_begun(run.contents()[BOOTSTRAP], run.plan.plan.starts, ())) == []
    again = list(wrongly_begun(read(bootstrap), run.plan.plan.starts, (0,)))
    assert bool(again) == (item == 1), "where the first holder is out, it is begun elsewhere"


def test_two_liars_are_both_named() -> None:
    run = quiet(WALK)
    skip: Change = lambda written: [one for one in written if one.kind != DRAWN]  # noqa: E731
    assert machines_blamed(told(run, {1: skip, 3: at_the_end(to(0, Message(TOKEN, (0, 9))))})) == {1, 3}


@pytest.mark.parametrize("text", TEXTS)
def test_each_honest_ledger_follows_alone_and_with_the_others(text: str) -> None:
    run = quiet(text)
    for alone in (True, False):
        assert unfollowed(run.evidence, run.plan, run.evidence.views.keys(), alone=alone) == ([], [])


def random_lie(rng: random.Random, written: list[Written]) -> list[Written]:
    """Remove, repeat, move or take the value of a record, other than the first and the last."""
    at = rng.randrange(1, len(written) - 1)
    other = rng.randrange(1, len(written) - 1)
    lie = rng.choice(["remove", "repeat", "move", "draw"])
    if lie == "remove":
        return [*written[:at], *written[at + 1 :]]
    if lie == "repeat":
        return [*written[:at], written[at], *written[at:]]
    if lie == "move":
        rest = [*written[:at], *written[at + 1 :]]
        return [*rest[:other], written[at], *rest[other:]]
    drawn = next((place for place, one in enumerate(written) if one.kind == DRAWN), at)
    return [*written[:drawn], replace(written[drawn], body=(9, *written[drawn].body[1:])), *written[drawn + 1 :]]


@pytest.mark.parametrize("text", TEXTS)
def test_whatever_a_liar_writes_no_honest_machine_is_blamed(text: str) -> None:
    """The liar signs what it wrote, and the curator vouches for it; also where ledgers hold no values."""
    run = quiet(text)
    rng = random.Random(text)  # noqa: S311
    told_of = 0
    for _ in range(12):
        liar = rng.randrange(run.plan.n)
        seed = rng.random()
        evidence = run.forged(liar, lambda written, seed=seed: random_lie(random.Random(seed), written))  # type: ignore[misc]  # noqa: S311
        for bare in (False, True):
            views = {peer: to_skeleton(data) if bare else data for peer, data in evidence.views.items()}
            found = verify(replace(evidence, views=views))
            assert machines_blamed(found) <= {liar}, found.problems
            told_of += bool(found.problems)
    assert told_of >= 12


@pytest.mark.parametrize("text", [RING, WALK])
def test_a_false_total_is_found_where_values_are_at_hand_and_else_said_to_be_unchecked(text: str) -> None:
    run = quiet(text)
    user = next(
        user for user in range(4) if any(one.kind == SENT and one.value for one in run.contents()[user].records)
    )

    def lie(written: list[Written]) -> list[Written]:
        at = next(at for at, one in enumerate(written) if one.kind == SENT and one.value)
        value = written[at].value
        return [*written[:at], replace(written[at], value=value[:-1] + bytes([value[-1] ^ 1])), *written[at + 1 :]]

    with_private = replace(run.forged(user, lie), private=run.evidence.private)
    assert user in machines_blamed(verify(with_private))
    view = read(with_private.views[user])
    findings, untold = misvalued_in(replace(with_private, private={}), run.plan, [user], {})
    assert findings == []
    assert untold == {"private ledger not there": [user]}
    assert not view.skeleton


def test_what_is_not_checked_is_said() -> None:
    run = quiet(RING)
    assert verify(run.evidence).unchecked == []
    without = replace(run.evidence, private={peer: data for peer, data in run.evidence.private.items() if peer != 2})
    found = verify(without)
    assert (found.problems, found.unchecked) == ([], ["values of user 2: private ledger not there"])
    skeletons: Evidence = replace(
        run.evidence, views={peer: to_skeleton(data) for peer, data in run.evidence.views.items()}, private={}
    )
    assert verify(skeletons).unchecked == ["values of users 0-3 and the curator: no values at hand"]
