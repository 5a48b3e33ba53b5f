from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.step import Message
from p2pdp.ledger import records
from p2pdp.ledger.records import RECEIVED, SALT_BYTES, public_message
from p2pdp.peer.payloads import DATA, DATA_HEAD, HEAD, POKE, RESEND, Payload
from p2pdp.peer.tap import wire_line
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.toys import PingPong, Toys, forged, link_to

SALT = bytes(range(SALT_BYTES))


def line_of(sender: int, content: bytes) -> dict[str, Any]:
    line = wire_line(sender, content)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return dict(json.loads(line))


def data(number: int, message: bytes, part: bytes = b"", acknowledged: int = 0) -> bytes:
    return DATA_HEAD.pack(DATA, number, acknowledged, bytes(16), len(message)) + message + part


def test_of_a_message_everything_is_told_but_its_value() -> None:
    message = pack_message(Message("token", (0, 7, b"\xab", "x", 0.5, [1, [2, b"\x01"]])))
    line = line_of(3, data(5, message, SALT + pack_value(123456789), 4))
    assert line == {
        "from": 3,
        "number": 5,
        "type": "token",
        "fields": [0, 7, "ab", "x", 0.5, [1, [2, "01"]]],
        "control": {
            "flags": ["data"],
            "acknowledged": 4,
            "voucher": "04".zfill(8) + 24 * "0",
            "value_bytes": SALT_BYTES + 9,
        },
    }


def test_a_value_changes_nothing_but_its_length() -> None:
    def said(value: Any) -> dict[str, Any]:
        return line_of(0, data(1, pack_message(Message("token", (0, 1))), SALT + pack_value(value)))

    assert said(1) == said(-(10**15))
    assert said(b"abc") != said(b"abcd")


@pytest.mark.parametrize(("flags", "names"), [(0, []), (RESEND, ["resend"]), (POKE, ["poke"])])
def test_of_control_flags_and_numbers_are_told(flags: int, names: list[str]) -> None:
    link = link_to(1)
    for number in range(3):
        link.took(b"message", bytes([number]))
    said = line_of(CURATOR, link.control(flags))
    voucher = bytes.fromhex(said["control"].pop("voucher"))
    assert link.stamp.fits(0, bytes(16), voucher)
    assert said == {
        "from": "curator",
        "number": None,
        "type": None,
        "fields": None,
        "control": {"flags": ["control", *names], "acknowledged": 3},
    }


def test_a_hello_is_told_by_name() -> None:
    link = link_to(1)
    link.push(b"message", b"")
    told = line_of(BOOTSTRAP, link.control(0, link.hello(b"\x01question", b"\x02")))
    assert told["from"] == "bootstrap"
    hello = told["control"]["hello"]
    assert (hello["received"], hello["sent"], hello["acknowledged"]) == (0, 1, 0)
    assert (hello["question"], hello["answer"]) == (b"\x01question".hex(), "02")
    assert hello["sent_digest"] == link.sent_digest.hex()


def test_whatever_a_payload_has_besides_is_told_too() -> None:
    """Parts that are added to payloads later are in the trace without a change here."""
    parsed = Payload(**{name: b"" if name in ("message", "value") else [] for name in Payload._fields})
    leaky = type("Leaky", (), {
        "flags": DATA, "number": 1, "message": pack_message(Message("ready")), "value": b"", "hello": [],
        "_asdict": lambda _self: {**parsed._asdict(), "flags": DATA, "visits": 17, "route": [[1, b"\x05"]]},
    })()  # fmt: skip
    with patch("p2pdp.peer.tap.parse_payload", lambda _content: leaky):
        control = line_of(2, b"")["control"]
    assert (control["visits"], control["route"]) == (17, [[1, "05"]])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01",
        DATA_HEAD.pack(DATA, 0, 0, bytes(16), 0),
        DATA_HEAD.pack(DATA, 1, 0, bytes(16), 99) + b"short",
        HEAD.pack(64, 0, 0, bytes(16)),
    ],
)
def test_what_cannot_be_read_is_told_by_its_length(content: bytes) -> None:
    line = line_of(1, content)
    assert (line["number"], line["type"], line["fields"]) == (None, None, None)
    assert line["control"] == {"malformed": True, "bytes": len(content)}


def test_an_unreadable_message_keeps_its_number() -> None:
    line = line_of(1, data(4, b"\xc1\xc1", b"\x00\x00\x00"))
    assert (line["number"], line["type"], line["control"]["malformed"]) == (4, None, True)
    assert "c1c1" not in json.dumps(line)


def test_a_tap_sees_each_authentic_frame_duplicates_and_refused_ones_too() -> None:
    seen: list[tuple[int, bytes]] = []
    toys = Toys(
        {peer: lambda peer=peer: PingPong(peer, 2, 6) for peer in range(2)},  # type: ignore[misc]
        2,
        tap=lambda sender, content: seen.append((sender, content)),
    )
    toys.boot_all()
    delivered = 0
    while toys.flight:
        receiver, frame = toys.flight[0]
        for _ in range(1 + delivered % 2):
            toys.give(receiver, frame)
            delivered += 1
        toys.flight.pop(0)
        assert delivered < 1000
    assert len(seen) == delivered
    toys.hosts[0]._peers.refuse(1)
    excluded = forged(1, 0, data(99, pack_message(Message("note"))))
    toys.give(0, excluded)
    assert json.loads(wire_line(*seen[-1]))["type"] == "note", "it is refused, and was received"
    toys.give(0, excluded[:-1] + bytes([excluded[-1] ^ 1]))
    assert len(seen) == delivered + 1, "a frame that is not authentic is nobody's"
    for peer in range(2):
        lines = [json.loads(wire_line(*frame)) for frame in seen]
        told = {(line["from"], line["number"], line["type"], tuple(line["fields"])) for line in lines if line["number"]}
        counts: dict[int, int] = {}
        for record in records.read(bytes(toys.disks[peer]["view"])).records:
            if record.kind == RECEIVED:
                sender = record.body.sender
                counts[sender] = counts.get(sender, 0) + 1
                message = public_message(record)
                assert (sender, counts[sender], message.type, message.fields) in told
