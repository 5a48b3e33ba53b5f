"""What every transport owes to shells and peers. Transports are found in their room.

A new one needs a world in `tests/support/transport_worlds.py`, and no line here.
"""

from __future__ import annotations

import asyncio
import inspect
import pkgutil
from importlib import import_module
from typing import Any

import pytest

from p2pdp import transports
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.transports import pool
from tests.support.transport_worlds import LOOPS, WORLDS, World, live, play

METHODS = ("send", "answer", "belongs", "close")


def found() -> list[type[Any]]:
    kinds: dict[str, type[Any]] = {}
    for module in pkgutil.walk_packages(transports.__path__, "p2pdp.transports."):
        if module.name.endswith(".amqtt_broker"):  # a program, which needs an optional package
            continue
        for name, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            promise = inspect.isabstract(kind) or kind.__dict__.get("_is_protocol", False)
            here = kind.__module__ == module.name and not promise
            if here and all(hasattr(kind, method) for method in METHODS):
                kinds[name] = kind
    return [kinds[name] for name in sorted(kinds)]


TRANSPORTS = found()
every = live(*TRANSPORTS)


def frame(sender: int, text: str = "", size: int = 256) -> bytes:
    """A frame that says from whom it is, in its second byte."""
    return (bytes((1, sender)) + text.encode()).ljust(size, b"\x07")


def test_each_transport_is_found_and_has_a_world() -> None:
    assert {kind.__name__ for kind in TRANSPORTS} >= {"MemoryTransport", "TcpTransport"}
    assert set(TRANSPORTS) == set(WORLDS)


@every
async def test_frames_arrive_whole_and_in_order(world: World) -> None:
    one, two = await world.listening(1), await world.listening(2)
    sizes = [6, 7, 255, 256, 257, 1024, 4096, 65536, 262144] + [256 + number for number in range(500)]
    frames = [frame(1, str(number), size)[:size] for number, size in enumerate(sizes)]
    for sent in frames:
        one.send(2, sent)
    await two.until_frames(*frames)
    assert one.told == two.told == []


@every
async def test_frames_sent_together_arrive_like_others(world: World) -> None:
    one, two = world.node(1), await world.listening(2)
    sizes = [[256, 256], [6, 262144, 7], [4096] * 9, [256], [16380, 6], [300] * 100]
    frames = [
        [frame(1, f"{turn} {number}", size)[:size] for number, size in enumerate(some)]
        for turn, some in enumerate(sizes)
    ]
    for together in frames:  # the first of them while nobody was called yet
        one.send_together(2, together)
        one.send(2, frame(1, "alone"))
    await two.until_frames(*(each for together in frames for each in (*together, frame(1, "alone"))))
    assert one.told == two.told == []


@every
async def test_one_way_serves_both_directions(world: World) -> None:
    one, two = world.node(1), await world.listening(2)  # nobody can call the first
    for turn in range(20):
        one.send(2, frame(1, f"there {turn}"))
        await two.until_count(turn + 1)
        two.send(1, frame(2, f"back {turn}"))
        await one.until_count(turn + 1)
    assert two.frames == [frame(1, f"there {turn}") for turn in range(20)]
    assert one.frames == [frame(2, f"back {turn}") for turn in range(20)]
    assert len(set(one.origins)) == len(set(two.origins)) == 1


@every
async def test_an_origin_is_used_for_a_peer_only_once_the_shell_has_said_so(world: World) -> None:
    one, two = world.node(1), world.node(2)
    await world.listen(two)
    two.send(1, frame(2, "waits"))
    one.send(2, frame(1, "who is there"))
    await two.until_frames(frame(1, "who is there"))
    two.answer(two.origins[0], frame(2, "an answer needs no proof"))
    await one.until_frames(frame(2, "an answer needs no proof"))
    two.believe()
    one.send(2, frame(1, "a proof"))
    await one.until_frames(frame(2, "an answer needs no proof"), frame(2, "waits"))


