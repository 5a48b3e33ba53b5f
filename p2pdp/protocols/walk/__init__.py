"""Walks: a token is passed from user to user, and each adds its contribution."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = {"walk.histogram": "sums:HISTOGRAM", "walk.sgd": "sgd:PROTOCOL", "walk.sum": "sums:PROTOCOL"}
