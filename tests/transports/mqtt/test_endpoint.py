from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2pdp.core.errors import NotReady
from p2pdp.crypto.entropy import random_bytes
from p2pdp.transports.mqtt import endpoint as endpoint_module
from p2pdp.transports.mqtt import transport as mqtt_module
from p2pdp.transports.mqtt.access import Broker, Login, StationSettings
from p2pdp.transports.mqtt.client import BrokerError, Client
from p2pdp.transports.mqtt.endpoint import Endpoint
from p2pdp.transports.mqtt.packets import Act, packet_head
from p2pdp.transports.mqtt.transport import Call, MqttTransport
from p2pdp.transports.pool import STRANGER_FRAME_BYTES_MAX
from tests.support.mosquitto import PLAIN, Mosquitto
from tests.support.mqtt_ends import End
from tests.support.ports import free_port
from tests.support.transport_worlds import LOOPS, MqttWorld, Node, live, play

if TYPE_CHECKING:
    import pytest

mqtt = live(MqttTransport)


def frame(sender: int, text: str = "", size: int = 256) -> bytes:
    return (bytes((1, sender)) + text.encode()).ljust(size, b"\x07")


class Kept:
    """A broker of the test's own; a world at it."""

    def __init__(self, place: Path) -> None:
        self.running = Mosquitto(place, settings=f"{PLAIN}persistence true\npersistence_location {place}/\n")

    def play(self, story: Any) -> None:
        for loop in LOOPS:
            with self.running:

                async def at_it(world: MqttWorld) -> None:
                    world.broker = self.running.broker
                    await story(world)

                play(at_it, loop, MqttTransport)


