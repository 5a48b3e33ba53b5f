"""Walks: a token goes from user to user, each of whom adds to it."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = {"walk.histogram": "sums:HISTOGRAM", "walk.sgd": "sgd:PROTOCOL", "walk.sum": "sums:PROTOCOL"}
