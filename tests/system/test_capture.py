"""Whoever records a run's packets sees frames of a few sizes, and in them no value, no key and no word of ours.

In clear by design are the frames HELLO (nothing but padding) and OFFER (the signed spec, run id and public
key of this run, for whoever asks): the words of protocol and spec stand there, and are not looked for. Keys,
salts and values are looked for everywhere.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.crypto.entropy import NONCE_BYTES
from p2pdp.files.folder import read_evidence
from p2pdp.ledger.evidence import Evidence
from p2pdp.ledger.messages import carries_message, packed_type, whole_message
from p2pdp.ledger.records import INPUTS, KIND_NAMES, POOL, SALT_BYTES, Record, read
from p2pdp.protocols.run_plan import plan_of_facts
from p2pdp.wire.codec import unpack_value
from p2pdp.wire.frames import BOXED, ENROL, FRAME_HEADER_BYTES, HELLO, OFFER, ROSTER, encode_frame, prefix
from p2pdp.wire.padding import FRAME_SIZES
from tests.laws.sources import TOP
from tests.system.capture import ACK, CALLED_BYTES, SYN, TCP, Capture, Seen, cut, search, spellings, streams
from tests.system.launched import ROLES, Launched, complete, ring, wait_for
from tests.system.netns import Host, Network

NODES = 5
TELLING_BYTES = 7  # shorter strings stand somewhere in a megabyte of noise by chance
IN_CLEAR = (HELLO, OFFER)
# Values of 40 bits and more on the grid, so that however they are written they are no padding and no prefix.
LARGE = "clip = [0.0, 1.0]", "clip = [1e5, 1e6]"
PLAIN = """
import sys, p2pdp
from p2pdp.crypto import channel
channel.crypto_box_easy_afternm = lambda padded, nonce, key: bytes(16) + padded
channel.crypto_box_open_easy_afternm = lambda boxed, nonce, key: boxed[16:]
p2pdp.run(sys.argv[1], sys.argv[2])
"""


@pytest.fixture
def host(networks: type[Network]) -> Iterator[Host]:
    with networks(1) as network:
        yield network.hosts[0]


def large(text: str) -> str:
    assert LARGE[0] in text
    return text.replace(*LARGE).replace("[run]\n", "[run]\naudit = false\n")


# What is secret


def keys(run: Launched) -> dict[str, list[bytes]]:
    """Takes a copy of every key while the run waits for a stopped node; the keys of a run do not outlive it."""
    first = run.ledger(0).with_name("run.key")
    wait_for(lambda: not run.running or (first.exists() and ROLES in run.children()), "the first node has its key")
    stopped = run.children()[0]
    os.kill(stopped, signal.SIGSTOP)
    wait_for(lambda: len(list(run.folder.rglob("run.key"))) == NODES + 2, "all keys of the run are there")
    copies = {name: [path.read_bytes() for path in run.folder.rglob(name)] for name in ("run.key", "identity.key")}
    os.kill(stopped, signal.SIGCONT)
    assert [len(key) for of_kind in copies.values() for key in of_kind] == [32] * 2 * (NODES + 2)
    tokens = (run.folder / "curator" / "tokens" / "secrets").read_bytes()
    copies["token secrets"] = [tokens[16 * number : 16 * (number + 1)] for number in range(NODES)]
    return {name: [form for key in of_kind for form in (key, key.hex().encode())] for name, of_kind in copies.items()}


def numbers_in(record: Record) -> list[int]:
    """What a record holds of values and draws, in steps of the grid."""
    value = unpack_value((record.value or b"")[SALT_BYTES:]) if record.kind in (INPUTS, POOL) else None
    if carries_message(record):
        value = whole_message(record).value
    if value is None or isinstance(value, bytes):
        return []
    return [int(number) for number in (value if hasattr(value, "__len__") else [value])]


def secrets_in(evidence: Evidence) -> dict[str, list[bytes]]:
    step = 2.0 ** plan_of_facts(evidence.spec, dict(evidence.roster.facts)).plan.grid_exponent
    found: dict[str, list[bytes]] = {"salts": [], "values": [], "inputs": [], "draws": []}
    names = {INPUTS: "inputs", POOL: "draws"}
    for ledger in (*evidence.views.values(), *evidence.private.values()):
        for record in read(ledger).records:
            if record.value:
                found["salts"] += [record.value[:SALT_BYTES], record.value[:SALT_BYTES].hex().encode()]
            for number in numbers_in(record):
                written = spellings(number) + spellings(number * step) if number else []  # a token begins with nothing
                found[names.get(record.kind, "values")] += [form for form in written if len(form) >= TELLING_BYTES]
    return found


def words() -> list[bytes]:
    types = [value for name, value in vars(messages).items() if name.isupper() and type(value) is str]
    forms = [*(packed_type(kind) for kind in types), *(name.encode() for name in [*types, *KIND_NAMES])]
    return [form for form in forms if len(form) >= TELLING_BYTES]


def found_in(frames: list[Seen], secret: dict[str, list[bytes]]) -> dict[str, int]:
    hidden = [frame.body for frame in frames if frame.kind not in IN_CLEAR]
    return search((frame.body for frame in frames), secret) | search(hidden, {"words": words()})


# Real runs


@pytest.mark.parametrize("text", [complete(NODES, 1500), ring(NODES, 200)], ids=["complete", "ring"])
def test_packets_hold_no_value_no_key_no_plaintext_and_frames_are_of_the_fixed_sizes(
    tmp_path: Path, host: Host, text: str
) -> None:
    with Capture(host) as capture:
        with host.inside():
            run = Launched(tmp_path, large(text))
        with run:
            secret = keys(run)
            result = run.completes()
        frames = cut(capture.streams())
    secret |= secrets_in(read_evidence(run.folder))
    assert all(len(forms) >= NODES for forms in secret.values())
    assert found_in(frames, secret) == {}

    assert {frame.size for frame in frames} <= set(FRAME_SIZES)
    boxed = [frame for frame in frames if frame.kind is BOXED]
    assert len(boxed) >= result["messages"], "the recording has the whole run"
    assert sum(frame.size for frame in boxed) == result["bytes"]
    assert {frame.size for frame in boxed} == {FRAME_SIZES[0]}, "no message of a sum is longer than another"
    assert len({frame.body[:NONCE_BYTES] for frame in boxed}) == len(boxed), "no nonce serves twice"
    assert {frame.kind for frame in frames} <= {None, BOXED, ENROL, ROSTER, *IN_CLEAR}


def test_a_run_that_only_seems_to_encrypt_is_seen_through(tmp_path: Path, host: Host) -> None:
    """The search finds what it is for: the same run with a channel that boxes nothing."""
    (tmp_path / "spec.toml").write_text(large(complete(NODES, 300)))
    with Capture(host) as capture:
        command = [sys.executable, "-c", PLAIN, str(tmp_path / "spec.toml"), str(tmp_path / "run")]
        run = host.start(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert run.communicate(timeout=60)[1] == ""
        frames = cut(capture.streams())
    found = found_in(frames, secrets_in(read_evidence(tmp_path / "run")))
    assert set(found) == {"salts", "values", "words"}, "inputs and draws never leave a node, even so"
    assert found["salts"] >= 150
    assert found["values"] >= 150


def test_each_secret_is_found_in_each_way_of_writing_it(tmp_path: Path, host: Host) -> None:
    """Planted in frames that look like any other, between frames of noise in which nothing is found."""
    with Launched(tmp_path, large(complete(3, 20))) as run:
        run.completes()
    secret = secrets_in(read_evidence(run.folder)) | {"keys": [bytes(range(32)), bytes(range(32)).hex().encode()]}
    for name, forms in secret.items():
        distinct = sorted(set(forms))
        noise = [os.urandom(FRAME_SIZES[0] - FRAME_HEADER_BYTES) for _ in distinct]
        planted = [own[:60] + form + own[60 + len(form) :] for form, own in zip(distinct, noise, strict=True)]
        with Capture(host) as capture:
            carry(host, b"".join(prefix(encode_frame(BOXED, 1, body)) for body in [*noise, *planted]))
            frames = cut(capture.streams())
        assert [frame.body for frame in frames] == [*noise, *planted]
        assert found_in(frames[: len(noise)], {name: forms}) == {}
        assert found_in(frames, {name: forms}) == {name: len(distinct)}


def carry(host: Host, data: bytes) -> None:
    """Through a connection on the host's loopback, to peer 0."""
    with host.inside():
        listening = socket.create_server(("127.0.0.1", 0))
        calling = socket.create_connection(listening.getsockname())
    with listening, calling, listening.accept()[0] as called:
        calling.sendall((0).to_bytes(CALLED_BYTES, "big") + data)
        calling.shutdown(socket.SHUT_WR)
        while called.recv(1 << 16):
            pass


