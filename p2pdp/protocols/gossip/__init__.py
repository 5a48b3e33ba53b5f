"""Gossip: users average what they hold with their neighbours."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = {"gossip.average": "average", "gossip.randomized": "randomized", "gossip.sgd": "sgd"}
