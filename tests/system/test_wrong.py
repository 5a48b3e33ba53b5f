"""What strangers throw at the sockets of a live run: it completes with the effect of one that nobody disturbed."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from p2pdp.auditor.verify import COMPLETE
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.files.folder import RESULT_FILE, read_json
from p2pdp.transports.pool import STRANGER_FRAME_BYTES_MAX, STRANGERS_MAX
from p2pdp.wire.frames import BOXED, ENROL, FRAME_HEADER_BYTES, HELLO, OFFER, encode_frame
from p2pdp.wire.padding import FRAME_BYTES_MAX, FRAME_SIZES
from tests.support.calls import called
from tests.support.capture import CALLED_BYTES, Capture, streams
from tests.support.launched import ROLES, Launched, complete, judge_folder, wait_for
from tests.support.netns import Network

LISTENING = "0A"
GUARD_S = 240.0
NODES = 5
VICTIM = 2
UNDER_WAY = (50,)  # frames
PATIENT = {"p2pdp.transports.tcp.transport:CALL_S": 600.0}  # with this test, which may stand still as any process
BODY_BYTES = FRAME_SIZES[0] - FRAME_HEADER_BYTES


def listening_port(process: int) -> int:
    """Where a process listens; each process of a local run does at one place."""
    sockets = {str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()}
    lines = Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    (port,) = [int(f[1].split(":")[1], 16) for f in fields if f[3] == LISTENING and f"socket:[{f[9]}]" in sockets]
    return port


def peak_bytes(process: int) -> int:
    """The most memory that a process ever had."""
    (line,) = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def thrown(port: int, data: bytes, *, cut_off: bool = True) -> None:
    """Sends what a peer may not like, and waits until it has taken it all or has closed the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=GUARD_S) as stranger, suppress(ConnectionError):
        stranger.sendall(data)
        if cut_off:
            stranger.shutdown(socket.SHUT_WR)
        while stranger.recv(1 << 16):
            pass


@contextmanager
def begun(place: Path, hops: int, *stops: int) -> Iterator[Launched]:
    """A run in which everybody is on its way and user 0 stops itself under way; its end is judged."""
    text = complete(NODES, hops).replace("patience_s = 6", "patience_s = 60")
    with Launched(place, text, (0, *(stops or UNDER_WAY)), constants=PATIENT) as run:
        yield run
        assert run.completes()["missing"] == []
    assert judge_folder(run.folder).verification.verified == COMPLETE


@contextmanager
def paused(run: Launched) -> Iterator[None]:
    """From where user 0 stopped itself. Meanwhile the run cannot come to its end; much shorter than patience."""
    process = run.stands()
    yield
    os.kill(process, signal.SIGCONT)


def faults(run: Launched) -> dict[str, int]:
    found: dict[str, int] = read_json(run.folder / RESULT_FILE)["faults"]
    return found


