"""Where stations of an MQTT run are: at which broker, as whom, and under which topics. Loads nothing of MQTT.

Each station reads its own topic and writes to those of others, all below the run's:

    p2pdp/<run>/<station>

so that a broker's access list needs two lines for all runs and nodes (`files/broker.py`).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Final

from p2pdp.core.stations import is_station

PORT: Final = 1883
TLS_PORT: Final = 8883


@dataclass(frozen=True)
class Broker:
    """Where a broker is. `tls` verifies its certificate and its name; without it the connection is in clear.

    Without `version_5` it speaks MQTT 3.1.1: sessions have no end, and calls that wait in one do not expire.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    version_5: bool = True

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Login:
    """As whom a client comes. Two clients of one name push each other out."""

    client: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Place:
    """A station's name in a run at a broker."""

    broker: Broker
    login: Login
    run: str
    name: str

    def __post_init__(self) -> None:
        """Refuse what could be no part of a topic."""
        if not (is_station(self.name) and is_station(self.run)):
            raise ValueError("this can be no part of a topic")

    def topic(self, station: str) -> str:
        return f"p2pdp/{self.run}/{station}"
