"""What is particular to calls; the contract suite says the rest."""

from __future__ import annotations

import asyncio

from p2pdp.core.addresses import Address
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.crypto.entropy import random_bytes
from p2pdp.transports.mqtt import transport as calls
from p2pdp.transports.mqtt.access import Login, StationSettings
from p2pdp.transports.mqtt.endpoint import CALL_LIVES_S
from p2pdp.transports.mqtt.packets import Act, Packet
from p2pdp.transports.mqtt.transport import MqttNetwork, MqttTransport
from tests.support.transport_worlds import MqttWorld, Node, live

mqtt = live(MqttTransport)


def frame(sender: int, text: str = "") -> bytes:
    return (bytes((1, sender)) + text.encode()).ljust(256, b"\x07")


@mqtt
async def test_a_call_is_repeated_until_it_is_taken(world: MqttWorld) -> None:
    one = world.node(1)
    two = world.node(2)
    two.believe()
    world.stations[2] = world.of[two].settings.name  # where nobody listens yet
    one.send(2, frame(1, "early"))
    await world.listen(two)
    await two.until_frames(frame(1, "early"))
    assert one.told == two.told == []


@mqtt
async def test_a_station_that_was_killed_and_came_back_ends_old_calls(world: MqttWorld) -> None:
    """Its broker kept what came meanwhile; the frames of calls that it does not know any more are answered."""
    one, two = await world.listening(1), await world.listening(2)
    one.send(2, frame(1))
    await two.until_frames(frame(1))
    for call in list(world.of[two].calls.values()):
        call._ended()  # as if its process had been killed: it says nothing
    one.send(2, frame(1, "to nobody"))
    await one.until_told(("lost", 2))
    one.send(2, frame(1, "again"))
    await two.until_frames(frame(1), frame(1, "again"))
    assert world.of[two].faults == {"unknown_call": 1}


@mqtt
async def test_a_network_knows_where_roles_are_and_believes_no_strange_name(world: MqttWorld) -> None:
    def network(name: str) -> MqttNetwork:
        settings = StationSettings(world.broker, Login(f"{world.run}-{name}"), world.run, name)
        return MqttNetwork(settings, random_bytes)

    roles, mine = network("roles"), network("mine")
    boss, curator, one = Node(BOOTSTRAP), Node(CURATOR), Node(1)
    assert (mine.place("a/b:1"), mine.place("+:1"), mine.place("a")) == (None, None, None)
    places = {BOOTSTRAP: mine.place("roles:1883"), CURATOR: mine.place("roles:1"), 3: Address("a/b", 1)}
    for node, its in ((boss, roles), (curator, roles), (one, mine)):
        node.transport = its.attach(node, places.get)
    for node in (boss, curator):
        roles.serve(node.peer, node.transport)
    for its in (roles, mine):
        await its.listen()
    for peer in (BOOTSTRAP, CURATOR, 3, 5):
        one.send(peer, frame(1, str(peer)))
    await boss.until_frames(frame(1, "-1"))
    await curator.until_frames(frame(1, "-2"))
    roles.close()
    mine.close()
    assert mine.faults == {}
    for node in (one, boss, curator):
        await node.transport.close()
    assert {call for call in (mine._endpoint.calls, roles._endpoint.calls) if call} == set()


@mqtt
async def test_only_calls_with_roles_are_probed_and_no_probe_is_a_fault(world: MqttWorld) -> None:
    one, two, boss = world.node(1), await world.listening(2), await world.listening(BOOTSTRAP)
    one.send(2, frame(1))
    one.send(BOOTSTRAP, frame(1))
    await two.until_frames(frame(1))
    await boss.until_frames(frame(1))
    probed: list[Peer] = []
    often = asyncio.Event()

    def hear(packet: Packet) -> None:
        probed.append(packet.called)
        if len(probed) == 3:
            often.set()

    for station in (world.of[two], world.of[boss]):
        for call in station.calls.values():
            call.hear = hear  # type: ignore[method-assign]
    await often.wait()
    assert set(probed) == {BOOTSTRAP}
    for node in (two, boss):
        world.kill(node)
    await one.until_told(("lost", BOOTSTRAP))
    assert world.of[boss].faults == world.of[two].faults == {}


@mqtt
async def test_probes_do_not_gather_while_the_broker_is_away(world: MqttWorld) -> None:
    station = world.endpoint()
    station.post("boss", Act.PROBE, bytes(8), BOOTSTRAP, b"", from_caller=True)
    assert (len(station._waiting), station._task) == (0, None)


def test_calls_are_repeated_within_seconds() -> None:
    assert calls.CALL_S < calls.CALL_MAX_S < 10
    assert calls.PROBE_S < CALL_LIVES_S