# The recording itself


@given(st.lists(st.binary(min_size=1, max_size=9), max_size=8), st.randoms(use_true_random=False))
def test_streams_are_put_together_from_parts_in_any_order_sent_any_number_of_times(
    parts: list[bytes], chance: Random
) -> None:
    start = (1 << 32) - 20  # numbers begin again within the stream
    sent = [segment(start, b"", flags=SYN)]
    at = start + 1
    for part in parts:
        sent.append(segment(at, part))
        at += len(part)
    rest = sent[1:] + [segment(at - len(part), part) for part in parts[-1:]]
    chance.shuffle(rest)
    (found,) = streams([sent[0], *rest])
    assert (found.dialled, found.whole()) == (True, b"".join(parts))


def test_a_recording_with_a_gap_or_of_something_else_fails() -> None:
    begun = segment(7, b"", flags=SYN)
    (gap,) = streams([begun, segment(8, b"ab"), segment(11, b"d")])
    with pytest.raises(AssertionError, match="missing"):
        gap.whole()
    with pytest.raises(AssertionError, match="ends within"):
        cut(streams([begun, segment(8, bytes(CALLED_BYTES) + prefix(bytes(256))[:-1])]))
    with pytest.raises(AssertionError, match="something else"):
        streams([begun[:9] + b"\x11" + begun[10:]])
    with pytest.raises(KeyError):
        streams([segment(8, b"ab")])


def test_a_port_that_is_used_again_begins_another_stream() -> None:
    found = streams([segment(7, b"", flags=SYN), segment(8, b"a"), segment(90, b"", flags=SYN), segment(91, b"b")])
    assert [stream.whole() for stream in found] == [b"a", b"b"]


def segment(sequence: int, data: bytes, flags: int = ACK) -> bytes:
    """A packet of IP and TCP without options, always between the same two ends."""
    tcp = pack(">HHIIBBHHH", 1, 2, sequence % (1 << 32), 0, 5 << 4, flags, 0, 0, 0) + data
    return pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, TCP, 0, b"\x7f\0\0\1", b"\x7f\0\0\1") + tcp


@given(st.binary(max_size=60), st.lists(st.binary(min_size=1, max_size=12), max_size=6), st.data())
def test_the_search_finds_exactly_what_is_there(text: bytes, others: list[bytes], data: st.DataObject) -> None:
    at, end = (data.draw(st.integers(0, len(text))) for _ in range(2))
    wanted = {string for string in [*others, text[at:end]] if string}
    there = sum(string in text for string in wanted)
    assert search([text], {"a": wanted}) == ({"a": there} if there else {})
