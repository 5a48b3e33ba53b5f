from __future__ import annotations

from p2pdp.bench.conductor import POLL_S, Progress, Role
from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.step import NOTHING, Message, Send
from tests.support.toys import UniqueDraws

DRAWS = UniqueDraws()


async def test_tokens_begin_when_they_are_asked_for_and_end_with_the_last_total() -> None:
    progress = Progress()
    bootstrap, curator = Role(BOOTSTRAP, progress), Role(CURATOR, progress)
    assert bootstrap.start(1.0, DRAWS).wake_at_s == 1.0
    assert curator.start(1.0, DRAWS) == NOTHING
    assert bootstrap.wake(1.0, DRAWS).sends == ()
    progress.to_begin = [4, 5]
    step = bootstrap.wake(2.0, DRAWS)
    assert step.sends == (Send(0, Message(messages.BEGIN, (4, 0))), Send(0, Message(messages.BEGIN, (5, 0))))
    assert step.wake_at_s == 2.0 + POLL_S
    assert bootstrap.wake(2.1, DRAWS).sends == ()
    for item, over in ((5, False), (4, True)):
        assert curator.receive(0, Message(messages.TOTAL, (item, 9), 1), 3.0 + item, DRAWS) == NOTHING
        assert progress.over.is_set() == over
    assert (progress.began_s, progress.ended_s) == (2.0, 7.0)


async def test_what_else_is_said_changes_nothing() -> None:
    progress = Progress()
    role = Role(CURATOR, progress)
    assert role.receive(0, Message(messages.READY), 3.0, DRAWS) == NOTHING
    assert role.excluded(0, 3.0, DRAWS) == NOTHING
    assert not role.finished
    assert not progress.over.is_set()
