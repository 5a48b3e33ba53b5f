"""Whether the process in this container does its work: exit code 0 or 1. Needs nothing but the interpreter.

    python -I health.py bootstrap | node

A node is asked over its own port: a connection that ends is ended by its event loop, so one that hangs is seen. With
P2PDP_BROKER it has no port, and has to be connected to the broker, which ends connections of those that hang. Before
it has its token a node waits, which is no illness, and when its part is done it needs nothing. Bootstrap is asked for
its readiness once its run began, and before that whether it gives out tokens.
"""

import os
import socket
import sys
from http.client import HTTPConnection
from pathlib import Path

TIMEOUT_S = 5.0


def hangs_up(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(1) == b""


def bootstrap_is_well() -> bool:
    if not Path("/data/asked.json").is_file():
        return hangs_up(7070)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect(("192.0.2.1", 8080))
        address = towards.getsockname()[0]
    connection = HTTPConnection(address, 8080, timeout=TIMEOUT_S)
    connection.request("GET", "/readyz")
    return connection.getresponse().status == 200


def is_connected_to(port: int) -> bool:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return any(remote.endswith(f":{port:04X}") and state == "01" for _, _, remote, state, *_ in fields)


def node_is_well() -> bool:
    if not Path("/data/own.token").is_file() or Path("/data/finished").is_file():
        return True
    return is_connected_to(8883) if os.environ.get("P2PDP_BROKER") else hangs_up(7001)


def main(role: str) -> int:
    try:
        well = bootstrap_is_well() if role == "bootstrap" else node_is_well()
    except OSError:
        well = False
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