def come_back_behind(first: Endpoint, late: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a station reach the broker only once another one has, since the broker keeps no frames for who is away."""
    enter = Client.enter

    async def behind(client: Client, topic: str) -> bool:
        while topic == late.settings.topic(late.settings.name) and not first.connected:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
        return await enter(client, topic)

    monkeypatch.setattr(Client, "enter", behind)


def test_what_was_posted_outlasts_a_broker_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path)

    async def story(world: MqttWorld) -> None:
        one, two = await world.listening(1), await world.listening(2)
        one.send(2, frame(1, "before"))
        await two.until_frames(frame(1, "before"))
        come_back_behind(world.of[two], world.of[one], monkeypatch)
        kept.running.stop()
        await one.until_told(("lost", 2))
        for number in range(300):
            one.send(2, frame(1, str(number)))
        kept.running.start()
        await one.until_told(("lost", 2), ("connected", 2))
        await two.until(lambda: len(set(two.frames)) == 301)
        assert set(two.frames) == {frame(1, "before"), *(frame(1, str(number)) for number in range(300))}

    kept.play(story)


def test_what_waits_for_a_broker_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "WAITING_FRAMES_MAX", 50)
    kept = Kept(tmp_path)

    async def story(world: MqttWorld) -> None:
        one, two = await world.listening(1), await world.listening(2)
        one.send(2, frame(1))
        await two.until_frames(frame(1))
        come_back_behind(world.of[two], world.of[one], monkeypatch)
        kept.running.stop()
        await one.until_told(("lost", 2))
        for number in range(500):
            one.send(2, frame(1, str(number)))
        station = world.of[one]
        assert len(station._waiting) <= 50
        kept.running.start()
        await two.until(lambda: frame(1, "0") in two.frames)

    kept.play(story)


def test_answers_to_strangers_are_bounded_first_then_what_ends_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "WAITING_FRAMES_MAX", 50)
    monkeypatch.setattr(endpoint_module, "WAITING_SPARE_MAX", 5)

    async def story() -> None:
        node = Node(1)
        station = Endpoint(StationSettings(Broker("127.0.0.1", free_port()), Login("a"), "run", "a"), random_bytes)
        node.transport = transport = MqttTransport(node, station, {}.get)
        call = Call(station, transport, "b", bytes(8), 1, 2)
        for number in range(200):
            leave = packet_head(Act.LEAVE, number.to_bytes(8, "big"), 1, b"stranger", from_caller=True)
            station._heard(leave)
        assert len(station._waiting) == 50
        for _ in range(20):
            call.ask()
        assert len(station._waiting) == 55
        await transport.close()

    asyncio.run(story())


def test_a_call_waits_once_for_a_broker_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_module, "CALL_S", 0.001)
    monkeypatch.setattr(mqtt_module, "CALL_MAX_S", 0.002)

    async def story() -> None:
        node = Node(1)
        station = Endpoint(StationSettings(Broker("127.0.0.1", free_port()), Login("a"), "run", "a"), random_bytes)
        node.transport = transport = MqttTransport(node, station, {2: "b"}.get)
        node.send(2, frame(1))
        await asyncio.sleep(0.1)
        assert len(station._waiting) == 1
        await transport.close()

    asyncio.run(story())


def test_a_station_that_dies_is_never_silent() -> None:
    async def story() -> None:
        failed = asyncio.get_running_loop().create_future()
        node = Node(1)
        node.fail = failed.set_result  # type: ignore[method-assign]
        station = Endpoint(StationSettings(Broker("a..b", 1), Login("a"), "run", "a"), random_bytes)
        node.transport = MqttTransport(node, station, {}.get)
        station.begin()
        async with asyncio.timeout(240):
            error = await failed
        assert isinstance(error, NotReady)
        assert "the broker at a..b:1 cannot be kept: UnicodeError" in str(error)
        await node.transport.close()

    asyncio.run(story())


def test_a_connection_that_never_lasts_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "AGAIN_S", 0.01)
    kept = Kept(tmp_path)

    async def story(world: MqttWorld) -> None:
        errors: list[BaseException] = []
        given_up = asyncio.Event()

        def fail(error: BaseException) -> None:
            errors.append(error)
            given_up.set()

        node = world.node(1)
        node.fail = fail  # type: ignore[method-assign]
        await world.listen(node)
        station = world.of[node]
        login: Login = station.settings.login
        while not errors:
            end = End(world.broker, login.client)  # somebody under the same name, again and again
            with suppress(BrokerError, NotReady):
                await end.enter()
                ends = [asyncio.ensure_future(end.client.until_lost()), asyncio.ensure_future(given_up.wait())]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for each in ends:
                    each.cancel()
                await asyncio.gather(*ends, return_exceptions=True)
            await end.client.leave(forget=False)
        assert isinstance(errors[0], NotReady)
        assert f"under the name {login.client}" in str(errors[0])

    kept.play(story)


def test_a_broker_that_refuses_ends_the_shell(tmp_path: Path) -> None:
    running = Mosquitto(tmp_path, settings="allow_anonymous false\n")

    async def story(world: MqttWorld) -> None:
        world.broker = running.broker
        errors: list[BaseException] = []
        told = asyncio.Event()
        node = Node(1)

        def fail(error: BaseException) -> None:
            errors.append(error)
            told.set()

        node.fail = fail  # type: ignore[method-assign]
        node.transport = world._transport(node, 5)
        world.nodes.append(node)
        await world.listen(node)
        await told.wait()
        assert "refuses us" in str(errors[0])

    with running:
        play(story, "uvloop", MqttTransport)


async def stranger(world: MqttWorld, name: str = "stranger") -> End:
    """Comes when the stations that listen are there: a broker keeps nothing for those it has never seen."""
    while any(at.takes_calls and at._client is None for at in world.of.values()):  # noqa: ASYNC110  (it has no event)
        await asyncio.sleep(0.01)
    end = End(world.broker, f"{world.run}-{name}")
    await end.client.enter(f"p2pdp/{world.run}/{name}")
    return end


def topic(world: MqttWorld, node: Node) -> str:
    return f"p2pdp/{world.run}/{world.of[node].settings.name}"


@mqtt
async def test_bytes_of_strangers_are_counted_and_disturb_nobody(world: MqttWorld) -> None:
    one, two = await world.listening(1), await world.listening(2)
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    other = await stranger(world)
    there, name = topic(world, two), b"stranger"
    known = world.of[one].settings.name.encode()
    for payload in (
        b"garbage" * 50,
        b"",
        packet_head(Act.FRAME, bytes(8), 2, name, from_caller=True) + frame(1, "of no call"),
        packet_head(Act.FRAME, bytes(8), 2, known, from_caller=True) + frame(1, "of no call"),
        packet_head(Act.END, bytes(8), 2, known, from_caller=True),
        packet_head(Act.CALL, bytes(8), 9, name, from_caller=True),
        packet_head(Act.CALL, bytes(8), 2, name, from_caller=False),
    ):
        other.client.publish_now(there, payload, None)
    await other.until(lambda: len(other.heard) == 3)  # each of what it called is over
    one.send(2, frame(1, "still"))
    await two.until_frames(frame(1), frame(1, "still"))
    assert world.of[two].faults == {"malformed_packet": 2, "unknown_call": 2}
    assert (one.told, two.told) == ([], [])
    await other.client.leave(forget=True)


@mqtt
async def test_a_stranger_may_not_send_much(world: MqttWorld) -> None:
    one = world.node(1)
    await world.listen(one)
    other = await stranger(world)
    call = packet_head(Act.CALL, b"12345678", 1, b"stranger", from_caller=True)
    send = packet_head(Act.FRAME, b"12345678", 1, b"stranger", from_caller=True)
    for payload in (call, call, send + frame(7), send + bytes(STRANGER_FRAME_BYTES_MAX + 1), send + frame(7, "again")):
        other.client.publish_now(topic(world, one), payload, None)
    await other.until(lambda: len(other.heard) >= 3)
    assert [payload[1] for payload in other.heard[:3]] == [Act.ACCEPT, Act.ACCEPT, Act.END]
    assert one.frames == [frame(7)]
    assert not world.of[one].calls
    await other.client.leave(forget=True)


@mqtt
async def test_strangers_are_bounded_and_the_first_goes(world: MqttWorld) -> None:
    one = world.node(1)
    await world.listen(one)
    station = world.of[one]
    station._strangers_max = 3
    other = await stranger(world)
    for number in range(10):
        call = packet_head(Act.CALL, bytes([number] * 8), 1, b"stranger", from_caller=True)
        other.client.publish_now(topic(world, one), call, None)
    await other.until(lambda: len(other.heard) == 17)
    assert len(station.strangers) == len(station.calls) == 3
    assert [payload[2] for payload in other.heard if payload[1] == Act.END] == list(range(7))
    await other.client.leave(forget=True)


@mqtt
async def test_a_station_serves_several_peers(world: MqttWorld) -> None:
    one, two = await world.listening(1), await world.listening(2)
    station = world.of[two]
    third = Node(3)
    third.transport = MqttTransport(third, station, world.stations.get)
    third.believe()
    station.served[3] = third.transport
    world.stations[3] = station.settings.name
    world.nodes.append(third)
    world.of[third] = station
    for peer in (2, 3):
        one.send(peer, frame(1, str(peer)))
    await two.until_frames(frame(1, "2"))
    await third.until_frames(frame(1, "3"))
    await world.stop(third)
    one.send(2, frame(1, "still"))
    await two.until_frames(frame(1, "2"), frame(1, "still"))


def test_a_broker_is_written_as_an_address() -> None:
    assert str(Broker("h", 1)) == "h:1"