@every
async def test_the_first_proof_counts_and_foreign_origins_do_nothing(world: World) -> None:
    one, two = world.node(1), await world.listening(2)
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    two.belongs(two.origins[0], 3)  # it is the first peer's
    two.send(3, frame(2, "for three"))
    for origin in (None, "somewhere", 7, ()):
        two.belongs(origin, 4)
        two.answer(origin, frame(2, "for nobody"))
    two.send(1, frame(2, "for one"))
    await one.until_frames(frame(2, "for one"))


@every
async def test_whoever_repeats_a_proof_does_not_take_over_a_way(world: World) -> None:
    one, two, other = world.node(1), await world.listening(2), world.node(3)
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    other.send(2, frame(1))
    await two.until_frames(frame(1), frame(1))
    two.send(1, frame(2, "for one"))
    await one.until_frames(frame(2, "for one"))
    assert other.frames == []


@every
async def test_a_burst_arrives_whole(world: World) -> None:
    one, two = world.node(1), await world.listening(2)
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    frames = [frame(1, str(number), 65536) for number in range(200)]
    for sent in frames:
        one.send(2, sent)
    await two.until_frames(frame(1), *frames)


@every
async def test_any_order_of_starting(world: World) -> None:
    one, three = world.node(1), world.node(3)
    for number in range(10):
        one.send(2, frame(1, str(number)))
        three.send(2, frame(3, str(number)))
    two = await world.listening(2)
    await two.until_count(20)
    for sender in (1, 3):
        assert [got for got in two.frames if got[1] == sender] == [frame(sender, str(number)) for number in range(10)]
    assert one.told == three.told == two.told == []  # nothing was lost


@every
async def test_both_ends_may_begin_at_once(world: World) -> None:
    one, two = await world.listening(1), await world.listening(2)
    for turn in range(50):
        one.send(2, frame(1, str(turn)))
        two.send(1, frame(2, str(turn)))
    await one.until_frames(*(frame(2, str(turn)) for turn in range(50)))
    await two.until_frames(*(frame(1, str(turn)) for turn in range(50)))


@every
async def test_a_peer_goes_away_and_comes_back(world: World) -> None:
    one = await world.listening(1)
    two = await world.listening(2)
    one.send(2, frame(1, "before"))
    await two.until_frames(frame(1, "before"))
    for turn in range(3):
        await world.stop(two)
        await one.until_told(*[("lost", 2), ("connected", 2)] * turn, ("lost", 2))
        one.send(2, frame(1, f"meanwhile {turn}"))
        two = await world.listening(2)
        await two.until_frames(frame(1, f"meanwhile {turn}"))
        await one.until_told(*[("lost", 2), ("connected", 2)] * (turn + 1))
        two.send(1, frame(2, f"back {turn}"))
        await one.until_count(turn + 1)
    assert one.frames == [frame(2, f"back {turn}") for turn in range(3)]


@every
async def test_a_role_that_was_killed_and_began_anew_is_told_as_lost_though_nobody_sends(world: World) -> None:
    """It does not know where users are: they have to come to it."""
    one, boss = world.node(1), await world.listening(BOOTSTRAP)
    one.send(BOOTSTRAP, frame(1))
    await boss.until_frames(frame(1))
    boss.send(1, frame(2))
    await one.until_frames(frame(2))
    for turn in range(2):
        world.kill(boss)
        await one.until_told(*[("lost", BOOTSTRAP), ("connected", BOOTSTRAP)] * turn, ("lost", BOOTSTRAP))
        one.send(BOOTSTRAP, frame(1, "where were you"))
        await one.until_told(*[("lost", BOOTSTRAP), ("connected", BOOTSTRAP)] * (turn + 1))


@every
async def test_a_role_that_called_and_was_killed_is_told_as_lost_though_nobody_sends(world: World) -> None:
    one, boss = world.node(1), world.node(BOOTSTRAP)
    one.react = lambda origin, _frame: one.belongs(origin, BOOTSTRAP)
    await world.listen(one)
    boss.send(1, frame(2))
    await one.until_frames(frame(2))
    world.kill(boss)
    await one.until_told(("lost", BOOTSTRAP))


