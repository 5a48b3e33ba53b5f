"""Runs on one machine over MQTT: with a broker of their own or a given one, and what a broker gets to see."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from p2pdp.auditor.verify import COMPLETE
from p2pdp.files.folder import read_evidence
from p2pdp.transports.mqtt.client import Client
from p2pdp.transports.mqtt.packets import Act, read_packet
from p2pdp.wire.frames import BOXED, Kind
from p2pdp.wire.padding import FRAME_SIZES
from tests.support.brokered import ADMIN, Kept, keeping
from tests.support.capture import Capture, Seen, seen
from tests.support.captured import STANDS, found_in, keys, large, secrets_in
from tests.support.launched import PLACE, Launched, complete, judge_folder, ring, wait_for
from tests.support.mosquitto import mosquitto
from tests.support.netns import Network
from tests.support.sources import TOP

NODES = 5
UNDER_WAY = 50  # frames


def over_mqtt(text: str, more: str = "") -> str:
    return text.replace("[run]\n", '[run]\ntransport = "mqtt"\n', 1) + more


def brokers(place: Path) -> set[int]:
    """Processes of brokers that runs in this place started for themselves."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if b"mosquitto" in command and f"{PLACE}={place}".encode() in environment.split(b"\0"):
            found.add(int(process.name))
    return found


@pytest.mark.parametrize("way", [{}, {"spawn": True}, {"nodes_per_process": 3}], ids=["fork", "spawn", "packed"])
def test_a_run_has_a_broker_of_its_own_that_ends_with_it(tmp_path: Path, way: dict[str, object]) -> None:
    mosquitto()
    with Launched(tmp_path, over_mqtt(complete(NODES, 60)), **way) as run:
        result = run.completes()
    assert (result["transport"], result["missing"], result["faults"]) == ("mqtt", [], {})
    assert judge_folder(run.folder).verification.verified == COMPLETE
    assert not brokers(tmp_path)
    claimed = json.loads((run.folder / "audit.json").read_text())
    by_observer = {
        who: {claim["method"]: claim["epsilon_max"] for claim in claimed["claims"] if claim["observer"] == who}
        for who in ("network", "broker")
    }
    assert by_observer["broker"] == by_observer["network"] != {}
    assert "broker" in {refusal["observer"] for refusal in claimed["refusals"] if refusal["method"] == "hidden-path"}
    kept = b"".join(path.read_bytes() for path in run.folder.rglob("*") if path.is_file())
    assert b"password" not in kept


def test_nodes_are_killed_a_run_is_interrupted_and_goes_on(tmp_path: Path) -> None:
    mosquitto()
    with Launched(tmp_path, over_mqtt(ring(NODES, 600)), (2, UNDER_WAY, 4 * UNDER_WAY)) as run:
        user = run.stands()
        run.kill(0, 3)
        os.kill(user, signal.SIGCONT)
        user = run.stands()
        run.process.send_signal(signal.SIGTERM)
        os.kill(user, signal.SIGCONT)
        assert run.end() == 130
    assert not brokers(tmp_path)
    with Launched(tmp_path, None, (1, UNDER_WAY)) as again:
        user = again.stands()
        again.process.kill()  # nobody is left to end the broker
        os.kill(user, signal.SIGCONT)
        wait_for(lambda: not brokers(tmp_path), "the broker ends with its launcher")
        wait_for(lambda: not again.members(), "so do the nodes")
    with Launched(tmp_path) as last:
        last.completes()
    assert judge_folder(last.folder).verification.verified == COMPLETE


def test_a_broker_that_dies_ends_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    mosquitto()
    with Launched(tmp_path, over_mqtt(ring(NODES, 600)), (2, UNDER_WAY)) as run:
        user = run.stands()
        (broker,) = brokers(tmp_path)
        os.kill(broker, signal.SIGKILL)
        os.kill(user, signal.SIGCONT)
        assert run.end() == 6
        assert "broker of this run ended" in run.error
    with Launched(tmp_path) as again:
        again.completes()
    assert judge_folder(again.folder).verification.verified == COMPLETE


