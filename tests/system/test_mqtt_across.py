"""Runs across machines whose nodes meet at a real Mosquitto: any order, outages, wrong secrets, strangers."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from p2pdp.auditor.verify import COMPLETE
from p2pdp.crypto.certificates import Authority
from p2pdp.crypto.tokens import JoinToken
from p2pdp.node.addresses import ASK_S
from p2pdp.transports.mqtt.client import Client
from p2pdp.transports.mqtt.packets import Act, packet_head, read_packet
from p2pdp.wire.frames import Kind, encode_frame
from tests.support.across import SHARED, Started
from tests.support.brokered import ADMIN, Brokered, Kept, keeping
from tests.support.launched import GUARD_S, complete, judge_folder, ring, wait_for

UNDER_WAY = 50  # frames


def test_nodes_wait_for_broker_and_bootstrap_and_leave_nothing_at_the_broker(tmp_path: Path) -> None:
    with keeping(tmp_path, 3) as kept, Brokered(tmp_path, complete(3, 60), 3, kept) as run:
        run.bootstrap().interrupt()
        kept.running.stop()
        nodes = run.all_nodes(*SHARED)
        for node in nodes:
            node.wait_until_said(f"waiting for the broker at localhost:{kept.port}: Connection refused")
        kept.running.start()
        for node in nodes:
            node.wait_until_said("is there; it goes on")
            node.wait_until_said("waiting for bootstrap")
        result = run.bootstrap().document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 3
        assert result["transport"] == "mqtt"
        refused = {
            entry["observer"] for entry in json.loads((tmp_path / "boot" / "audit.json").read_text())["refusals"]
        }
        assert "broker" in refused
        assert judge_folder(run.gathered()).verification.verified == COMPLETE
        for user in ("bootstrap", "node-0001"):
            assert not asyncio.run(_is_kept(kept.broker, kept.login(user))), "the session is over with the run"
        token = JoinToken.from_text((tmp_path / "boot" / "tokens" / "0000.token").read_text())
        assert token.address == f"mqtts://localhost:{kept.port}/{result['run_id']}/bootstrap"


async def _is_kept(broker: object, login: object) -> bool:
    client = Client(broker, login, lambda _payload: None, lambda _number, _code: None)  # type: ignore[arg-type]
    kept = await client.enter(f"p2pdp/any/{login.user}")  # type: ignore[attr-defined]
    await client.leave(forget=True)
    return kept


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_broker_goes_away_in_mid_run_and_comes_back(tmp_path: Path, how: signal.Signals) -> None:
    with keeping(tmp_path, 3) as kept, Brokered(tmp_path, complete(3, 1000), 3, kept) as run:
        stops = (UNDER_WAY, 3 * UNDER_WAY)
        bootstrap, nodes = run.bootstrap(), run.all_nodes(*SHARED, stands={1: stops})
        for stop in range(len(stops)):
            run.stands(1, stop)
            kept.running.stop(how)
            nodes[1].go_on()
            wait_for(lambda stop=stop: nodes[0].said.count("waiting for the broker") > stop, "an outage is told")  # type: ignore[misc]
            kept.running.start()
        result = bootstrap.document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 3
        assert result["missing"] == []
        assert judge_folder(run.gathered()).verification.verified == COMPLETE


def test_nodes_and_bootstrap_are_killed_and_come_back(tmp_path: Path) -> None:
    with keeping(tmp_path, 3) as kept, Brokered(tmp_path, ring(3, 500), 3, kept) as run:
        bootstrap, nodes = run.bootstrap(), run.all_nodes(*SHARED, stands={2: [UNDER_WAY], 0: [4 * UNDER_WAY]})
        run.stands(2)
        nodes[2].kill()
        nodes[2] = run.node(2, *SHARED)
        run.wait_for_growth(0)
        bootstrap.kill()
        bootstrap = run.bootstrap_again()
        run.stands(0)
        nodes[0].interrupt()
        nodes[0] = run.node(0, *SHARED)
        result = bootstrap.document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 3
        assert judge_folder(run.gathered()).verification.verified == COMPLETE


def test_bootstrap_is_killed_when_nobody_has_anything_to_say_to_it(tmp_path: Path) -> None:
    """Only then nodes do not hear by themselves that it is another process, which does not know where they are."""
    with keeping(tmp_path, 3) as kept, Brokered(tmp_path, patient(3, 1500), 3, kept) as run:
        bootstrap, nodes = run.bootstrap(), run.all_nodes(*SHARED, stands={2: [UNDER_WAY]})
        run.stands(2)  # so that there is a run to come back to
        time.sleep(ASK_S + 1.0)  # acknowledgements have left and everybody knows all addresses; nothing tells of that
        bootstrap.kill()
        bootstrap = run.bootstrap_again()
        nodes[2].go_on()
        result = bootstrap.document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 3
        assert result["missing"] == []
        assert judge_folder(run.gathered()).verification.verified == COMPLETE


def patient(nodes: int, hops: int) -> str:
    return complete(nodes, hops).replace("patience_s = 6", "patience_s = 120")


def test_users_with_certificates(tmp_path: Path) -> None:
    with (
        keeping(tmp_path, 2, certificates=True) as kept,
        Brokered(tmp_path, ring(2, 3), 2, kept, certificates=True) as run,
    ):
        bootstrap, nodes = run.bootstrap(), run.all_nodes()
        assert [node.document()["estimate"] for node in nodes] == [bootstrap.document()["estimate"]] * 2
        mine = kept.folder / "users" / "node-0001"
        foreign = Authority(datetime.now(UTC))
        ours = {"a stranger's": foreign.client("node-0001", datetime.now(UTC))}
        for pair in ours.values():
            (mine / "client.pem").write_bytes(pair.certificate)
            (mine / "client.key").write_bytes(pair.key)
            run.start("again", "node", "n1.toml", "--out", "again").fails(
                6, "does not accept our side of TLS", "unknown ca"
            )
        old = foreign.client("node-0001", datetime.now(UTC) - timedelta(days=10), days=1)
        (mine / "client.pem").write_bytes(old.certificate)
        (mine / "client.key").write_bytes(old.key)
        run.start("old", "node", "n1.toml", "--out", "old").fails(6, "[transport] certificate", "expired on")


def test_wrong_secrets_are_one_clear_error(tmp_path: Path) -> None:
    with keeping(tmp_path, 2, ["outsider"]) as kept, Brokered(tmp_path, ring(2, 3), 2, kept) as run:
        run.bootstrap()
        wrong = tmp_path / "wrong"
        wrong.write_text("no such password\n")
        wrong.chmod(0o600)
        there = kept.transport("node-0001")
        own = str(kept.folder / "users" / "node-0001" / "password")
        cases = {
            "password": (there.replace(own, str(wrong)), 6, ("refuses us", "not by this password")),
            "user": (there.replace('"node-0001"', '"nobody"'), 6, ("refuses us",)),
            "port": (f"{there}port = {_closed_port(run)}\n", 6, ("does not speak TLS",)),
            "host": (f'{there}host = "127.0.0.2"\n', 6, ("certificate that is not accepted",)),
            "mode": (there.replace(own, str(_readable(tmp_path))), 2, ("everybody may read it",)),
            "key": (f'{there}key = "{own}"\n', 2, ("[transport] key",)),
        }
        foreign = tmp_path / "foreign.pem"
        foreign.write_bytes(Authority(datetime.now(UTC)).pair.certificate)
        cases["ca"] = (there.replace(f"{kept.folder}/ca.pem", str(foreign)), 6, ("certificate that is not accepted",))
        cases["no ca"] = (there.replace("ca =", "# ca ="), 6, ("certificate that is not accepted",))
        for name, (text, code, words) in cases.items():
            run.write(1, "", text, {})
            run.start(name, "node", "n1.toml", "--out", name).fails(code, *words)
        expired = Authority(datetime.now(UTC) - timedelta(days=10))
        pair = expired.server(["localhost"], datetime.now(UTC) - timedelta(days=10), days=1)
        kept.running.stop()
        for name, content in (("server.pem", pair.certificate), ("server.key", pair.key)):
            (kept.folder / "broker" / name).write_bytes(content)
        (kept.folder / "ca.pem").write_bytes(expired.pair.certificate)
        kept.running.start()
        run.write(1, "", there, {})
        run.start("expired", "node", "n1.toml", "--out", "expired").fails(6, "not accepted", "certificate has expired")


def _closed_port(run: Brokered) -> int:
    """Where somebody listens who speaks no TLS: a broker in clear would do the same."""
    bound = socket.create_server(("127.0.0.1", 0))
    run.plain = bound  # type: ignore[attr-defined]

    def answer() -> None:
        with suppress(OSError):
            while True:
                other, _ = bound.accept()
                with other:
                    other.recv(1 << 16)  # else it could be reset before anybody reads the answer
                    other.sendall(b"HTTP/1.0 400 no\r\n\r\n")

    import threading

    threading.Thread(target=answer, daemon=True).start()
    return int(bound.getsockname()[1])


def _readable(place: Path) -> Path:
    path = place / "readable"
    path.write_text("secret\n")
    path.chmod(0o644)
    return path


def test_a_foreign_client_with_a_password_disturbs_nobody(tmp_path: Path) -> None:
    with keeping(tmp_path, 3, ["outsider"]) as kept, Brokered(tmp_path, patient(3, 1000), 3, kept) as run:
        bootstrap, nodes = run.bootstrap(), run.all_nodes(*SHARED, stands={2: [UNDER_WAY]})
        run.stands(2)
        run_id = JoinToken.from_text((tmp_path / "boot" / "tokens" / "0000.token").read_text()).address.split("/")[3]
        asyncio.run(_disturb(kept.broker, kept.login("outsider"), run_id))
        nodes[2].go_on()
        result = bootstrap.document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 3
        faults = [node.document()["faults"] for node in nodes]
        assert any("malformed_packet" in each for each in faults), faults
        assert any("unknown_call" in each for each in faults), faults
        assert judge_folder(run.gathered()).verification.verified == COMPLETE


async def _disturb(broker: object, login: object, run_id: str) -> None:
    """Garbage, calls that nobody takes up, frames of calls that are none, and more than a frame can hold."""
    settled = asyncio.Event()
    missing: set[int] = set()

    def done(number: int, _code: int) -> None:
        missing.discard(number)
        if not missing:
            settled.set()

    client = Client(broker, login, lambda _payload: None, done)  # type: ignore[arg-type]
    await client.enter(f"p2pdp/{run_id}/outsider")
    boxed = encode_frame(Kind.BOXED, 1, bytes(250))
    me = b"outsider"
    for turn in range(100):
        call = turn.to_bytes(8, "big")
        for station, peer in (("node-0000", 0), ("node-0001", 1), ("bootstrap", -1)):
            for payload in (
                b"garbage" * 10,
                b"",
                packet_head(Act.CALL, call, peer, me, from_caller=True),
                packet_head(Act.FRAME, call, peer, me, from_caller=True) + boxed,
                packet_head(Act.FRAME, bytes(8), peer, b"node-0002", from_caller=True) + boxed,
                packet_head(Act.END, call, peer, b"node-0002", from_caller=False),
                packet_head(Act.FRAME, call, peer, me, from_caller=True) + bytes(300_000),
            ):
                missing.add(client.publish_now(f"p2pdp/{run_id}/{station}", payload, None))
    await asyncio.wait_for(settled.wait(), GUARD_S)
    await client.leave(forget=True)


def test_who_repeats_what_the_broker_saw_and_ends_calls_disturbs_nobody(tmp_path: Path) -> None:
    with keeping(tmp_path, 3, ["outsider"]) as kept, Brokered(tmp_path, patient(3, 1500), 3, kept) as run:
        bootstrap = run.bootstrap()
        run_id = JoinToken.from_text((tmp_path / "boot" / "tokens" / "0000.token").read_text()).address.split("/")[3]
        nodes, seen = asyncio.run(_repeat(kept, run_id, run))
        result = bootstrap.document()
        found = [node.document() for node in nodes]
        assert [each["estimate"] for each in found] == [result["estimate"]] * 3
        assert result["missing"] == []
        assert {Act.CALL, Act.ACCEPT, Act.FRAME} <= seen
        assert all("unknown_call" in each["faults"] for each in found)
        assert judge_folder(run.gathered()).verification.verified == COMPLETE


async def _repeat(kept: Kept, run_id: str, run: Brokered) -> tuple[list[Started], set[Act]]:
    """Starts the nodes; while one of them stands still, all stations hear again what was said so far, and more."""
    heard: list[bytes] = []
    admin = Client(kept.broker, kept.login(ADMIN), heard.append, lambda _number, _code: None)
    await admin.enter(f"p2pdp/{run_id}/#")
    nodes = run.all_nodes(*SHARED, stands={2: [2 * UNDER_WAY]})
    await asyncio.to_thread(run.stands, 2)  # so that there is a run to disturb
    async with asyncio.timeout(GUARD_S):
        while not {Act.CALL, Act.ACCEPT, Act.FRAME} <= {read_packet(payload).act for payload in heard}:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await admin.leave(forget=True)
    packets = [(payload, read_packet(payload)) for payload in heard]
    calls = [payload for payload, packet in packets if packet.act is Act.CALL]
    ends = [bytes((call[0], Act.END | from_caller)) + call[2:] for call in calls for from_caller in (0, 0x80)]
    missing: set[int] = set()
    settled = asyncio.Event()

    def done(number: int, _code: int) -> None:
        missing.discard(number)
        if not missing:
            settled.set()

    client = Client(kept.broker, kept.login("outsider"), lambda _payload: None, done)
    await client.enter(f"p2pdp/{run_id}/outsider")
    frames = [payload for payload, packet in packets if packet.act is not Act.CALL][:1000]
    for payload in (*calls, *frames, *ends, *calls, *frames):
        for station in ("bootstrap", "node-0000", "node-0001", "node-0002"):
            missing.add(client.publish_now(f"p2pdp/{run_id}/{station}", payload, None))
    await asyncio.wait_for(settled.wait(), GUARD_S)
    await client.leave(forget=True)
    nodes[2].go_on()
    return nodes, {packet.act for _, packet in packets}


def test_two_under_one_name_end_in_an_error(tmp_path: Path) -> None:
    with keeping(tmp_path, 2) as kept, Brokered(tmp_path, ring(2, 3), 2, kept) as run:
        run.bootstrap()
        first = run.node(0)
        wait_for(lambda: "enrolled" in run.started[0].said, "the first node is there")
        run.write(1, "", kept.transport("node-0000"), {})
        second = run.node(1)
        wait_for(lambda: not (first.running and second.running), "one of them gives up")
        (second if first.running else first).fails(6, "somebody else may come", "under the name node-0000")
