from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from p2pdp.core.errors import NotReady
from p2pdp.transports.mqtt.access import Broker
from p2pdp.transports.mqtt.client import BrokerError
from tests.support.mosquitto import PLAIN, Mosquitto, shared_broker
from tests.support.mqtt_ends import TOPIC, End
from tests.support.ports import free_port
from tests.support.transport_worlds import patient


def play(story: Callable[[], Awaitable[None]]) -> None:
    for factory in (asyncio.new_event_loop, uvloop.new_event_loop):
        with patient(), asyncio.Runner(loop_factory=factory) as runner:
            runner.run(story())  # type: ignore[arg-type]


def test_what_comes_while_a_client_is_away_is_kept_and_nothing_once_it_is_forgotten() -> None:
    broker, runs = shared_broker(), iter(range(2))

    async def story() -> None:
        turn = next(runs)
        one, two = End(broker, f"a{turn}"), End(broker, f"b{turn}")
        assert (await one.enter(), await two.enter()) == (False, False)
        await two.client.leave(forget=False)
        numbers = [one.client.publish_now(TOPIC + two.name, bytes([each]), None) for each in range(250)]
        await one.until(lambda: len(one.settled) == 250)
        assert [number for number, _ in one.settled] == numbers
        again = End(broker, two.name)
        assert await again.enter()
        await again.until(lambda: len(again.heard) == 250)
        assert again.heard == [bytes([each]) for each in range(250)]
        for end in (one, again):
            await end.client.leave(forget=True)
        kept = True
        while kept:  # the broker may take the next connection before it has read the last word of the one before
            last = End(broker, two.name)
            kept = await last.enter()
            await last.client.leave(forget=True)

    play(story)


def test_what_is_published_at_most_once_is_settled_when_it_left_and_is_not_kept_for_who_is_away() -> None:
    broker, runs = shared_broker(), iter(range(2))

    async def story() -> None:
        turn = next(runs)
        one, two = End(broker, f"c{turn}"), End(broker, f"d{turn}")
        await one.enter()
        await two.enter()
        number = one.client.publish_now(TOPIC + two.name, b"there", None, at_most_once=True)
        assert one.settled == [], "what became of it is told after its number"
        await two.until(lambda: two.heard == [b"there"])
        assert one.settled == [(number, 0)]
        await two.client.leave(forget=False)
        for payload, at_most_once in ((b"away", True), (b"kept", False)):
            one.client.publish_now(TOPIC + two.name, payload, None, at_most_once=at_most_once)
        await one.until(lambda: len(one.settled) == 3)
        again = End(broker, two.name)
        assert await again.enter()
        await again.until(lambda: bool(again.heard))
        assert again.heard == [b"kept"]
        for end in (one, again):
            await end.client.leave(forget=True)

    play(story)


def test_a_session_that_is_continued_hears_nothing_of_another_run() -> None:
    broker, runs = shared_broker(), iter(range(2))

    async def story() -> None:
        turn = next(runs)
        writer, name = End(broker, f"writer{turn}"), f"reader{turn}"
        await writer.enter()
        before = End(broker, name)
        await before.client.enter(f"p2pdp/before/{name}")
        await before.client.leave(forget=False)
        await said(writer, (f"p2pdp/before/{name}", b"old"), (f"p2pdp/before/{name}", b"old too"))
        now = End(broker, name)
        assert await now.client.enter(f"p2pdp/now/{name}"), "the session goes on"
        await said(writer, (f"p2pdp/before/{name}", b"old"), (f"p2pdp/now/{name}", b"new"))
        await now.until(lambda: bool(now.heard))
        assert now.heard == [b"new"]
        await now.client.leave(forget=False)
        last = End(broker, name)
        await said(writer, (f"p2pdp/before/{name}", b"old"))
        assert await last.client.enter(f"p2pdp/+/{name}")
        await said(writer, (f"p2pdp/now/{name}", b"end"))
        await last.until(lambda: bool(last.heard))
        assert set(last.heard) == {b"end"}, "what was left is not kept for us any more"
        for end in (writer, last):
            await end.client.leave(forget=True)

    play(story)


async def said(end: End, *messages: tuple[str, bytes]) -> None:
    expected = len(end.settled) + len(messages)
    for topic, payload in messages:
        end.client.publish_now(topic, payload, None)
    await end.until(lambda: len(end.settled) == expected)


def test_a_broker_that_goes_away_is_a_passing_trouble(tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as running:

        async def story() -> None:
            one = End(running.broker, "a")
            await one.enter()
            running.stop()
            await one.client.until_lost()
            await one.client.leave(forget=True)
            nobody = End(running.broker, "a")
            with pytest.raises(BrokerError) as caught:
                await nobody.enter()
            assert str(caught.value) == "Connection refused"
            await nobody.client.leave(forget=True)
            running.start()

        play(story)


def test_a_refusal_is_none(tmp_path: Path) -> None:
    settings = PLAIN.replace("anonymous true", "anonymous false")
    with Mosquitto(tmp_path, settings=settings) as running:

        async def story() -> None:
            one = End(running.broker, "a")
            with pytest.raises(NotReady, match=rf"the broker at 127\.0\.0\.1:{running.port} refuses us"):
                await one.enter()
            await one.client.leave(forget=True)

        play(story)


def test_somebody_else_at_that_port() -> None:
    """One that hangs up, and one that says nothing."""

    async def story() -> None:
        async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

        port = free_port()
        async with await asyncio.start_server(hang_up, "127.0.0.1", port):
            one = End(Broker("127.0.0.1", port), "a")
            with pytest.raises(BrokerError) as caught:
                await one.enter()
            assert str(caught.value) in ("it closed the connection", "Connection reset by peer")
            await one.client.leave(forget=True)
        with socket.create_server(("127.0.0.1", port)):
            silent = asyncio.ensure_future((two := End(Broker("127.0.0.1", port), "a")).enter())
            await asyncio.sleep(0.1)
            silent.cancel()
            with pytest.raises(asyncio.CancelledError):
                await silent
            await two.client.leave(forget=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    play(story)
