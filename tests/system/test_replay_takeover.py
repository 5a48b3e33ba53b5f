"""Whoever repeats frames of a node that is away is asked what it cannot answer, and does not take its place."""

from __future__ import annotations

import socket
from pathlib import Path

from p2pdp.wire.frames import BOXED, decode_frame
from tests.support.calls import called
from tests.support.capture import BUFFER_BYTES, CALLED_BYTES, SO_RCVBUFFORCE, TCP, streams
from tests.support.hosted import PORT, Hosted
from tests.support.launched import GUARD_S, complete
from tests.support.netns import Network

ETH_P_IP = 0x0800
VICTIM, AWAY = 1, 2
UNDER_WAY = 50  # frames


def test_who_repeats_the_frames_of_a_node_that_is_away_does_not_take_its_place(
    tmp_path: Path, networks: type[Network]
) -> None:
    text = complete(5, 2000, "audit = false").replace("patience_s = 6", "patience_s = 30")
    with networks(4) as network:
        run = Hosted(tmp_path, network, text, 5)
        with run.host_of(VICTIM).inside():
            tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
        tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        tap.bind(("eth0", ETH_P_IP))
        tap.setblocking(False)
        bootstrap = run.ready_for_nodes()
        nodes = run.all_nodes({AWAY: [UNDER_WAY]})
        run.stands(AWAY)
        nodes[AWAY].kill()
        packets = []
        with tap:
            while True:
                try:
                    packets.append(tap.recv(1 << 18))
                except BlockingIOError:
                    break
        recorded = []
        for stream in streams(packet for packet in packets if packet[9] == TCP):
            data, at = stream.whole(), CALLED_BYTES if stream.dialled else 0
            while at < len(data):
                size = int.from_bytes(data[at : at + 4], "big")
                frame = decode_frame(data[at + 4 : at + 4 + size])
                if (frame.kind, frame.sender) == (BOXED, AWAY):
                    recorded.append(data[at + 4 : at + 4 + size])
                at += 4 + size
        with network.hosts[1].inside():
            stranger = socket.create_connection((run.host_of(VICTIM).address, PORT + VICTIM))
        with stranger:
            stranger.sendall(called(VICTIM, *recorded))
            stranger.settimeout(5)
            try:
                print("the stranger was sent", len(stranger.recv(1 << 16)), "bytes")
            except TimeoutError:
                print("the stranger was sent nothing")
            run.node(AWAY)
            bootstrap.process.wait(GUARD_S)  # the stranger is there all the time
        result = bootstrap.result()
        assert result["missing"] == []
        assert not {"rolled_back", "peer_rolled_back"} & result["faults"].keys(), "nobody innocent is accused"
