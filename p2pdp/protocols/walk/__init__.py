"""Walks: a token goes from user to user, each of whom adds to it."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = {"walk.histogram": "histogram", "walk.sgd": "sgd", "walk.sum": "sums"}