@every
async def test_the_one_that_was_lost_may_call_first(world: World) -> None:
    one, two = await world.listening(1), await world.listening(2)
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    await world.stop(two)
    await one.until_told(("lost", 2))
    two = world.node(2)
    two.believe()
    two.send(1, frame(2, "here I am"))  # nobody can call it
    await one.until_frames(frame(2, "here I am"))
    await one.until_told(("lost", 2), ("connected", 2))
    one.send(2, frame(1, "welcome"))
    await two.until_frames(frame(1, "welcome"))


@every
async def test_both_ends_hear_of_a_broken_way_and_make_another(world: World) -> None:
    one, two = await world.listening(1), await world.listening(2)
    one.send(2, frame(1, "before"))
    await two.until_frames(frame(1, "before"))
    world.break_connections(one)
    await one.until_told(("lost", 2))
    await two.until_told(("lost", 1))
    one.send(2, frame(1, "after"))
    await two.until_frames(frame(1, "before"), frame(1, "after"))
    await one.until_told(("lost", 2), ("connected", 2))
    await two.until_told(("lost", 1), ("connected", 1))


@every
async def test_a_shell_may_answer_a_loss_by_sending(world: World) -> None:
    """As hosts do: they say hello, which makes the way anew."""
    one, two = await world.listening(1), await world.listening(2)
    lost = one.lost

    def lost_and_greeted(peer: int) -> None:
        lost(peer)
        one.send(peer, frame(1, "hello"))

    one.lost = lost_and_greeted  # type: ignore[method-assign]
    one.send(2, frame(1, "0"))
    await two.until_frames(frame(1, "0"))
    for turn in range(1, 4):
        world.break_connections(two)
        await two.until_count(turn + 1)
    assert two.frames[1:] == [frame(1, "hello")] * 3


@every
async def test_several_peers_may_be_behind_one_door(world: World) -> None:
    roles, one = [world.node(BOOTSTRAP), world.node(9), world.node(10)], world.node(1)
    await world.listen(*roles)
    for node in roles:
        one.send(node.peer, frame(1, str(node.peer)))
    for node in roles:
        await node.until_frames(frame(1, str(node.peer)))
        node.answer(node.origins[0], frame(2, str(node.peer)))
    await one.until_count(3)
    assert set(one.frames) == {frame(2, str(node.peer)) for node in roles}


@every
async def test_a_peer_may_send_to_itself(world: World) -> None:
    one = await world.listening(1)
    one.send(1, frame(1, "a note"))
    await one.until_frames(frame(1, "a note"))


@pytest.mark.parametrize("frames_max", [1, 50])
def test_a_bounded_number_of_frames_waits_for_a_peer(frames_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "QUEUE_FRAMES_MAX", frames_max)
    overfill(frames_max)


def test_a_bounded_number_of_bytes_waits_for_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "QUEUE_BYTES_MAX", 256 * 5 + 255)
    overfill(5)


def overfill(kept: int) -> None:
    async def story(world: World) -> None:
        one = world.node(1)
        frames = [frame(1, str(number)) for number in range(kept + 20)]
        for sent in frames:
            one.send(2, sent)
        two = await world.listening(2)
        await two.until_frames(*frames[:kept])
        one.send(2, frame(1, "and on"))
        await two.until_frames(*frames[:kept], frame(1, "and on"))

    for kind in TRANSPORTS:
        for loop in LOOPS:
            play(story, loop, kind)


@every
async def test_the_way_idle_for_longest_gives_way_and_nobody_loses_anything(world: World) -> None:
    one = world.node(1, connections_max=2)
    others = {peer: await world.listening(peer) for peer in (2, 3, 4, 5)}
    for peer in (2, 3):
        one.send(peer, frame(1, "first"))
        await others[peer].until_frames(frame(1, "first"))
    one.send(2, frame(1, "used again"))  # the third's is idle now
    one.send(4, frame(1, "first"))
    await others[4].until_frames(frame(1, "first"))
    others[2].send(1, frame(2, "still the same way"))
    await one.until_frames(frame(2, "still the same way"))
    for turn in range(10):
        for peer in (5, 4, 3, 2):
            one.send(peer, frame(1, f"round {turn}"))
    for node in others.values():
        await node.until_count(10 + node.frames.count(frame(1, "first")) + node.frames.count(frame(1, "used again")))
        assert node.frames[-10:] == [frame(1, f"round {turn}") for turn in range(10)]
        assert node.told == []
    assert one.told == []