def test_without_a_broker_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(over_mqtt(ring(2, 1)))
    script = (
        "import sys, shutil\nfrom p2pdp.transports.mqtt import broker\n"
        "from p2pdp.cli.main import main\n"
        "broker.shutil.which = lambda *_, **__: None\nbroker.find_spec = lambda _: None\nsys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "run", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 6
    assert "install mosquitto" in done.stderr


def test_a_light_node_loads_nothing_of_mqtt() -> None:
    script = (
        "import sys\nimport p2pdp.node.user, p2pdp.cluster.peers, p2pdp.runs.across_node\n"
        "print([name for name in ('paho', 'cryptography', 'amqtt') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=TOP, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# What a broker sees


async def _watched(kept: Kept, place: Path, text: str) -> tuple[list[bytes], list[bytes], dict[str, list[bytes]]]:
    """What the admin, who may read everything, and a mere user, who asks for it too, got during a run."""
    all_of_it: list[bytes] = []
    nothing: list[bytes] = []
    admin = Client(kept.broker, kept.login(ADMIN), all_of_it.append, lambda _number, _code: None)
    outsider = Client(kept.broker, kept.login("outsider"), nothing.append, lambda _number, _code: None)
    await admin.enter("p2pdp/#")
    await outsider.enter("p2pdp/#")
    run = Launched(place, text, STANDS)

    def whole() -> dict[str, list[bytes]]:
        with run:
            secret = keys(run)
            run.completes()
        return secret

    secret = await asyncio.to_thread(whole)
    for client in (admin, outsider):
        await client.leave(forget=True)
    return all_of_it, nothing, secret


def test_a_broker_sees_no_value_no_key_no_plaintext_and_frames_of_the_fixed_sizes(tmp_path: Path) -> None:
    with keeping(tmp_path, NODES, ["outsider"]) as kept:
        text = over_mqtt(large(complete(NODES, 400)), kept.everybody())
        payloads, nothing, secret = asyncio.run(_watched(kept, tmp_path, text))
        stored = b"".join(path.read_bytes() for path in (kept.folder / "broker" / "data").glob("*"))
    assert nothing == [], "the access list lets nobody read what is for others"
    packets = [read_packet(payload) for payload in payloads]
    frames = [packet.frame for packet in packets if packet.act is Act.FRAME]
    assert {len(frame) for frame in frames} <= set(FRAME_SIZES)
    cut = [seen(frame) for frame in frames]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert sum(frame.kind is BOXED for frame in cut) >= result["messages"]
    assert {packet.station for packet in packets} == {"bootstrap", *(f"node-{user:04d}" for user in range(NODES))}
    secret |= secrets_in(read_evidence(tmp_path / "run"))
    assert found_in(cut, secret) == {}
    in_clear = (Kind.HELLO, Kind.OFFER)
    hidden = [payload for payload, packet in zip(payloads, packets, strict=True) if packet.act is not Act.FRAME]
    assert found_in([Seen(None, 0, stored), *(Seen(None, 0, rest) for rest in hidden)], secret) == {}
    assert {frame.kind for frame in cut} <= {BOXED, Kind.ENROL, Kind.ROSTER, *in_clear}


def test_the_wires_to_a_broker_show_nothing_either(tmp_path: Path, networks: type[Network]) -> None:
    """In clear to a broker of the run's own, so that the boxes alone protect; bytes of both directions are searched."""
    mosquitto()
    with networks(1) as network:
        host = network.hosts[0]
        with Capture(host) as capture:
            with host.inside():
                run = Launched(tmp_path, over_mqtt(large(complete(NODES, 300))), STANDS)
            with run:
                secret = keys(run)
                run.completes()
            streams = [stream.whole() for stream in capture.streams()]
    assert sum(map(len, streams)) > 300 * FRAME_SIZES[0]
    secret |= secrets_in(read_evidence(run.folder))
    found = found_in([Seen(Kind.OFFER, len(stream), stream) for stream in streams], secret)
    assert found == {}
