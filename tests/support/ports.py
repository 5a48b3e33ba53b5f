"""Ports that stay free for a test until it listens there, also while what listens is away for a moment."""

from __future__ import annotations

import atexit
import socket
from contextlib import ExitStack

_held = ExitStack()
atexit.register(_held.close)


def free_port() -> int:
    """Return a port of the loopback that the system gives to nobody who asks for any, nor to the near end of a call.

    A socket of ours stays bound there until this process ends, and does not listen. It and servers set SO_REUSEADDR, so
    a server that names the port may listen there, and again after it was killed.
    """
    bound = _held.enter_context(socket.socket())
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    return int(bound.getsockname()[1])
