"""A broker in Python, for a first try where Mosquitto is not installed: amqtt, on the loopback, with passwords.

    python -m p2pdp.transports.mqtt.amqtt_broker PORT FILE

`FILE` holds a line `user:password` for each station, and is gone once the broker listens. Each user reads its own
topic and writes to those of others. It speaks MQTT 3.1.1 and keeps everything in memory. This is the one module
that cannot be imported without the optional `amqtt`, which finds its two plugins here by their names.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amqtt.broker import Broker
from amqtt.contexts import Action
from amqtt.plugins.base import BaseAuthPlugin, BaseTopicPlugin

if TYPE_CHECKING:
    from amqtt.session import Session

LOOPBACK = "127.0.0.1"
_HERE = "p2pdp.transports.mqtt.amqtt_broker"


class Doorkeeper(BaseAuthPlugin):
    @dataclass
    class Config:
        passwords: dict[str, str] = field(default_factory=dict, repr=False)

    async def authenticate(self, *, session: Session) -> bool:
        expected = self.config.passwords.get(session.username or "")
        return expected is not None and hmac.compare_digest(expected, str(session.password))


class Topics(BaseTopicPlugin):
    async def topic_filtering(
        self, *, session: Session | None = None, topic: str | None = None, action: Action | None = None
    ) -> bool:
        parts = (topic or "").split("/")
        ours = len(parts) == 3 and parts[0] == "p2pdp" and not {"+", "#"} & set(parts)
        return ours and (action == Action.PUBLISH or (session is not None and parts[2] == session.username))


async def serve(port: int, passwords: dict[str, str]) -> None:
    settings: dict[str, Any] = {
        "listeners": {"default": {"type": "tcp", "bind": f"{LOOPBACK}:{port}"}},
        "plugins": {f"{_HERE}.Doorkeeper": {"passwords": passwords}, f"{_HERE}.Topics": {}},
    }
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    broker = Broker(settings)
    await broker.start()
    await told.wait()
    await broker.shutdown()


def main(arguments: Sequence[str]) -> None:
    logging.disable()  # it logs routes: who sends what kind of packet to whom
    port, file = arguments
    lines = Path(file).read_text().splitlines()
    asyncio.run(serve(int(port), dict(line.split(":", 1) for line in lines)))


if __name__ == "__main__":
    main(sys.argv[1:])