@every
async def test_what_is_under_way_when_a_way_is_given_up_arrives(world: World) -> None:
    one, two, three = world.node(1, connections_max=1), await world.listening(2), await world.listening(3)
    one.believe()
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    for number in range(100):
        two.send(1, frame(2, str(number), 4096))
    one.send(3, frame(1))  # the second's way is given up here
    await one.until_frames(*(frame(2, str(number), 4096) for number in range(100)))
    await three.until_frames(frame(1))
    assert one.told == two.told == []


@every
async def test_callers_that_proved_themselves_give_way_too(world: World) -> None:
    one = await world.listening(1, connections_max=3)
    callers = [world.node(peer) for peer in range(2, 12)]
    for turn in range(3):
        for caller in callers:
            caller.send(1, frame(caller.peer, str(turn)))
        await one.until_count(10 * (turn + 1))
    assert one.told == []
    assert len(one.transport._in_use) <= 3  # type: ignore[attr-defined]


@every
async def test_closing_lets_what_was_written_leave(world: World) -> None:
    one, two = world.node(1), await world.listening(2)
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    frames = [frame(1, str(number), 65536) for number in range(40)]
    for sent in frames:
        one.send(2, sent)
    await one.transport.close()
    await two.until_frames(frame(1), *frames)
    await two.until_told(("lost", 1))


@every
async def test_a_closed_transport_is_silent(world: World) -> None:
    one, two = await world.listening(1), await world.listening(2)
    one.send(2, frame(1))
    one.send(3, frame(1, "for nobody"))
    await two.until_frames(frame(1))
    await world.stop(one)
    await world.stop(one)
    one.send(2, frame(1, "too late"))
    one.send(3, frame(1, "too late"))
    one.answer(two.origins[0], frame(1, "too late"))
    one.belongs(two.origins[0], 2)
    await two.until_told(("lost", 1))
    two.send(1, frame(2, "anybody there"))
    await world.stop(two)
    assert not one.transport._queues  # type: ignore[attr-defined]
    assert one.frames == []
    assert one.told == []
    assert two.frames == [frame(1)]


@every
async def test_closing_while_nobody_answers(world: World) -> None:
    one = world.node(1)
    for peer in range(2, 30):
        one.send(peer, frame(1))
    await asyncio.sleep(0)
    await one.transport.close()
    two = await world.listening(2)
    three = await world.listening(3)
    three.send(2, frame(3))
    await two.until_frames(frame(3))


@every
async def test_an_answer_to_somebody_who_left_is_dropped(world: World) -> None:
    one, two = world.node(1), world.node(2)
    await world.listen(two)
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    await world.stop(one)
    two.answer(two.origins[0], frame(2))
    three = world.node(3)
    three.send(2, frame(3))
    await two.until_frames(frame(1), frame(3))
    two.answer(two.origins[0], frame(2))
    two.belongs(two.origins[0], 1)
    two.send(1, frame(2, "waits"))
    two.belongs(two.origins[1], 3)
    two.send(3, frame(2, "on"))
    await three.until_frames(frame(2, "on"))
    two.believe()
    one = world.node(1)
    one.send(2, frame(1, "back"))
    await one.until_frames(frame(2, "waits"))


@every
async def test_many_peers_at_once(world: World) -> None:
    nodes = [await world.listening(peer) for peer in range(12)]
    for turn in range(5):
        for node in nodes:
            for other in nodes:
                node.send(other.peer, frame(node.peer, str(turn)))
    for node in nodes:
        await node.until_count(60)
        for other in nodes:
            mine = [got for got in node.frames if got[1] == other.peer]
            assert sorted(mine) == [frame(other.peer, str(turn)) for turn in range(5)]
    assert all(node.told == [] for node in nodes)


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_a_transport_without_ways_is_refused(kind: type[Any]) -> None:
    with pytest.raises(ValueError, match="at least one connection"):
        WORLDS[kind]().node(1, connections_max=0)
