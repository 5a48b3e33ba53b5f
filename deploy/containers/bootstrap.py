"""Bootstrap and curator in a container: gives out join tokens, and runs `p2pdp bootstrap` for as many users.

    python -m p2pdp_containers.bootstrap SPEC [options of p2pdp bootstrap]

With P2PDP_BROKER, its name, the run goes over that broker, and each node gets its password with its token.
P2PDP_NODES is how many nodes there are; without it those count who asked before nobody new came for some seconds.
`--http` gets the address that this container has in the network from which the port is published, not the one
where nodes are: nodes have no business with the report.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Final, NoReturn

from p2pdp.cli.main import main
from p2pdp.core.errors import P2pdpError, UsageError

from .asking import AUTHORITY, PASSWORD, PORT, TOKEN, Desk, Seats

DATA: Final = Path("/data")
RUN: Final = DATA / "run"
LOGINS: Final = Path("/logins")
PASSWORDS: Final = "passwords"
BROKER: Final = os.environ.get("P2PDP_BROKER", "")
LISTEN_PORT: Final = 7000
HTTP_PORT: Final = 8080
QUIET_S: Final = 6.0
NAME: Final = "bootstrap"  # by which nodes reach this container
INTERRUPTED: Final = 130
SOMEWHERE: Final = "192.0.2.1"  # of those that nobody has (RFC 5737): the way there leads out of the project


def expected(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"P2PDP_NODES is {text}: must be a number of nodes, 1 or more")
    return int(text)


def outer_address() -> str:
    """Where this container is reached from outside; the loopback where it is not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        try:
            towards.connect((SOMEWHERE, HTTP_PORT))
        except OSError:
            return "127.0.0.1"
        return str(towards.getsockname()[0])


def files_of(seat: int) -> dict[str, str] | None:
    """What a node is given, once its token is written."""
    token = RUN / "tokens" / f"{seat:04d}.token"
    if not token.is_file():
        return None
    given = {TOKEN: token.read_text()}
    if BROKER:
        mine = f"node-{seat:04d}:"
        passwords = (LOGINS / PASSWORDS).read_text().splitlines()
        given[PASSWORD] = "".join(f"{line}\n" for line in passwords if line.startswith(mine))
        given[AUTHORITY] = (LOGINS / AUTHORITY).read_text()
    return given


def place() -> list[str]:
    """The options that say where bootstrap and nodes meet."""
    if not BROKER:
        return ["--listen", f"0.0.0.0:{LISTEN_PORT}", "--address", f"{NAME}:{LISTEN_PORT}"]
    keys = {
        "run.transport": "mqtt",
        "transport.host": BROKER,
        "transport.user": "bootstrap",
        "transport.password_file": str(LOGINS / PASSWORDS),
        "transport.ca": str(LOGINS / AUTHORITY),
    }
    return [word for key, value in keys.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def start(arguments: list[str]) -> int:
    seats = Seats(DATA / "asked.json", expected(os.environ.get("P2PDP_NODES", "")), QUIET_S)
    desk = Desk(("", PORT), seats, files_of)
    threading.Thread(target=desk.serve_forever, daemon=True).start()
    while (nodes := seats.settled()) is None:
        time.sleep(0.2)
    spec, *more = arguments
    counted = ["--tokens", str(nodes), "--set", f"run.nodes={nodes}", "--out", str(RUN)]
    http = ["--http", f"{outer_address()}:{HTTP_PORT}", "--http-open", "--http-stay"]
    return main(["bootstrap", spec, *place(), *counted, *http, *more])


def interrupted(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(INTERRUPTED)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    try:
        sys.exit(start(sys.argv[1:]))
    except P2pdpError as error:
        sys.stderr.write(f"p2pdp: {error}\n")
        sys.exit(error.exit_code)
