from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from p2pdp.auditor.verify import verify
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.messages import SILENT, TOKEN, TOTAL
from p2pdp.core.step import Message
from p2pdp.ledger.records import (
    CHOSEN,
    DRAWN,
    ENROLLED,
    LEDGER_MAGIC,
    OWN,
    PUBLISHED,
    RECEIVED,
    SENT,
    STARTED,
    public_message,
    read,
)
from p2pdp.replay.player import Player
from p2pdp.replay.transcript import replay
from p2pdp.wire.codec import pack_message
from tests.support.runs import HISTOGRAM, Run, Written, quiet, ring, walk

Change = Callable[[list[Written]], list[Written]]


def refusal(run: Run, user: int, change: Change) -> str:
    """What the replay says of a ledger that its owner wrote anew, with everybody vouching for it."""
    views = run.contents() | {user: read(run.rewritten(user, change))}
    with pytest.raises(VerificationFailed) as refused:
        replay(run.plan, views)
    return str(refused.value)


def find(written: list[Written], kind: int, type_: str | None = None) -> int:
    for at, one in enumerate(written):
        record = one.as_record(at)
        if one.kind == kind and (type_ is None or public_message(record).type == type_):
            return at
    raise AssertionError("there is no such record")


def with_body(kind: int, change: Callable[[tuple[Any, ...]], tuple[Any, ...]], type_: str | None = None) -> Change:
    def changed(written: list[Written]) -> list[Written]:
        at = find(written, kind, type_)
        return [*written[:at], replace(written[at], body=change(written[at].body)), *written[at + 1 :]]

    return changed


def without(kind: int, type_: str | None = None) -> Change:
    def changed(written: list[Written]) -> list[Written]:
        at = find(written, kind, type_)
        return [*written[:at], *written[at + 1 :]]

    return changed


def with_extra(one: Written, *, before: int = -1) -> Change:
    return lambda written: [*written[:before], one, *written[before:]]


RING, WALK = quiet(ring(3, 2)), quiet(walk(3, 30))


@pytest.mark.parametrize(
    ("run", "change", "says"),
    [
        (RING, with_body(SENT, lambda body: (2, *body[1:]), TOKEN), "goes to another peer"),
        (
            RING,
            with_body(SENT, lambda body: (body[0], pack_message(Message(TOKEN, (0, 3)))), TOKEN),
            "is not the message",
        ),
        (
            RING,
            with_body(SENT, lambda body: (body[0], pack_message(Message(TOTAL, (0, 2)))), TOKEN),
            "is not the message",
        ),
        (RING, without(SENT, TOKEN), "where the protocol has sent"),
        (RING, without(DRAWN), "where the protocol has drawn"),
        (RING, with_body(DRAWN, lambda body: (*body[:2], body[2] / 2, *body[3:])), "is not the draw"),
        (RING, with_body(DRAWN, lambda body: (body[0], "laplace", *body[2:])), "is not the draw"),
        (RING, with_body(DRAWN, lambda body: (*body[:4], [2], *body[5:])), "is not the draw"),
        (RING, with_body(DRAWN, lambda body: (body[0] + 1, *body[1:])), "is not the draw"),
        (
            RING,
            with_extra(Written(DRAWN, (0, "gaussian", 1.0, 0, [], 0, 0), b"")),
            "drawn does not follow from any event",
        ),
        (RING, with_extra(Written(SENT, (1, pack_message(Message(TOKEN, (0, 2)))), b"")), "sent does not follow"),
        (RING, with_extra(Written(CHOSEN, (3, 1), b"")), "chosen does not follow"),
        (RING, with_extra(Written(PUBLISHED, (pack_message(Message("result")),), b"")), "published does not follow"),
        (RING, with_extra(Written(ENROLLED, (0.0, b""), b"")), "enrolled does not follow"),
        (RING, with_extra(Written(STARTED, (0.0,), b"")), "where the protocol has sent"),
        (RING, with_extra(Written(OWN, (0.0, pack_message(Message(TOKEN, (0, 2)))), b"")), "does not follow"),
        (
            RING,
            with_extra(Written(OWN, (0.0, pack_message(Message(SILENT, (1,)))), b"")),
            "does not follow",
        ),
        (WALK, with_body(CHOSEN, lambda body: (4, body[1])), "is not the choice"),
        (WALK, with_body(CHOSEN, lambda body: (3, 3)), "is not the choice"),
        (WALK, with_body(CHOSEN, lambda body: (3, -1)), "is not the choice"),
        (WALK, without(CHOSEN), "where the protocol has chosen"),
        (WALK, without(DRAWN), "where the protocol has drawn"),
    ],
)
def test_a_ledger_that_does_not_follow_the_protocol_is_refused(run: Run, change: Change, says: str) -> None:
    said = refusal(run, 0, change)
    assert said.startswith("node 0, record ")
    assert says in said


def test_a_choice_that_was_not_acted_on_is_refused() -> None:
    assert "node 0, record" in refusal(WALK, 0, with_body(CHOSEN, lambda body: (3, (body[1] + 1) % 3)))


def test_a_skipped_draw_passes_no_verification_either_way() -> None:
    """The chain, the signature and the head are in order; only the replay knows what the protocol draws."""
    evidence = RING.forged(0, without(DRAWN))
    assert {problem.peer for problem in verify(evidence).problems} == {0}
    with pytest.raises(VerificationFailed, match="node 0, record"):
        replay(RING.plan, {peer: read(data) for peer, data in evidence.views.items()})


def test_a_randomized_report_has_its_draw() -> None:
    run = quiet(walk(3, 9, **HISTOGRAM))
    user = next(one for one in range(3) if any(record.kind == DRAWN for record in run.contents()[one].records))
    assert "drawn" in refusal(run, user, without(DRAWN))


@pytest.mark.parametrize("user", [BOOTSTRAP, CURATOR])
def test_a_ledger_that_is_no_user_s_is_not_played(user: int) -> None:
    with pytest.raises(VerificationFailed, match="no opening record"):
        Player(RING.plan, 0, read(LEDGER_MAGIC))
    assert set(RING.transcript().received) == {0, 1, 2}


def test_every_change_of_every_public_part_is_refused_or_changes_no_form() -> None:
    """Whoever holds all keys may still not tell a story that the protocol does not."""
    whole = RING.transcript()
    for user in range(3):
        for at in range(1, len(RING.contents()[user].records) - 1):
            views = RING.contents() | {user: read(RING.rewritten(user, lambda w, at=at: [*w[:at], *w[at + 1 :]]))}  # type: ignore[misc]
            kind = RING.contents()[user].records[at].kind
            try:
                found = replay(RING.plan, views)
            except VerificationFailed:
                continue
            assert kind == RECEIVED
            assert found.published is not None
            assert whole.published is not None
            assert found.published[0].expand() == whole.published[0].expand()


def test_what_was_withheld_beyond_the_limit_is_no_contribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p2pdp.protocols.walk.options.complete_limit", lambda n, steps, tokens: 2)
    run = quiet(walk(3, 31))
    assert verify(run.evidence).problems == []
    assert [len(noise) for noise in run.transcript().own_noise.values()] == [2, 2, 2]
    (claim,) = (claim for claim in run.audit().claims if (claim.observer, claim.method) == ("network", "local"))
    assert claim.mu_max == pytest.approx(math.sqrt(2.0) / 2.0)
