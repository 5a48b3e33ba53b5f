"""A host in the midst of a call: links go on, messages wait, and a crash there is one like any other."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from p2pdp.core.draws import Draws
from p2pdp.core.step import Message, Send, Step
from p2pdp.ledger.records import RECEIVED
from p2pdp.node import aside as beside
from p2pdp.node.aside import Aside
from p2pdp.peer import meanwhile
from p2pdp.peer.effects import Effects, Timing
from p2pdp.peer.payloads import POKE, RESEND
from tests.support.toys import NOISE, Quiet, Toys, consistent, forged, is_data, opened, used_draws

if TYPE_CHECKING:
    import pytest

TIMING = Timing(tick_s=1.0, resend_s=2.0, rejoin_s=1.0)


class World:
    """User 0 works on each message `work` of user 1 and answers with noise; user 1 sends what a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(beside, "LONG_S", 0.0)
        self.done = threading.Event()
        self.ready = asyncio.Event()
        self.aside: Aside[Effects] = Aside(self.ready.set)
        self.work = self.aside.does(self._work)
        self.toys = Toys({0: lambda: Quiet(self._answer), 1: Quiet}, 2, timing=TIMING)
        self.toys.boot_all()
        self.toys.settle()
        assert {who: host.meanwhile.works for who, host in self.toys.hosts.items()} == {0: False, 1: False}

    def _work(self, number: int) -> int:
        assert self.done.wait(30.0)
        return 100 * number

    def _answer(self, sender: int, message: Message, draws: Draws) -> Step:
        if message.type != "work":
            return Step()
        drawn = draws.noise(NOISE, ())
        found = self.work(message.fields[0])
        return Step((Send(sender, Message("found", (found,), drawn + draws.noise(NOISE, ()))),))

    def sends(self, *sent: Message) -> list[bytes]:
        """Frames of user 1 to user 0, not delivered."""
        host = self.toys.hosts[1]
        step = Step(tuple(Send(0, message) for message in sent))
        host._carry(step, self.toys.now_s)
        self.toys.carry(1, host._effects(self.toys.now_s))
        frames = [frame for to, frame in self.toys.flight if to == 0]
        self.toys.flight.clear()
        return frames

    def takes(self, frame: bytes) -> Effects:
        """What the shell does with a frame."""
        host, now_s = self.toys.hosts[0], self.toys.now_s
        if self.aside.working:
            return self.toys.carry(0, host.meanwhile.frame(frame, now_s))
        return self.carried(self.aside.call(partial(host.full_frame, frame, now_s)))

    def carried(self, found: Effects | None) -> Effects:
        host, now_s = self.toys.hosts[0], self.toys.now_s
        return self.toys.carry(0, host.meanwhile.begin(now_s) if found is None else found)

    async def ends(self) -> None:
        """The work is done, and the call with it; then comes what was kept."""
        host, now_s = self.toys.hosts[0], self.toys.now_s
        self.done.set()
        async with asyncio.timeout(30.0):
            await self.ready.wait()
        self.ready.clear()
        host.meanwhile.end(now_s)
        self.carried(self.aside.go_on())
        while host.meanwhile.kept and not self.aside.working:
            self.carried(self.aside.call(partial(host.meanwhile.next_kept, now_s)))

    @property
    def told(self) -> list[Any]:
        return [one[1:3] for one in self.toys.machines[0].told if one != "start"]

    def answers(self, effects: Effects) -> list[tuple[bool, int]]:
        """Of each frame to user 1 whether it is a message, and what it acknowledges."""
        said = [opened(0, 1, frame, 2) for to, frame in effects.frames if to == 1]
        return [(is_data(payload), payload.acknowledged) for payload in said]


async def test_what_led_to_work_is_recorded_before_anything_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    [frame] = world.sends(Message("work", (7,)))
    paused = world.takes(frame)
    assert world.toys.kinds(0)[-2:] == ["received", "drawn"]
    assert paused.frames == ()
    await world.ends()
    assert world.toys.kinds(0)[-4:] == ["received", "drawn", "drawn", "sent"]
    world.toys.settle()
    assert world.toys.machines[1].told[-1][:3] == (0, "found", (700,))
    consistent(world.toys)


