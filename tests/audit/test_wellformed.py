from __future__ import annotations

from typing import Any

import pytest

from p2pdp.audit.wellformed import malformed
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.core.messages import COMMON, READY, TOKEN
from p2pdp.core.step import Message
from p2pdp.ledger.records import CHOSEN, DRAWN, LEDGER_MAGIC, NOTE, OPENED, OWN, PUBLISHED, SENT, STARTED, Chain, read
from p2pdp.sim.faults import Crash
from p2pdp.wire.codec import pack_message
from tests.support.runs import HISTOGRAM, quiet, ring, run_of, walk


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
