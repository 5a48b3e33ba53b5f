"""Gossip: users average their states with their neighbours."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = {
    "gossip.average": "averaging:AVERAGE",
    "gossip.randomized": "averaging:RANDOMIZED",
    "gossip.sgd": "sgd:PROTOCOL",
}
