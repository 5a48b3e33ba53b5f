"""Whoever records a run's packets sees frames of a few sizes, and in them no value, no key and no word of ours.

In clear by design are the frames HELLO (nothing but padding) and OFFER (the signed spec, run id and public
key of this run, for whoever asks): the words of protocol and spec stand there, and are not looked for. Keys,
salts and values are looked for everywhere.
"""

from __future__ import annotations

import os
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

from p2pdp.crypto.entropy import NONCE_BYTES
from p2pdp.files.folder import read_evidence
from p2pdp.wire.frames import BOXED, ENROL, FRAME_HEADER_BYTES, OFFER, ROSTER, encode_frame, prefix
from p2pdp.wire.padding import FRAME_SIZES
from tests.support.capture import ACK, CALLED_BYTES, SYN, TCP, Capture, cut, search, streams
from tests.support.captured import (
    IN_CLEAR,
    NODES,
    STANDS,
    found_in,
    keys,
    large,
    secrets_in,
)
from tests.support.launched import Launched, complete, ring
from tests.support.netns import Host, Network
from tests.support.sources import TOP

PLAIN = """
import sys, p2pdp
from p2pdp.crypto import channel
channel.box = lambda padded, nonce, key, before: before + bytes(16) + padded
channel.unbox = lambda data, at, nonce, key: data[at + 16:]
p2pdp.run(sys.argv[1], sys.argv[2])
"""


@pytest.fixture
def host(networks: type[Network]) -> Iterator[Host]:
    with networks(1) as network:
        yield network.hosts[0]


# What is secret


# Real runs


@pytest.mark.parametrize("text", [complete(NODES, 1500), ring(NODES, 200)], ids=["complete", "ring"])
def test_packets_hold_no_value_no_key_no_plaintext_and_frames_are_of_the_fixed_sizes(
    tmp_path: Path, host: Host, text: str
) -> None:
    with Capture(host) as capture:
        with host.inside():
            run = Launched(tmp_path, large(text), STANDS)
        with run:
            secret = keys(run)
            result = run.completes()
        frames = cut(capture.streams())
    secret |= secrets_in(read_evidence(run.folder))
    assert all(len(forms) >= NODES for forms in secret.values())
    secret["spec"] = [b"patience_s", b"mechanism", str(tmp_path).encode()]
    assert found_in(frames, secret) == {}

    assert {frame.size for frame in frames} <= set(FRAME_SIZES)
    boxed = [frame for frame in frames if frame.kind is BOXED]
    assert len(boxed) >= result["messages"], "the recording has the whole run"
    assert sum(frame.size for frame in boxed) == result["bytes"]
    assert {frame.size for frame in boxed} == {FRAME_SIZES[0]}, "no message of a sum is longer than another"
    assert len({frame.body[:NONCE_BYTES] for frame in boxed}) == len(boxed), "no nonce serves twice"
    assert {frame.kind for frame in frames} <= {None, BOXED, OFFER, ENROL, ROSTER, *IN_CLEAR}


def test_a_run_that_only_seems_to_encrypt_is_seen_through(tmp_path: Path, host: Host) -> None:
    """The search finds what it is for: the same run with a channel that boxes nothing."""
    (tmp_path / "spec.toml").write_text(large(complete(NODES, 300)))
    with Capture(host) as capture:
        command = [sys.executable, "-c", PLAIN, str(tmp_path / "spec.toml"), str(tmp_path / "run")]
        run = host.start(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert run.communicate(timeout=240)[1] == ""
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
