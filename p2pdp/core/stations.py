"""What the stations of a run over MQTT are called: a name is a user at the broker, a client, and a part of a topic."""

from __future__ import annotations

import re
from typing import Final

STATION_LETTERS_MAX: Final = 64
ROLES_STATION: Final = "bootstrap"  # of bootstrap and curator, where nobody names another
_STATION: Final = re.compile(rf"[A-Za-z0-9._@-]{{1,{STATION_LETTERS_MAX}}}")


def is_station(name: str) -> bool:
    return _STATION.fullmatch(name) is not None


def user_station(number: int) -> str:
    """The name of a node that has none of its own, by its slot or join token."""
    return f"node-{number:04d}"