async def test_links_answer_and_acknowledge_while_messages_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    frames = world.sends(Message("work", (1,)), Message("next", (2,)), Message("last", (3,)))
    world.takes(frames[0])
    for frame in frames[1:]:
        assert world.answers(world.takes(frame)) == []
    poke = forged(1, 0, world.toys.hosts[1]._peers.link(0).control(POKE), 2)
    assert world.answers(world.takes(poke)) == [(False, 1)], "what waits is not acknowledged"
    assert world.told == [("work", (1,))]
    at_s = world.toys.wake_at_s[0]
    assert at_s is not None
    world.toys.now_s = at_s
    assert world.answers(world.toys.wake_up(0, at_s)) == [(False, 1)], "the message that it works on is"
    assert "wake" not in world.toys.machines[0].told
    await world.ends()
    assert world.told == [("work", (1,)), ("next", (2,)), ("last", (3,))]
    world.toys.settle()
    consistent(world.toys)


async def test_what_the_call_sends_has_its_time_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    [frame] = world.sends(Message("work", (1,)))
    world.takes(frame)
    world.toys.now_s += 60.0
    await world.ends()
    sent = len(world.toys.flight)
    world.toys.wake_up(0, world.toys.now_s + 0.5)
    assert len(world.toys.flight) == sent, "nothing is sent again at once"
    [received] = [one for one in world.toys.records(0) if one.kind == RECEIVED]
    assert received.body.now_s == 0.0


async def test_one_who_works_again_keeps_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    frames = world.sends(Message("work", (1,)), Message("work", (2,)), Message("last", (3,)))
    for frame in frames:
        world.takes(frame)
    await world.ends()
    assert world.aside.working
    assert world.told == [("work", (1,)), ("work", (2,))]
    await world.ends()
    assert world.told[-1] == ("last", (3,))
    world.toys.settle()
    assert [one[2] for one in world.toys.machines[1].told if one != "start"] == [(100,), (200,)]
    consistent(world.toys)


async def test_what_is_kept_is_bounded_and_the_rest_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    monkeypatch.setattr(meanwhile, "FRAMES_MAX", 2)
    frames = world.sends(Message("work", (1,)), *(Message("m", (number,)) for number in range(5)))
    for frame in [*frames, *frames[1:]]:
        world.takes(frame)
    await world.ends()
    assert world.told == [("work", (1,)), ("m", (0,)), ("m", (1,))]
    world.takes(forged(1, 0, world.toys.hosts[1]._peers.link(0).control(RESEND), 2))
    world.toys.run(world.toys.now_s + 10.0)
    assert world.told == [("work", (1,)), *(("m", (number,)) for number in range(5))]
    consistent(world.toys)


async def test_a_frame_beyond_the_bytes_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    monkeypatch.setattr(meanwhile, "BYTES_MAX", 10)
    frames = world.sends(Message("work", (1,)), Message("m", (2,)))
    for frame in frames:
        world.takes(frame)
    assert not world.toys.hosts[0].meanwhile.kept
    await world.ends()
    assert world.told == [("work", (1,))]


async def test_a_crash_while_it_works_leads_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draw that was recorded before the work is used again, and the answer is sent once."""
    world = World(monkeypatch)
    [frame] = world.sends(Message("work", (7,)))
    world.takes(frame)
    before = used_draws(world.toys, 0)
    world.toys.kill(0)
    world.aside.leave()
    world.done.set()
    world.work = world._work
    world.toys.flight.clear()
    world.toys.boot(0)
    world.toys.run(world.toys.now_s + 20.0)
    assert used_draws(world.toys, 0)[: len(before)] == before
    assert world.toys.kinds(0).count("sent") == world.toys.kinds(1).count("received") == 1
    assert world.toys.machines[1].told[-1][2] == (700,)
    consistent(world.toys)


async def test_one_that_was_rolled_back_meanwhile_asks_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    [frame] = world.sends(Message("work", (1,)))
    world.takes(frame)
    host = world.toys.hosts[0]
    host._peers.roll_back(1)
    assert host.stopped
    assert world.toys.wake_up(0, 5.0).wake_at_s is None
    assert host.over
    world.aside.leave()
    world.done.set()
    assert world.toys.kinds(0)[-1] == "drawn"