def test_foreign_truncated_and_oversized_frames_are_faults_and_change_nothing(tmp_path: Path) -> None:
    noise = os.urandom(BODY_BYTES)
    with begun(tmp_path, 3000) as run, paused(run):
        for user in (VICTIM, BOOTSTRAP, CURATOR):
            port = listening_port(run.children()[user if user >= 0 else ROLES])
            for frame in (
                encode_frame(BOXED, 1, noise),  # by nobody who has the key of user 1
                encode_frame(BOXED, NODES, noise),  # by a user who is not in the roster
                encode_frame(BOXED, 1, noise[:-1]),  # of no size that frames have
                encode_frame(BOXED, 1, b""),
                encode_frame(BOXED, user, noise),  # by itself
                b"\0" + encode_frame(BOXED, 1, noise)[1:],  # of another version of the format
                encode_frame(HELLO, 1, noise),  # for a bootstrap that is still asked for seats
                encode_frame(OFFER, BOOTSTRAP, noise),
                encode_frame(ENROL, 0, noise),
                b"\xff" * FRAME_SIZES[0],
            ):
                thrown(port, called(user, frame))
            whole = called(user, encode_frame(BOXED, 1, noise))
            for cut_at in (0, 1, CALLED_BYTES, CALLED_BYTES + 1, len(whole) - 1):
                thrown(port, whole[:cut_at])  # ends within a frame, or before there is any
            for size in (0, 5, STRANGER_FRAME_BYTES_MAX + 1, FRAME_BYTES_MAX + 1, (1 << 32) - 1):
                impossible = called(user) + size.to_bytes(4, "big") + bytes(2 * STRANGER_FRAME_BYTES_MAX)
                thrown(port, impossible, cut_off=False)  # closed by the node, and no byte of it is kept
            thrown(port, called(NODES, encode_frame(BOXED, 1, noise)), cut_off=False)  # for nobody who is here
    # Documents of enrolment are nobody's business any more: those that reach bootstrap are counted apart.
    found = faults(run)
    assert found.pop("bad_enrolment", 0) <= 9
    assert found == {"not_authentic": 3, "unknown_peer": 6, "truncated": 6, "malformed": 3}


def test_more_strangers_than_there_is_room_for_cost_bounded_memory(tmp_path: Path) -> None:
    """Each says that a large frame comes, and sends nearly all of it."""
    nearly = called(VICTIM) + STRANGER_FRAME_BYTES_MAX.to_bytes(4, "big") + bytes(STRANGER_FRAME_BYTES_MAX - 100)
    held_bytes = STRANGERS_MAX * STRANGER_FRAME_BYTES_MAX
    with begun(tmp_path, 4000, 50, 300) as run, ExitStack() as strangers:
        with paused(run):
            process = run.children()[VICTIM]
            port, before = listening_port(process), peak_bytes(process)
            crowd = []
            for _ in range(3 * STRANGERS_MAX):
                stranger = socket.create_connection(("127.0.0.1", port), timeout=GUARD_S)
                crowd.append(strangers.enter_context(stranger))
                with suppress(ConnectionError):  # the first are sent away already
                    stranger.sendall(nearly)
            for stranger in crowd[: 2 * STRANGERS_MAX]:
                with suppress(ConnectionError):
                    assert stranger.recv(1) == b"", "the first strangers are sent away"
        with paused(run):  # 250 frames later
            wait_for(lambda: peak_bytes(process) - before > held_bytes // 2, "what the last ones sent is read")
            assert peak_bytes(process) - before < held_bytes * 3 // 2


def test_frames_that_are_replayed_to_whom_they_were_for_change_nothing(tmp_path: Path, networks: type[Network]) -> None:
    """All that anybody dialled, twice, comparisons of numbers after a crash included; then each to somebody else."""
    with (
        networks(1) as network,
        network.hosts[0].inside(),
        Capture(network.hosts[0]) as capture,
        begun(tmp_path, 4000, 50, 300) as run,
    ):
        with paused(run):
            run.kill(1)
            wait_for(lambda: 1 in run.children(), "the node is back")
        with paused(run):  # 250 frames later
            recorded = [stream.whole() for stream in streams(capture.packets()) if stream.dialled]
            children = run.children()
            ports = {peer: listening_port(children[max(peer, ROLES)]) for peer in (*children, CURATOR)}
            for whole in recorded * 2:
                peer = int.from_bytes(whole[:CALLED_BYTES], "big", signed=True)
                if peer != 0:  # it is paused
                    thrown(ports[peer], whole)
            for whole in recorded:
                thrown(ports[VICTIM], called(VICTIM) + whole[CALLED_BYTES:])
    found = faults(run)
    # What was for others is not authentic, or from the one who gets it; old numbers look like those of an old disk.
    assert set(found) <= {"not_authentic", "unknown_peer", "peer_rolled_back"}
    assert min(found["not_authentic"], found["unknown_peer"]) >= 10
