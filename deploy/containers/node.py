"""A user's node in a container: makes its identity, asks for its join token, and runs `p2pdp node`.

    python -m p2pdp_containers.node CONFIG [options of p2pdp node]

All of it is in the node's own volume, so a container that is started again is the same user. With P2PDP_STAY it
stays when its part is done, where whatever ends would be started again.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final, NoReturn

from p2pdp.cli.main import main
from p2pdp.core.errors import P2pdpError
from p2pdp.crypto.entropy import random_bytes
from p2pdp.files.keys import SECRET_FILE, write_identity

from .asking import AUTHORITY, PASSWORD, PORT, TOKEN, ask

DATA: Final = Path("/data")
BOOTSTRAP: Final = "bootstrap"
FINISHED: Final = "finished"
INTERRUPTED: Final = 130


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def start(arguments: list[str]) -> int:
    if not (DATA / TOKEN).is_file():
        if not (DATA / SECRET_FILE).is_file():
            write_identity(DATA, random_bytes(32))
        names = (PASSWORD, AUTHORITY, TOKEN) if os.environ.get("P2PDP_BROKER") else (TOKEN,)
        ask((BOOTSTRAP, PORT), DATA, names, say)
    config, *more = arguments
    code = main(["node", config, "--out", str(DATA / "run"), *more])
    if code == 0 and os.environ.get("P2PDP_STAY"):
        (DATA / FINISHED).touch()
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
        signal.pause()
    return code


def interrupted(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(INTERRUPTED)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    try:
        sys.exit(start(sys.argv[1:]))
    except P2pdpError as error:
        sys.stderr.write(f"p2pdp: {error}\n")
        sys.exit(error.exit_code)
