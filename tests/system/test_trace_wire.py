"""`--trace-wire` wherever users may be: it tells, of each peer, what its ledger says that it received."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR, peer_name
from p2pdp.files.folder import peer_folder
from p2pdp.ledger.records import RECEIVED, public_message, read
from tests.support.across import Across
from tests.support.launched import Launched, complete
from tests.support.mosquitto import mosquitto

UNDER_WAY = 50  # frames


def lines_of(place: Path) -> list[dict[str, Any]]:
    assert (place / "wire.jsonl").stat().st_mode & 0o777 == 0o600
    return [json.loads(line) for line in (place / "wire.jsonl").read_text().splitlines()]


def agrees(place: Path) -> None:
    """Each message that the ledger says was received is in the trace, and all numbers there were taken."""
    told = {
        (line["from"], line["number"], line["type"], json.dumps(line["fields"]))
        for line in lines_of(place)
        if line["number"] is not None
    }
    counts: dict[int, int] = {}
    for record in read((place / "view.ledger").read_bytes()).records:
        if record.kind == RECEIVED:
            sender, message = record.body.sender, public_message(record)
            counts[sender] = counts.get(sender, 0) + 1
            fields = json.dumps([part.hex() if isinstance(part, bytes) else part for part in message.fields])
            assert (peer_name(sender), counts[sender], message.type, fields) in told
    assert counts


WAYS = {
    "fork": ("", {}),
    "spawned together": ("", {"nodes_per_process": 2, "spawn": True}),
    "memory": ('transport = "memory"', {}),
    "mqtt": ('transport = "mqtt"', {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_is_traced_in_whatever_processes(tmp_path: Path, way: str) -> None:
    more, wish = WAYS[way]
    if way == "mqtt":
        mosquitto()
    with Launched(tmp_path, complete(4, 60, more), trace_wire=True, **wish) as launched:  # type: ignore[arg-type]
        result = launched.completes()
    assert result["traced"] is True
    for peer in (BOOTSTRAP, CURATOR, *range(4)):
        agrees(peer_folder(launched.folder, peer))


def test_a_run_that_is_resumed_goes_on_with_its_trace(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(4, 1000), (1, UNDER_WAY), trace_wire=True) as launched:
        user = launched.stands()
        launched.process.send_signal(signal.SIGINT)
        os.kill(user, signal.SIGCONT)
        assert launched.end() == 130
    before = (launched.folder / "nodes" / "0001" / "wire.jsonl").read_bytes()
    with Launched(tmp_path) as again:
        assert again.completes()["traced"] is True
    after = (launched.folder / "nodes" / "0001" / "wire.jsonl").read_bytes()
    assert after.startswith(before[: before.rfind(b"\n") + 1])
    assert any("hello" in line["control"] for line in lines_of(launched.folder / "nodes" / "0001"))
    for peer in (BOOTSTRAP, CURATOR, *range(4)):
        agrees(peer_folder(launched.folder, peer))


def test_machines_trace_what_their_owners_ask_for(tmp_path: Path) -> None:
    with Across(tmp_path, complete(3, 30), 3) as run:
        bootstrap = run.bootstrap("--trace-wire")
        nodes = [run.node(0, "--trace-wire"), run.node(1), run.node(2)]
        assert bootstrap.document()["traced"] is True
        assert [node.document().get("traced") for node in nodes] == [True, None, None]
        agrees(tmp_path / "n0" / "node")
        assert not list((tmp_path / "n1").rglob("wire.jsonl"))
        agrees(tmp_path / "boot" / "curator")
        agrees(tmp_path / "boot" / "curator" / "bootstrap")
