"""Where bootstrap is found through a broker, as a join token says it.

    mqtts://broker.example.org:8883/<run>/<station>

`mqtts` asks for TLS, and a node that has such a token uses nothing else; `mqtt` is a connection in clear. The run
and bootstrap's station are the parts of a topic.

Guarantee: a text without a scheme is none of ours, and one with a scheme is read whole or refused by `AddressError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p2pdp.core.stations import is_station
from p2pdp.crypto.addresses import AddressError, join_address, split_address

_SCHEMES: Final = {"mqtt://": False, "mqtts://": True}


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    host: str
    port: int
    tls: bool
    run: str
    station: str

    def to_text(self) -> str:
        scheme = "mqtts" if self.tls else "mqtt"
        return f"{scheme}://{join_address(self.host, self.port)}/{self.run}/{self.station}"


def read_broker_address(text: str) -> BrokerAddress | None:
    """None for an address that is not at a broker."""
    for scheme, tls in _SCHEMES.items():
        if text.startswith(scheme):
            place, *parts = text.removeprefix(scheme).split("/")
            host, port = split_address(place)
            if len(parts) != 2 or port == 0 or not all(map(is_station, parts)):
                raise AddressError("must read mqtts://HOST:PORT/RUN/STATION, or mqtt:// for a broker without TLS")
            return BrokerAddress(host, port, tls, parts[0], parts[1])
    return None
