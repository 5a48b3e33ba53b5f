"""Secrets of one compose project, made once at its first start, by a container that nobody can reach and that ends.

    /data    (volume of the broker)     config/: certificate, settings, access list, hashes of passwords; data/
    /logins  (volume of bootstrap)      the passwords of bootstrap and of all nodes there may be, and whom to trust

The key of the authority is forgotten: nobody can make a further certificate for this project.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from p2pdp.cli.main import main
from p2pdp.node.disk import write_durably

from .bootstrap import expected

BROKER: Final = Path("/data")
LOGINS: Final = Path("/logins")
NODES_MIN: Final = 256  # scales that are not said beforehand may grow so far


def start() -> int:
    if (LOGINS / "ca.pem").is_file():
        return 0  # written last
    made = Path("/tmp/made")  # noqa: S108 - in the memory of this container
    nodes = max(NODES_MIN, expected(os.environ.get("P2PDP_NODES", "")) or 0)
    names = ["--name", "broker", "--nodes", str(nodes), "--place", "/mosquitto/config"]
    if (code := main(["keygen", "--tls", *names, "--out", str(made)])) != 0:
        return code
    shutil.copytree(made / "broker", BROKER / "config", dirs_exist_ok=True)
    (BROKER / "data").mkdir(exist_ok=True)
    for name in ("passwords", "ca.pem"):
        write_durably(LOGINS / name, (made / name).read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(start())
