"""Pairwise noise: the curator learns the sum of the users' noised values, and single values stay behind masks."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = {"pairwise.sum": "sums:PROTOCOL"}
